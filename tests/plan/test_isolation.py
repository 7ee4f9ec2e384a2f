"""A mistake of tf-migrate's own costs the program that it is met in, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import migrator.bridge.project as bridges
import migrator.migration.project as project
from migrator.migration import reading
from migrator.migration.native.migration import NativeMigration
from migrator.modern import modernize
from migrator.program.parsed import ParsedFile
from tests.rules.programs import program, run_project

GOOD = program()
BAD = program(network="net = tf.nn.tanh(net)  # BROKEN")
SHARED = "import tensorflow as tf\n\n\ndef squashed(net):\n    return tf.nn.sigmoid(net)\n"
FILES = {"a.py": GOOD, "b.py": BAD, "c/train.py": program(network="net = tf.nn.elu(net)"), "d.py": SHARED}
WITHOUT = {path: text for path, text in FILES.items() if path != "b.py"}


def _broken(text: str) -> None:
    if "BROKEN" in text:
        raise KeyError("predictor")


def _fail_in(monkeypatch: pytest.MonkeyPatch, *forms: type[NativeMigration]) -> None:
    before = NativeMigration.run

    def run(self: NativeMigration) -> Any:
        for file in self.group.files.values():
            if type(self) in forms:
                _broken(file.text)
        return before(self)

    monkeypatch.setattr(NativeMigration, "run", run)


def _fail_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    before = reading.read_programs

    def read(project: Any, mentioning: Any, file: ParsedFile, *more: Any) -> Any:
        _broken(file.text)
        return before(project, mentioning, file, *more)

    monkeypatch.setattr(reading, "read_programs", read)


def _fail_in_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    before = project.with_arguments_written_out

    def write_out(files: Any, texts: Any) -> Any:
        for file in files:
            _broken(file.text)
        return before(files, texts)

    monkeypatch.setattr(project, "with_arguments_written_out", write_out)


@pytest.mark.parametrize("place", ["forms", "reading", "pass"])
def test_the_others_come_out_as_if_it_were_not_there(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    expected = run_project(WITHOUT, style="native")
    assert expected["a.py"][0] != GOOD
    if place == "forms":
        _fail_in(monkeypatch, NativeMigration)
    elif place == "reading":
        _fail_reading(monkeypatch)
    else:
        _fail_in_a_pass(monkeypatch)
    got = run_project(FILES, style="native")
    text, findings = got.pop("b.py")
    assert got == expected
    assert (text, [finding.code for finding in findings]) == (BAD, ["TFM905"])
    assert "KeyError: 'predictor'" in findings[0].message and "Please report it" in findings[0].message
    if place != "pass":
        assert findings[0].line == BAD[: BAD.index("tf.estimator.Estimator(")].count("\n") + 1


def test_programs_that_share_a_file_with_it_stay_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    uses = "import d\n" + program(network="net = d.squashed(net)")
    files = {"a.py": GOOD, "b.py": uses + "# BROKEN\n", "c.py": uses, "d.py": SHARED}
    for fail in (_fail_reading, _fail_in_a_pass):
        with monkeypatch.context() as patch:
            fail(patch)
            got = run_project(files, style="native")
        assert [got[path][0] == text for path, text in files.items()][:2] == [False, True]
        assert got["a.py"] == run_project({"a.py": GOOD}, style="native")["a.py"]


def test_a_text_that_is_not_python_changes_no_file_of_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    before = NativeMigration.run

    def run(self: NativeMigration) -> Any:
        texts, findings = before(self)
        return {path: text + "(\n" * ("BROKEN" in text) for path, text in texts.items()}, findings

    monkeypatch.setattr(NativeMigration, "run", run)
    files = {"b.py": "import d\n" + program(network="net = d.squashed(net)  # BROKEN"), "d.py": SHARED, "a.py": GOOD}
    got = run_project(files, style="native")
    assert [got[path][0] == text for path, text in files.items()] == [True, True, False]
    assert [finding.code for finding in got["b.py"][1]] == ["TFM905"]


def test_files_of_tensorflow_2() -> None:
    text = "import tensorflow as tf\n\noptimizer = tf.keras.optimizers.Adam(lr=0.1)\n"
    texts = {Path("a.py"): text, Path("b.py"): text + "# BROKEN\n"}

    def check(file: Any) -> list[Any]:
        _broken(file.parsed.text)
        return []

    new, findings = modernize(texts, (), (check,))
    assert [(path, [one.code for one in found if one.code == "TFM905"]) for path, found in findings.items()] == [
        (Path("b.py"), ["TFM905"]),
        (Path("a.py"), []),
    ]
    assert list(new) == [Path("a.py")] and "learning_rate=0.1" in new[Path("a.py")]


def test_bridges(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run_project(WITHOUT, style="bridge")
    assert expected["a.py"][0] != GOOD
    before = bridges.bridge_file

    def bridge_file(text: str, *more: Any) -> Any:
        _broken(text)
        return before(text, *more)

    monkeypatch.setattr(bridges, "bridge_file", bridge_file)
    got = run_project(FILES, style="bridge")
    text, findings = got.pop("b.py")
    assert got == expected
    assert (text, [finding.code for finding in findings if finding.code == "TFM905"]) == (BAD, ["TFM905"])
