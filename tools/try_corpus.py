"""Tries the codemod on folders of other people's programs, and writes a table of what came of it.

    python tools/try_corpus.py FOLDER... --table rates.md --data rates.json [--before older.json] [--timeout 300]
        [--style auto] [--try [--arguments arguments.json]]

Every folder is one repository. Its Python files (and the code cells of its notebooks) are copied to a scratch folder,
migrated there in this process's children, compiled, and migrated once more. Nothing is written to the folders.

A program is one construction of an Estimator: `tf.estimator.Estimator(...)` (custom), TPUEstimator (tpu), a canned one
(canned), `model_to_estimator` (keras) or a subclass of one (subclass). A file that was seen before, byte for byte, in
an earlier folder is not counted again, and neither is another version of a file (`name@commit` beside `name`).

With --try the bridged programs are run so far that their models are built (`tf-migrate --try`). Those that lack data,
arguments, a package or a network are counted apart. `arguments.json` has those of scripts, by the end of their path.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import re
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

import libcst as cst

from migrator.findings import Finding, Severity
from migrator.harness.building import build_models
from migrator.migrate import Options, Result, migrate
from migrator.program.parsed import ParsedFile, Project
from migrator.program.subclasses import estimator_subclasses
from migrator.source.discovery import discover
from migrator.source.newlines import unified
from migrator.source.notebooks import code_of
from migrator.source.reading import Source, read

KINDS = ("custom", "tpu", "canned", "keras", "subclass")
# Names that belong to TensorFlow and not to the program.
_SETTINGS = frozenset(
    """hooks exporters saving_listeners checkpoint_path predict_keys warm_start_from scaffold train_distribute
    eval_distribute experimental_distribute session_config device_fn protocol training_hooks evaluation_hooks
    prediction_hooks training_chief_hooks export_outputs features labels mode params config""".split()  # noqa: SIM905
)
# What a program needs besides TensorFlow, by the modules that it imports: it is none that one process trains alone.
_NEEDS = {
    "horovod": "Horovod",
    "npu_bridge": "Ascend NPUs",
    "tensorflowonspark": "Spark",
    "tf_yarn": "YARN",
    "adanet": "adanet",
    "kfac": "kfac",
    "tensorflow_ranking": "tensorflow_ranking",
}
_DONE = ("native", "bridge")
_SIZES = (("1 file", 1, 1), ("2 to 5", 2, 5), ("6 and more", 6, 10**6))
_EXAMPLES = 3
_LARGEST = 20_000_000  # bytes of a file that is copied for --try


@dataclass
class Program:
    """One construction of an Estimator, and what became of it: native, bridge, blocked or silent.

    `needs` is the library that distributes the program, runs it or makes Estimators for it ("": TensorFlow alone), and
    `reached` how many files with TensorFlow it consists of. `tried` says what came of building its models.
    """

    file: str
    line: int
    kind: str
    status: str = "silent"
    reasons: list[str] = field(default_factory=list)
    needs: str = ""
    reached: int = 1
    tried: str = ""


@dataclass
class Tried:
    """What one repository gave."""

    name: str
    files: int = 0
    lines: int = 0
    seconds: float = 0.0
    programs: list[Program] = field(default_factory=list)
    examples: dict[str, list[str]] = field(default_factory=dict)
    unreadable: dict[str, int] = field(default_factory=dict)
    crashes: list[str] = field(default_factory=list)
    unparsable: list[str] = field(default_factory=list)
    unstable: list[str] = field(default_factory=list)
    changed: int = 0
    timed_out: bool = False
    told: list[str] = field(default_factory=list)


def _blocks(finding: Finding) -> bool:
    """Whether a finding is a reason of its own."""
    return finding.severity in (Severity.MANUAL, Severity.ERROR)


def family(finding: Finding) -> str:
    """A finding's code and its message without what is particular to one program."""

    def keep(match: re.Match[str]) -> str:
        name, _, attribute = match[1].partition(".")
        if name == "tf" or match[1] in _SETTINGS:
            return match[0]
        return f"`….{attribute}`" if attribute.isidentifier() else "`…`"

    message = re.sub(r"`([^`]*)`", keep, finding.message)
    return f"{finding.code} {re.sub(r'[0-9]+', 'N', message)}"[:160]


# -- copying ---------------------------------------------------------------------------------------------------------


def copy(folder: Path, scratch: Path, whole: bool = False) -> None:
    """The Python files of a folder, and its notebooks as Python files; with `whole` all that is not large."""
    for path in sorted(folder.rglob("*")):
        other = path.suffix not in (".py", ".ipynb")
        if path.is_symlink() or not path.is_file() or (other and not whole):
            continue
        if other and (".git" in path.parts or path.stat().st_size > _LARGEST):
            continue
        target = scratch / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".py" or other:
            shutil.copyfile(path, target)
            continue
        text = code_of(path.read_text(encoding="utf-8", errors="replace"))
        if text.strip():
            target.with_suffix(".py").write_text(text, encoding="utf-8")


# -- one repository --------------------------------------------------------------------------------------------------


class _Constructions(cst.CSTVisitor):
    def __init__(self, file: ParsedFile) -> None:
        super().__init__()
        self.file = file
        self.found: list[tuple[cst.CSTNode, str]] = []
        self.classes: dict[cst.CSTNode, cst.CSTNode] = {}

    def visit_Call(self, node: cst.Call) -> None:
        kind = _kind(self.file.imports.tensorflow(node.func))
        if kind is not None:
            self.found.append((node, kind))

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        if any(_kind(self.file.imports.tensorflow(base.value)) is not None for base in node.bases):
            calls = [call for made, _, call in estimator_subclasses(self.file) if made is node]
            # What came of it is told where the Estimator is made, at the call of its `__init__`, or at the class.
            self.found.append(((calls[0] if calls else None) or node, "subclass"))
            self.classes[self.found[-1][0]] = node


def _kind(name: str | None) -> str | None:
    if name is None:
        return None
    last = name.rpartition(".")[2]
    if last == "Estimator":
        return "custom"
    if last == "TPUEstimator":
        return "tpu"
    if last == "model_to_estimator":
        return "keras"
    if ("estimator" in name or "contrib.learn" in name) and last.endswith(("Classifier", "Regressor", "Estimator")):
        return "canned"
    return None


def attempt(
    folder: Path, scratch: Path, tried: Tried, options: Options, arguments: dict[str, list[str]] | None = None
) -> None:
    """Migrates the files of a scratch folder; after a crash each of its subfolders by itself."""
    inputs = [read(found.path, strict=found.named) for found in discover([scratch])]
    sources = []
    for item in inputs:
        if isinstance(item, Finding):
            tried.unreadable[item.code] = tried.unreadable.get(item.code, 0) + 1
        else:
            sources.append(Source(item.path, item.raw, unified(item.text), item.encoding, item.bom))
    tried.files, tried.lines = len(inputs), sum(source.text.count("\n") for source in sources)
    _migrate(sources, folder, scratch, tried, options, arguments=arguments)


def _migrate(
    sources: Sequence[Source],
    folder: Path,
    scratch: Path,
    tried: Tried,
    options: Options,
    depth: int = 0,
    arguments: dict[str, list[str]] | None = None,
) -> None:
    started = time.process_time()
    try:
        results, project = _observed(sources, options)
    except Exception as error:
        tried.seconds += time.process_time() - started
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno} {type(error).__name__}: {error}"[:300]
        names = sorted({source.path.relative_to(scratch).parts[: depth + 1] for source in sources})
        if len(names) > 1 or (len(sources) > 1 and depth < 12):
            for name in names:
                part = [s for s in sources if s.path.relative_to(scratch).parts[: depth + 1] == name]
                _migrate(part, folder, scratch, tried, options, depth + 1, arguments)
        if not tried.crashes or len(sources) == 1:
            shown = str(folder / sources[0].path.relative_to(scratch)) if len(sources) == 1 else str(folder)
            tried.crashes.append(f"{shown}: {where}")
        return
    tried.seconds += time.process_time() - started
    new = {result.source.path: result.text for result in results}
    findings = {result.source.path: result.findings for result in results}
    for result in results:
        if result.text != result.source.text:
            tried.changed += 1
            name = str(folder / result.source.path.relative_to(scratch))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    compile(result.text, name, "exec", dont_inherit=True)
            except (SyntaxError, ValueError) as error:
                tried.unparsable.append(f"{name}: {error}")
    if project is not None:
        _programs(project, findings, new, folder, scratch, tried)
    if arguments is not None:
        _try(new, findings, folder, scratch, tried, arguments)
    if tried.changed:
        # All of them: what an unchanged `__init__.py` passes on counts the second time, too.
        again = [Source(s.path, s.raw, new[s.path], s.encoding, s.bom) for s in sources]
        known = {source.path for source in sources}
        again += [Source(p, text.encode(), text, "utf-8", False) for p, text in new.items() if p not in known]
        for result in migrate(again, options):
            if result.text != result.source.text:
                tried.unstable.append(str(folder / result.source.path.relative_to(scratch)))


def _try(
    new: dict[Path, str],
    findings: dict[Path, tuple[Finding, ...]],
    folder: Path,
    scratch: Path,
    tried: Tried,
    arguments: dict[str, list[str]],
) -> None:
    """Builds the models of the bridged programs."""
    bridges, sessions = (
        {path for path, found in findings.items() if any(f.code == code for f in found)}
        for code in ("TFM155", "TFM199")
    )
    given = {path: words for path in new for end, words in arguments.items() if path.as_posix().endswith(f"/{end}")}
    built = build_models(new, bridges, seconds=300, arguments=given, sessions=sessions)
    for program in tried.programs:
        if program.status == "bridge":
            program.tried = built.states.get(scratch / Path(program.file).relative_to(folder), "")
    for path, found in sorted(built.findings.items()):
        tried.told += [f"{f.code} {folder / path.relative_to(scratch)}:{f.line} {f.message}" for f in found]


def _observed(sources: Sequence[Source], options: Options) -> tuple[list[Result], Project | None]:
    """The results, and the project as the codemod read it (None where no file concerned it)."""
    made: list[Project] = []

    def of(files: Iterable[ParsedFile]) -> Project:
        made.append(read_project(files))
        return made[-1]

    read_project = Project.of
    with mock.patch.object(Project, "of", staticmethod(of)):
        results = migrate(sources, options)
    return results, made[0] if made else Project.of(_parsed(sources))


def _parsed(sources: Iterable[Source]) -> list[ParsedFile]:
    """The files that speak of Estimators and can be parsed, for a form that does not read programs."""
    found = []
    for source in sources:
        if "tensorflow" in source.text:
            with contextlib.suppress(cst.ParserSyntaxError):
                found.append(ParsedFile.parse(source.path, source.text))
    return found


def _programs(
    project: Project,
    findings: dict[Path, tuple[Finding, ...]],
    new: dict[Path, str],
    folder: Path,
    scratch: Path,
    tried: Tried,
) -> None:
    # Without what was written out for canned Estimators; TensorFlow may reach a file through an `import *`.
    for own_text in Project.of(ParsedFile.parse(file.path, file.text) for file in project.files).files:
        file = own_text
        if "stimator" not in file.text:
            continue
        finder = _Constructions(own_text)
        own_text.module.visit(finder)
        for node, kind in finder.found:
            line, column = own_text.position(node)
            program = Program(str(folder / file.path.relative_to(scratch)), line, kind)
            reached = _reach(project, file)
            program.needs = _needs(project, reached)
            places = {(line, column), own_text.position(finder.classes.get(node, node))}
            here = [f for f in findings.get(file.path, ()) if (f.line, f.column) in places]
            program.reached = sum("tensorflow" in project._by_path[path].text for path in reached) or 1
            if any(f.code == "TFM155" for f in here):
                program.status = "bridge"
            elif any(f.code == "TFM101" for f in here):
                program.status = "native"
            else:
                own = [f for f in findings.get(file.path, ()) if _blocks(f)]
                for path in () if own else reached:
                    own += [f for f in findings.get(path, ()) if _blocks(f)]
                for found in own:
                    name = family(found)
                    program.reasons.append(name)
                    lines = project._by_path[Path(found.path)].text.split("\n")
                    shown = lines[found.line - 1].strip()[:100] if found.line <= len(lines) else ""
                    place = f"{folder / Path(found.path).relative_to(scratch)}:{found.line}  `{shown}`"
                    examples = tried.examples.setdefault(name, [])
                    if place not in examples and len(examples) < _EXAMPLES:
                        examples.append(place)
                program.reasons = sorted(set(program.reasons))
                if own:
                    program.status = "blocked"
            tried.programs.append(program)


def _needs(project: Project, reached: Iterable[Path]) -> str:
    """What a program needs besides TensorFlow: a library that its files import."""
    for path in reached:
        text = project._by_path[path].text
        for module, name in _NEEDS.items():
            if re.search(rf"^\s*(import|from)\s+{module}\b", text, flags=re.MULTILINE):
                return name
    return ""


def _reach(project: Project, file: ParsedFile) -> list[Path]:
    """The files that a file imports, directly or not, and itself."""
    found, queue = [], [file]
    while queue:
        file = queue.pop()
        if file.path in found:
            continue
        found.append(file.path)
        for origin in file.imports.names.values():
            parts = origin.split(".")
            for length in range(len(parts), 0, -1):
                other = project.sibling(file, ".".join(parts[:length]))
                if other is not None:
                    queue.append(other)
                    break
    return found


# -- all repositories ------------------------------------------------------------------------------------------------


def _child(folder: Path, answer: Connection, options: Options, arguments: dict[str, list[str]] | None) -> None:
    tried = Tried(folder.name)
    with tempfile.TemporaryDirectory(prefix="try-corpus-") as made:
        scratch = Path(made).resolve() / folder.name
        scratch.mkdir()
        copy(folder, scratch, whole=arguments is not None)
        try:
            attempt(folder, scratch, tried, options, arguments)
        except Exception as error:
            tried.crashes.append(f"{folder}: {type(error).__name__}: {error}\n{traceback.format_exc(limit=-3)}")
    answer.send(asdict(tried))


def try_folder(
    folder: Path, timeout: float, options: Options, arguments: dict[str, list[str]] | None = None
) -> dict[str, Any]:
    """Tries one repository in a child process; after `timeout` seconds it is given up.

    With `arguments`, those of scripts by the end of their path, the models of bridged programs are built, too.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(folder, theirs, options, arguments))
    child.start()
    theirs.close()
    try:
        found: dict[str, Any] = ours.recv() if ours.poll(timeout) else {**asdict(Tried(folder.name)), "timed_out": True}
    except EOFError:
        found = {**asdict(Tried(folder.name)), "crashes": [f"{folder}: the process died"]}
    child.kill()
    child.join()
    return found


def without_copies(results: Iterable[dict[str, Any]], folders: Sequence[Path]) -> None:
    """Takes out the programs of files that came before: the same bytes, or another version of a file."""
    seen: dict[str, str] = {}
    for tried, folder in zip(results, folders, strict=True):
        kept = []
        for program in tried["programs"]:
            path = Path(program["file"])
            raw = path.read_bytes() if path.exists() else program["file"].encode()
            place = f"{folder.name.partition('@')[0]}/{path.relative_to(folder)}"
            keys = (hashlib.sha256(raw).hexdigest(), place)
            known = {seen.get(key, program["file"]) for key in keys}
            if known == {program["file"]}:
                kept.append(program)
                seen.update(dict.fromkeys(keys, program["file"]))
        tried["programs"] = kept


def table(results: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]] = ()) -> str:
    """The report as Markdown."""
    lines = ["# The codemod on other people's programs", "", *_totals(results, before), "", "## Repositories", ""]
    lines.append(
        "| repository | files | programs | native | bridge | blocked | silent | crashes | bad | unstable | s |"
    )
    lines.append("|---|---|---|---|---|---|---|---|---|---|---|")
    for tried in results:
        count = Counter(p["status"] for p in tried["programs"])
        note = " (timed out)" if tried["timed_out"] else ""
        cells = [tried["name"] + note, tried["files"], len(tried["programs"])]
        cells += [count[status] for status in (*_DONE, "blocked", "silent")]
        cells += [len(tried["crashes"]), len(tried["unparsable"]), len(tried["unstable"]), f"{tried['seconds']:.1f}"]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    lines += _built(results)
    for title, key in (("Crashes", "crashes"), ("Does not parse", "unparsable"), ("Changes again", "unstable")):
        found = [line for tried in results for line in tried[key]]
        if found:
            lines += ["", f"## {title}", "", *(f"- {line}" for line in found)]
    for title, kinds in (("custom Estimators", ("custom",)), ("TPUEstimators and others", KINDS[1:])):
        lines += ["", f"## What blocks {title}", "", *_reasons(results, kinds)]
    return "\n".join(lines) + "\n"


def _built(results: Sequence[dict[str, Any]]) -> list[str]:
    """How many of the bridged programs build their models, apart from those that lack something."""
    states = Counter(p.get("tried") for tried in results for p in tried["programs"] if p.get("tried"))
    if not states:
        return []
    stand_ins = states.pop("built on stand-ins", 0)
    states["built"] += stand_ins
    apart = ", ".join(f"{name} {count}" for name, count in sorted(states.items()) if name not in ("built", "fails"))
    of = states["built"] + states["fails"]
    lines = ["", "## Models that are built (--try)", ""]
    lines.append(
        f"Built: {states['built']} of {of} ({100 * states['built'] / (of or 1):.0f} %), {stand_ins} of them on "
        f"stand-ins for what is not here; apart: {apart or 'none'}."
    )
    return [*lines, "", *(f"- {line}" for tried in results for line in tried.get("told", ()))]


def _totals(results: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]]) -> list[str]:
    seconds = sum(tried["seconds"] for tried in results) or 1.0
    files = sum(tried["files"] for tried in results)
    code = sum(tried["lines"] for tried in results)
    lines = [
        f"{len(results)} repositories, {files} files, {code} lines, {seconds:.0f} CPU-seconds "
        f"({files / seconds:.0f} files and {code / seconds:.0f} lines a CPU-second).",
        "",
        "| kind | programs | native | bridge | blocked | silent | out | before |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        count, old = _count(results, kind), _count(before, kind)
        total = sum(count.values())
        if total:
            cells = [kind, total, *(count[s] for s in (*_DONE, "blocked", "silent")), _rate(count)]
            lines.append("| " + " | ".join(str(c) for c in [*cells, _rate(old) if old else "-"]) + " |")
    return [*lines, "", *_two_rates(results)]


def _two_rates(results: Sequence[dict[str, Any]]) -> list[str]:
    """The rate of all programs, and that of those which need nothing but TensorFlow in one process."""
    programs = [p for tried in results for p in tried["programs"]]
    every, alone = (Counter(p["status"] for p in some) for some in (programs, [p for p in programs if not p["needs"]]))
    others = Counter(p["needs"] for p in programs if p["needs"])
    left_out = ", ".join(f"{name} {count}" for name, count in others.most_common()) or "none"

    def share(count: Counter[str]) -> str:
        return f"{sum(count[one] for one in _DONE)} of {sum(count.values())} ({_rate(count)})"

    lines = [
        f"Out: {share(every)}; of those that need nothing but TensorFlow: {share(alone)}.",
        f"What the others need: {left_out}.",
        "",
        "Those that need nothing but TensorFlow, by the files with TensorFlow that they reach:",
        "",
    ]
    for name, least, most in _SIZES:
        some = [p for p in programs if not p["needs"] and least <= p.get("reached", 1) <= most]
        by_form = ", ".join(f"{form} {sum(p['status'] == form for p in some)}" for form in _DONE)
        lines.append(f"- {name}: {share(Counter(p['status'] for p in some))}; {by_form}")
    return lines


def _count(results: Sequence[dict[str, Any]], kind: str) -> Counter[str]:
    return Counter(p["status"] for tried in results for p in tried["programs"] if p["kind"] == kind)


def _rate(count: Counter[str]) -> str:
    return f"{100 * sum(count[one] for one in _DONE) / (sum(count.values()) or 1):.0f} %"


def _reasons(results: Sequence[dict[str, Any]], kinds: Sequence[str]) -> list[str]:
    blocked: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    examples: dict[str, list[str]] = defaultdict(list)
    for tried in results:
        for program in tried["programs"]:
            if program["kind"] in kinds:
                blocked.update(program["reasons"])
                codes.update({reason[:6] for reason in program["reasons"]})
                alone.update(program["reasons"] if len(program["reasons"]) == 1 else ())
        for reason, places in tried["examples"].items():
            examples[reason] = (examples[reason] + places)[:_EXAMPLES]
    lines = ["Programs by code: " + ", ".join(f"{code} {count}" for code, count in codes.most_common()) + ".", ""]
    lines += ["Programs by reason (a second number counts those with no other known reason):", ""]
    for reason, count in sorted(blocked.items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"- **{count}** ({alone[reason]}) {reason}")
        if count > 3:
            lines += [f"    - {place}" for place in examples[reason]]
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Tries the codemod on folders of other people's programs.")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--table", type=Path, help="where the report goes (stdout without it)")
    parser.add_argument("--data", type=Path, help="where the figures go as JSON")
    parser.add_argument("--before", type=Path, help="the figures of an earlier run, to compare with")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one repository")
    parser.add_argument("--style", default="auto", help="the form: auto, native or bridge")
    parser.add_argument("--try", dest="tries", action="store_true", help="build the models of bridged programs, too")
    parser.add_argument("--arguments", type=Path, help="arguments of scripts, by the end of their path, as JSON")
    given = parser.parse_args(arguments)
    words = json.loads(given.arguments.read_text(encoding="utf-8")) if given.arguments else {}
    before = json.loads(given.before.read_text(encoding="utf-8")) if given.before else ()
    results: list[dict[str, Any]] = []
    folders = [folder.resolve() for folder in given.folders]
    for folder in folders:
        options = Options(style=given.style, bridge=given.style == "auto")
        results.append(try_folder(folder, given.timeout, options, words if given.tries else None))
        print(f"{folder.name}: {len(results[-1]['programs'])} programs", file=sys.stderr, flush=True)
        without_copies(results, folders[: len(results)])
        if given.data:
            given.data.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        if given.table:
            given.table.write_text(table(results, before), encoding="utf-8")
    if not given.table:
        print(table(results, before), end="")
    return 1 if any(t["crashes"] or t["unparsable"] or t["unstable"] for t in results) else 0


if __name__ == "__main__":
    raise SystemExit(main())
