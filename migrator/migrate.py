"""From texts to texts: the codemod as one pure function over a project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrator.bridge.support import MARK, MARK_INSIDE, NAME
from migrator.findings import Finding, Severity
from migrator.source.reading import Source
from migrator.targets.clusters import Clusters
from migrator.targets.clusters import parse as parse_clusters

if TYPE_CHECKING:
    import libcst as cst

    from migrator.bridge.project import Bridges
    from migrator.program.modern import Check
    from migrator.syntax import Trees
    from migrator.targets.dtensor import Layouts

_WORD = "tensorflow"
_LEFT = (Severity.ERROR, Severity.MANUAL)


@dataclass(frozen=True)
class Options:
    """What the user chose: the strategy (auto, one-device, parameter-server, multi-worker-mirrored) and the style.

    The style is native, bridge (all code stays, and runs through a support file), module (under the strategy dtensor:
    a tf.Module in the place of a Keras model) or auto: native.
    `keras` is the generation of Keras that is written for, "2" or "3", and `loop` what trains: fit, or custom.
    `bridge` says that with auto a program becomes a bridge where the native form is blocked.
    `inside` says that the one program has no place for files beside it: what its bridge needs stands inside of it.
    `mesh` and `layouts` say how variables are divided under the strategy dtensor, see `targets.dtensor.parse`;
    `device_memory` is what layouts are chosen by that are asked for as "auto".
    `evaluate_on` and `servers` say who evaluates on a cluster and what runs in one process, see
    `targets.clusters.parse`.
    """

    strategy: str = "auto"
    style: str = "auto"
    keras: str = "2"
    loop: str = "fit"
    mesh: str = ""
    layouts: tuple[str, ...] = ()
    device_memory: str = ""
    evaluate_on: str = "evaluator"
    servers: str = ""
    bridge: bool = False
    inside: bool = False


@dataclass(frozen=True)
class Result:
    """One file afterwards. `text` equals `source.text` when nothing changed."""

    source: Source
    text: str
    findings: tuple[Finding, ...]
    alone: bool = False
    """Whether the file is TensorFlow 2 code, whose changes make sense without those of other files."""


def migrate(sources: Sequence[Source], options: Options) -> list[Result]:
    """Migrates the Estimator programs in a project, see `_migrated`; those that are only beside them have no result.

    Layouts of "auto" are chosen when all else is known: then the project is migrated once more.
    """
    beside = {source.path: source.text for source in sources if source.is_beside}
    sources = [source for source in sources if not source.is_beside]
    results = _migrated(sources, options, beside)
    layouts = _layouts(options)
    if layouts is not None and layouts.by_size:
        from migrator.migration.mesh.sizes import Room, with_sizes
        from migrator.targets.sizes import memory

        room = Room(memory(options.device_memory), *layouts.dimensions[0])
        results = with_sizes(results, room, lambda chosen: _migrated(sources, replace(options, layouts=chosen), beside))
    if layouts is not None and options.style == "module":
        from migrator.migration.mesh.modules import with_modules

        results = with_modules(results)
    return results


def _migrated(sources: Sequence[Source], options: Options, beside: Mapping[Path, str]) -> list[Result]:
    """Migrates the Estimator programs in a project.

    Returns one result per source, in order, and then those of files that are written beside them: their sources are
    empty. All files of a program change together or not at all; where one of its
    constructs cannot be carried over, its files stay as they are and each blocking line has a MANUAL finding.
    """
    from migrator.program.relevant import around, around_estimators, may_be_modern, speaks_of_estimators
    from migrator.rules.sessions import may_train

    support = {source.path: source.text for source in sources if MARK in source.text or MARK_INSIDE in source.text}
    relevant = [source for source in sources if _WORD in source.text and source.path not in support]
    texts: dict[Path, str] = {}
    findings: dict[Path, list[Finding]] = {}
    estimators: set[Path] = set()
    everything = {source.path: source.text for source in sources if source.path not in support}
    bridged: set[Path] = set()
    clusters = parse_clusters(options.evaluate_on, options.servers)
    natively = options.style != "bridge"
    trees: Trees[cst.Module] | None = None
    if natively and any(speaks_of_estimators(one.text) or may_train(one.text) for one in relevant):
        from migrator.migration.project import migrate_project

        trees = _trees()
        texts, findings = migrate_project(
            everything, options.strategy, options.keras, options.loop, _layouts(options), clusters, trees, beside
        )
        estimators = set(around_estimators(everything))
    # A file may have TensorFlow from another one of the project.
    spoken_of = (source.text for source in sources if _WORD in source.text or "tf." in source.text)
    if relevant and _may_bridge(options) and any(map(_may_be_bridged, spoken_of)):
        from migrator.bridge.project import join

        bridges = _bridged(everything, texts, support, findings, options.inside, clusters, trees)
        texts, findings = join(bridges, texts, findings)
        bridged = bridges.files | bridges.blocked
    blocked = {path for path, found in findings.items() if any(f.severity is Severity.MANUAL for f in found)}
    # A program that is one of TensorFlow 2 now is looked at as such, so that a second run finds nothing new.
    everything = {**everything, **texts}
    # New code for Keras 3, or for a mesh of devices, is not to be judged by what other programs do wrong there.
    together = set(texts)
    asks = options.keras == "3" or options.strategy == "dtensor"
    left = estimators | texts.keys() if asks else estimators - texts.keys()
    # Nor is a bridged program, of this run or an earlier one: its code is of TensorFlow 1, and runs as such. One of
    # sessions that is blocked stays as a whole.
    left = left | bridged | set(around(everything, (path for path, text in everything.items() if NAME in text)))
    if any(may_be_modern(everything[source.path]) for source in relevant if source.path not in left):
        from migrator.modern import modernize

        asked: tuple[Check, ...] = ()
        layouts = _layouts(options)
        if layouts is not None:
            from migrator.migration.mesh.program import check

            asked = (check(layouts),)
        modern, more = modernize(everything, left, asked)
        texts = {**texts, **modern}
        for path, found in more.items():
            findings.setdefault(path, []).extend(found)
    if relevant:
        _tell_what_stands(relevant, texts, findings, blocked)
        before = {source.path: source.text for source in sources if source.path not in support}
        _spell_anew(before, texts, findings, blocked)
        _tell_python_2(relevant, findings)
    given = [
        Result(
            source,
            texts.get(source.path, source.text),
            tuple(sorted(findings.get(source.path, ()))),
            source.path not in together,
        )
        for source in sources
    ]
    return given + [
        Result(Source(path, b"", "", "utf-8", False), text, ())
        for path, text in texts.items()
        if path not in {source.path for source in sources}
    ]


def _trees() -> Trees[cst.Module]:
    """The trees of files, for all forms that are tried of a project."""
    import libcst as cst

    from migrator.syntax import ROOM, Trees

    return Trees(ROOM, cst.parse_module)


def _spell_anew(
    before: Mapping[Path, str], texts: dict[Path, str], findings: dict[Path, list[Finding]], blocked: set[Path]
) -> None:
    """Spells what Python and NumPy have no more anew, in all files of programs that are not blocked."""
    from migrator.program.relevant import around, connected
    from migrator.rules.later_python import own_methods, respelled

    own = own_methods(text for text in before.values() if _WORD in text)
    told = {path: respelled(str(path), text, own) for path, text in before.items() if _WORD in text}
    roots = {path for path, found in told.items() if found.findings or path in texts}
    reached = set(around(before, roots, every=True)) if roots else set()
    told |= {path: respelled(str(path), before[path], own) for path in reached - told.keys()}
    some = {path for path, found in told.items() if found.findings}
    stay = connected(before, blocked) if some - texts.keys() else set()
    for path in some:
        # What nothing else changes stays where it is of a blocked program, or names of TensorFlow 1 stand in it.
        if path not in texts and (path in stay or any(f.severity in _LEFT for f in findings.get(path, ()))):
            continue
        new = respelled(str(path), texts[path], own) if path in texts else told[path]
        if new.text != before[path]:
            texts[path] = new.text
        findings.setdefault(path, []).extend(told[path].findings)


def _tell_python_2(relevant: Sequence[Source], findings: dict[Path, list[Finding]]) -> None:
    """Says of files that Python 3 parses which names in them only Python 2 has."""
    from migrator.python2.signs import signs

    for source in relevant:
        if found := signs(source.text):
            line, name = found[0]
            more = len({name for _, name in found}) - 1
            others = f" (and {more} other name{'s' * (more > 1)})" if more else ""
            message = f"`{name}`{others} exists only in Python 2: `tf-migrate --python2` converts the file first"
            findings.setdefault(source.path, []).append(
                Finding(str(source.path), line, 1, "TFM943", Severity.REVIEW, message)
            )


def _may_bridge(options: Options) -> bool:
    """Whether programs may come out as a bridge, which decides by itself on strategies, and needs Keras 2."""
    if options.style == "auto":
        return options.bridge and (options.strategy, options.keras, options.loop) == ("auto", "2", "fit")
    return options.style == "bridge"


def _bridged(
    before: Mapping[Path, str],
    native: Mapping[Path, str],
    support: Mapping[Path, str],
    findings: Mapping[Path, list[Finding]],
    inside: bool,
    clusters: Clusters,
    trees: Trees[cst.Module] | None,
) -> Bridges:
    """The bridges of the programs that are not native, but for those that a mistake of ours is met in (TFM905)."""
    from migrator.bridge.project import Bridges, bridge_project
    from migrator.program.borrowed import not_to_borrow

    texts, left = {**before, **native, **support}, before.keys() - native.keys()

    def lends(path: Path, names: frozenset[str]) -> bool:
        return path in native and not_to_borrow(before[path], native[path], names, ()) is None

    try:
        return bridge_project(texts, left, findings, inside, lends, clusters, trees)
    except Exception as error:
        from migrator.internal_errors import in_file
        from migrator.migration.isolation import without_broken
        from migrator.program.relevant import programs_in

        made, broken = without_broken(
            texts, lambda some: bridge_project(texts, left & set(some), findings, inside, lends, clusters), error
        )
        bridges = made or Bridges()
        for path in programs_in(texts):
            if path in broken and path in left:
                bridges.findings.setdefault(path, []).append(in_file(path, broken[path]))
        return bridges


def _may_be_bridged(text: str) -> bool:
    """Whether a text may hold an Estimator (those of tf.contrib.learn have their names from what they learn), or a
    session, or has operations run at once, or is of TensorFlow 1 otherwise.
    """
    from migrator.names.standing import needs_tensorflow_1

    of_contrib = "contrib" in text and ("learn" in text or "slim" in text)
    spoken_of = "stimator" in text or of_contrib or "Session" in text or "Supervisor" in text
    spoken_of |= "enable_eager_execution" in text or "enable_v2_behavior" in text
    return spoken_of or needs_tensorflow_1(text)


def _tell_what_stands(
    relevant: Sequence[Source], texts: Mapping[Path, str], findings: dict[Path, list[Finding]], blocked: set[Path]
) -> None:
    """Adds findings about names that TensorFlow 2.21 lacks, but not to blocked programs: they stay as they are."""
    from migrator.bridge.assemble import without_section
    from migrator.program.relevant import connected
    from migrator.standing import eager_sessions, left_in, makes_graphs

    told = connected({source.path: source.text for source in relevant}, blocked)
    new = {source.path: without_section(texts.get(source.path, source.text)) for source in relevant}
    in_graphs = makes_graphs(new.values())
    for source in relevant:
        if source.path not in told and not any(f.severity is Severity.ERROR for f in findings.get(source.path, ())):
            before = findings.setdefault(source.path, [])
            before += left_in(source.path, source.text, new[source.path], before)
            if not in_graphs and new[source.path] == source.text:
                before += eager_sessions(source.path, source.text)


def _layouts(options: Options) -> Layouts | None:
    """How variables are divided. Raises LayoutError."""
    if options.strategy != "dtensor":
        return None
    from migrator.targets.dtensor import parse

    return parse(options.mesh, options.layouts)
