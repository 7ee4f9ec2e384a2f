"""The stages of the codemod in order: parse, read programs, plan, emit, and all or nothing per program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path

import libcst as cst

from migrator.findings import Finding, Severity
from migrator.migration.everything import Everything, references_to_models
from migrator.migration.forms import migrate_group, refused_group
from migrator.migration.isolation import in_parts, isolated
from migrator.migration.reading import groups_of, read_all
from migrator.migration.state import Request
from migrator.migration.towers import migrate_towers
from migrator.program import by_hand
from migrator.program.annotations import without_old_annotations
from migrator.program.arg_scopes import with_arguments_written_out
from migrator.program.around_models import without_what_only_tells
from migrator.program.builders import with_builders_in_place
from migrator.program.called_tables import with_called_tables
from migrator.program.canned import write_out
from migrator.program.chosen_dropouts import with_chosen_dropouts
from migrator.program.chosen_partitioners import with_chosen_partitioners
from migrator.program.derived_estimators import with_functions_for_classes
from migrator.program.keywords_said import with_keywords_said
from migrator.program.lives import with_a_name_each
from migrator.program.local_names import with_symbols_in_place
from migrator.program.looked_at import without_looks
from migrator.program.mode_parameters import with_mode_parameters
from migrator.program.named_estimators import with_named_estimators
from migrator.program.networks_by_mode import with_networks_by_mode
from migrator.program.numbers_by_mode import with_numbers_by_mode
from migrator.program.one_tower import with_one_tower
from migrator.program.params_in_place import with_params_in_place
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.reductions import reduced, with_attributes_said
from migrator.program.relevant import around_programs, programs_in
from migrator.program.settings_in_place import with_settings_in_place
from migrator.program.shared_networks import with_shared_networks
from migrator.program.surroundings import without_surroundings
from migrator.program.tpu_branches import without_tpu_branches
from migrator.program.training import find_places
from migrator.program.walruses import with_plain_assignments
from migrator.program.without_horovod import without_horovod
from migrator.program.zero_states import with_networks_that_start_at_zero
from migrator.rules.accelerators import without_accelerators
from migrator.rules.generation import GENERATIONS
from migrator.rules.mlperf import without_deferred_logs
from migrator.rules.prints import without_prints
from migrator.syntax import Trees
from migrator.targets.clusters import ONE_EVALUATOR, Clusters
from migrator.targets.dtensor import Layouts, with_layouts
from migrator.targets.registry import LOOPS, TARGETS

_WORD = re.compile(r"\w+")


def migrate_project(
    texts: Mapping[Path, str],
    strategy: str,
    keras: str = "2",
    loop: str = "fit",
    layouts: Layouts | None = None,
    clusters: Clusters = ONE_EVALUATOR,
    trees: Trees[cst.Module] | None = None,
    beside: Mapping[Path, str] | None = None,
) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
    """Returns the new texts of the files that change, and all findings by file. `trees` keeps what is parsed.

    `beside` are the texts of files that these import, which have nothing of TensorFlow and are left alone.
    An error of the tool's own costs the programs that it was met in, which a TFM905 finding says, and no others.
    """

    def migrate(
        texts: Mapping[Path, str], trees: Trees[cst.Module] | None = None
    ) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
        return _migrate(texts, strategy, keras, loop, layouts, clusters, trees, beside or {})

    try:
        return migrate(texts, trees)
    except Exception as error:
        return in_parts(texts, migrate, error, programs_in(texts))


def _plain(
    file: ParsedFile, files: Iterable[ParsedFile], elsewhere: Callable[[str], bool], unread: Callable[[str], bool]
) -> ParsedFile:
    """A file in plain words: nothing roundabout, and no annotation that names what TensorFlow 2 lacks."""
    file = with_settings_in_place(file, files, elsewhere)
    plain = with_plain_assignments(without_old_annotations(reduced(file, elsewhere)))
    plain = with_keywords_said(plain, files, elsewhere)
    chosen = with_called_tables(with_params_in_place(plain, elsewhere), files, elsewhere, unread)
    if chosen is not plain:  # what stood in a table or in params may be roundabout itself
        plain = with_plain_assignments(reduced(chosen, elsewhere))
    plain = with_shared_networks(with_networks_that_start_at_zero(with_networks_by_mode(plain)), files)
    return with_chosen_dropouts(with_numbers_by_mode(plain, files, elsewhere))


def _in_plain_words(files: Iterable[ParsedFile], texts: Mapping[Path, str]) -> list[ParsedFile]:
    """The files in plain words; names that stand in a text which may mean a file's keep their bindings at its top."""
    words = {path: frozenset(_WORD.findall(text)) for path, text in texts.items()}
    files = with_builders_in_place(with_functions_for_classes(list(files), words), words)
    read = {file.path for file in files}

    def unread(path: Path, name: str) -> bool:
        """Whether a text that is not among the files, and may have names of one of them, says a name."""
        return any(name in words[other] for other in _importing(path, words) - read)

    files = with_mode_parameters([with_attributes_said(file) for file in files], unread)

    def plain(file: ParsedFile) -> ParsedFile:
        @lru_cache(maxsize=1)
        def near() -> list[frozenset[str]]:
            return [words[path] for path in _importing(file.path, words)]

        return _plain(file, files, lambda name: any(name in text for text in near()), partial(unread, file.path))

    return [plain(file) for file in files]


def _importing(path: Path, words: Mapping[Path, frozenset[str]]) -> set[Path]:
    """The texts that may have names of a file: they say what its module is called, or that of such a text."""
    found: set[Path] = set()
    new = {path}
    while new:
        modules = {one.parent.name if one.stem == "__init__" else one.stem for one in new}
        found |= new
        new = {other for other, said in words.items() if other not in found and not modules.isdisjoint(said)}
    return found - {path}


def _migrate(
    texts: Mapping[Path, str],
    strategy: str,
    keras: str,
    loop: str,
    layouts: Layouts | None,
    clusters: Clusters,
    trees: Trees[cst.Module] | None,
    beside: Mapping[Path, str],
) -> tuple[dict[Path, str], dict[Path, list[Finding]]]:
    findings: dict[Path, list[Finding]] = {}
    files = []
    on_tpus: dict[Path, list[Blocked]] = {}
    for path in around_programs(texts):
        try:
            file, on_tpus[path] = without_tpu_branches(ParsedFile.parse(path, texts[path], trees))
            file, logs = without_deferred_logs(file)
            on_tpus[path] += logs
            file, kernels = without_accelerators(file)
            on_tpus[path] += kernels
            file, told = without_what_only_tells(file)
            on_tpus[path] += told
            file, printed = without_prints(file)
            on_tpus[path] += printed
            files.append(file)
        except cst.ParserSyntaxError as error:
            message = f"cannot be parsed; is it Python 2? `tf-migrate --python2 {path}` converts it first"
            finding = Finding(str(path), error.raw_line, error.raw_column + 1, "TFM902", Severity.ERROR, message)
            findings.setdefault(path, []).append(finding)
    files, without = without_horovod(files, texts)
    for path, remarks in without.items():
        on_tpus[path] += remarks
    files, refused = by_hand.write_out(write_out(files, texts))
    for index, file in enumerate(files):
        file, around = without_surroundings(file)
        files[index], looks = without_looks(file)
        on_tpus[file.path] += [*around, *looks]
    files = [
        with_one_tower(with_symbols_in_place(with_chosen_partitioners(with_named_estimators(with_a_name_each(file)))))
        for file in _in_plain_words(files, texts)
    ]
    files = with_arguments_written_out(files, texts)
    for finding in refused:
        findings.setdefault(Path(finding.path), []).append(finding)
    project = Project.of(files)
    places = {file.path: find_places(file) for file in files if "stimator" in file.bare or file.spread}
    new_texts: dict[Path, str] = {}
    target = TARGETS[strategy]
    if layouts is not None:
        target = with_layouts(target, layouts)
    wants_tpus = strategy in ("auto", "tpu")
    everything = Everything(project, texts, on_tpus, wants_tpus, GENERATIONS[keras], trees, beside)
    read = read_all(project, everything, places, findings)
    programs, blocked = read.programs, read.blocked
    references = references_to_models(project, everything, programs, places)
    served = [node for program in programs for _, _, node in program.servings]
    everything.serving |= {node.func for node in served if isinstance(node, cst.Call)}
    request = Request(
        *(project, everything, references, blocked, GENERATIONS[keras], target, target.loop or LOOPS[loop]),
        clusters=clusters,
        flowing=read.flowing,
    )
    for group in groups_of(project, programs):
        towers = any(program.of_towers for program in group.programs)
        migrate = migrate_towers if towers and strategy == "auto" and loop == "fit" else migrate_group
        texts_of_group, group_findings = isolated(group, partial(migrate, group, request))
        new_texts.update(texts_of_group)
        for finding_path, found in group_findings.items():
            findings.setdefault(finding_path, []).extend(found)
    for group in groups_of(project, read.refused):
        for finding_path, found in isolated(group, partial(refused_group, group, request))[1].items():
            if finding_path not in new_texts:
                known = findings.setdefault(finding_path, [])
                known += [finding for finding in found if finding not in known]
    return new_texts, findings
