"""From texts to texts: the codemod as one pure function over a project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from migrator.findings import Finding

if TYPE_CHECKING:
    from migrator.program.modern import Check
    from migrator.source.reading import Source
    from migrator.targets.dtensor import Layouts

_WORD = "tensorflow"


@dataclass(frozen=True)
class Options:
    """What the user chose: the strategy (auto, one-device, parameter-server, multi-worker-mirrored) and the style.

    The style is native, mapped (the model_fn stays TensorFlow 1 code) or auto: native, or mapped where that is blocked.
    `keras` is the generation of Keras that is written for, "2" or "3", and `loop` what trains: fit, or custom.
    `mesh` and `layouts` say how variables are divided under the strategy dtensor, see `targets.dtensor.parse`.
    """

    strategy: str = "auto"
    style: str = "auto"
    keras: str = "2"
    loop: str = "fit"
    mesh: str = ""
    layouts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """One file afterwards. `text` equals `source.text` when nothing changed."""

    source: Source
    text: str
    findings: tuple[Finding, ...]


def migrate(sources: Sequence[Source], options: Options) -> list[Result]:
    """Migrates the Estimator programs in a project.

    Returns one result per source, in order. All files of a program change together or not at all; where one of its
    constructs cannot be carried over, its files stay as they are and each blocking line has a MANUAL finding.
    """
    from migrator.program.relevant import around_programs, may_be_modern
    from migrator.rules.sessions import may_train

    relevant = [source for source in sources if _WORD in source.text]
    texts: dict[Path, str] = {}
    findings: dict[Path, list[Finding]] = {}
    estimators: set[Path] = set()
    everything = {source.path: source.text for source in sources}
    if any("stimator" in source.text or may_train(source.text) for source in relevant):
        from migrator.migration.project import migrate_project

        texts, findings = migrate_project(
            everything, options.strategy, options.style, options.keras, options.loop, _layouts(options)
        )
        estimators = set(around_programs(everything))
    # A program that is one of TensorFlow 2 now is looked at as such, so that a second run finds nothing new.
    everything = {**everything, **texts}
    # New code for Keras 3, or for a mesh of devices, is not to be judged by what other programs do wrong there.
    left = estimators if options.keras == "3" or options.strategy == "dtensor" else estimators - texts.keys()
    if options.strategy == "dtensor":  # but the loops that `--loop custom` wrote
        left = {path for path in left if _of_estimators(everything[path])}
    if any(may_be_modern(everything[source.path]) for source in relevant if source.path not in left):
        from migrator.modern import modernize

        asked: tuple[Check, ...] = ()
        layouts = _layouts(options)
        if layouts is not None:
            from migrator.migration.mirrored_mesh import check

            asked = (check(layouts),)
        modern, more = modernize(everything, left, asked)
        texts = {**texts, **modern}
        for path, found in more.items():
            findings.setdefault(path, []).extend(found)
    return [
        Result(source, texts.get(source.path, source.text), tuple(sorted(findings.get(source.path, ()))))
        for source in sources
    ]


def _of_estimators(text: str) -> bool:
    """Whether a file that speaks of Estimators is not a program of TensorFlow 2 on replicas."""
    from migrator.program.relevant import only_mentions_estimators

    return "MirroredStrategy" not in text or not only_mentions_estimators(text)


def _layouts(options: Options) -> Layouts | None:
    """How variables are divided. Raises LayoutError."""
    if options.strategy != "dtensor":
        return None
    from migrator.targets.dtensor import parse

    return parse(options.mesh, options.layouts)
