"""The worklist: which programs are left, what stands in their way, and what opens most of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from migrator.cli.program import program
from migrator.findings import Finding, Severity
from migrator.worklist.plan import by_reason, counts, duration, efforts, openings
from migrator.worklist.programs import Program, Reason, reason_of
from tests.rules.programs import program as one_program
from tests.source.notebook_files import cut, notebook

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(program, ["status", *map(str, arguments)], prog_name="tf-migrate")


def blocked(name: str, *symbols: str) -> Program:
    found = []
    for line, symbol in enumerate(symbols, 1):
        finding = Finding("shared.py", line, 1, "TFM203", Severity.MANUAL, f"`{symbol}` is gone")
        found.append((Reason("TFM203", symbol, True), (finding,)))
    return Program(name, 1, "tf.estimator.Estimator", "blocked", (name,), tuple(found))


def test_what_opens_most() -> None:
    programs = [
        blocked("a.py", "tf.x"),
        blocked("b.py", "tf.y", "tf.z"),
        blocked("c.py", "tf.z", "tf.y"),
        blocked("d.py", "tf.x", "tf.w", "tf.v", "tf.u"),
        Program("e.py", 1, "", "native", ("e.py",)),
    ]
    found = [([reason.what for reason in one.reasons], [p.path for p in one.programs]) for one in openings(programs)]
    assert found == [
        (["tf.x"], ["a.py"]),
        (["tf.y", "tf.z"], ["b.py", "c.py"]),
        (["tf.y", "tf.z", "tf.x"], ["a.py", "b.py", "c.py"]),
    ]
    assert openings(programs[4:]) == []
    assert counts(programs) == {"native": 1, "bridge": 0, "blocked": 4, "silent": 0}
    first = next((reason.what, len(some), alone) for reason, some, alone in by_reason(programs))
    assert first == ("tf.x", 2, 1)


def test_an_estimator_that_a_function_makes_is_the_program_of_its_caller(tmp_path: Path) -> None:
    text = one_program().replace("estimator = ", "def build():\n    return ", 1)
    made = text[text.index("def build") :].partition("\n\n")[0]
    rest = text.replace(made, f"{made}\n\nestimator = build()", 1)
    (tmp_path / "train.py").write_text(rest)
    programs = json.loads(run("--format", "json", tmp_path).output)["programs"]
    assert programs == {"total": 1, "native": 1, "bridge": 0, "blocked": 0, "silent": 0}


def test_what_is_shared_is_counted_once() -> None:
    programs = [blocked("a.py", "tf.x"), blocked("b.py", "tf.x"), Program("c.py", 1, "", "native", ("c.py",))]
    assert [(one.count, one.minutes) for one in efforts(programs)] == [(1, 10), (1, 30), (1, 5)]
    assert [duration(minutes) for minutes in (45, 200, 60 * 30)] == [
        "45 minutes",
        "about 3 hours",
        "about 5 days of 6 hours",
    ]


def test_a_name_whose_place_is_told_takes_a_line_and_no_search() -> None:
    def minutes(*messages: str) -> int:
        findings = [Finding("x.py", n, 1, "TFM270", Severity.MANUAL, message) for n, message in enumerate(messages, 1)]
        blocking = tuple((reason_of(one), (one,)) for one in findings)
        return sum(part.minutes for part in efforts([Program("x.py", 1, "", "blocked", ("x.py",), blocking)]))

    told = "`tf.log` is not in TensorFlow 2.21: write `tf.math.log`"
    assert minutes(told) == 5
    assert minutes(told, "`tf.contrib.rnn` is not in TensorFlow 2.21: contrib is gone") == 5 + 30 + 5


def test_reasons() -> None:
    def reason(code: str, message: str) -> Reason:
        return reason_of(Finding("x.py", 1, 1, code, Severity.MANUAL, message))

    assert reason("TFM203", "`tf.a.b` is not in TensorFlow 2.21") == Reason("TFM203", "tf.a.b", True)
    assert reason("TFM157", "`horovod` needs TensorFlow 1: take it out") == Reason("TFM157", "horovod", True)
    first = reason("TFM104", "`loss` is set 2 times: say which")
    assert first == reason("TFM104", "`cost` is set 13 times: say which") and not first.is_symbol


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    (root / "setup.cfg").write_text("")
    guide = (FIXTURES / "multi_worker_guide/original.py").read_text()
    (root / "guide.ipynb").write_text(notebook([None, *cut(guide, 2)]))
    (root / "scopes.py").write_text((FIXTURES / "variable_scopes/original/train.py").read_text())
    gone = one_program(network="net = tf.contrib.bayesflow.x(features)")
    (root / "gone.py").write_text(gone)
    (root / "book.ipynb").write_text(notebook(["!ls", *cut(gone, 1)]))
    (root / "names.py").write_text("import tensorflow as tf\nx = tf.contrib.bayesflow.x\n")
    (root / "bad.py").write_text("import tensorflow as tf\nprint 'x'\n")
    (root / "plain.py").write_text("import tensorflow as tf\nprint(tf.constant(1))\n")
    return root


def test_a_project(project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(project)
    before = {path.name: path.read_bytes() for path in project.iterdir()}
    result = run(".", "--format", "json")
    assert result.exit_code == 2, "a file cannot be read"
    data = json.loads(result.stdout)
    forms = {one["path"]: one["form"] for one in data["list"]}
    assert forms == {
        "book.ipynb": "blocked",
        "gone.py": "blocked",
        "guide.ipynb": "native",
        "names.py": "blocked",
        "scopes.py": "bridge",
    }
    assert data["programs"] == {"total": 5, "native": 1, "bridge": 1, "blocked": 3, "silent": 0}
    assert data["openings"][0]["reasons"][0]["what"] == "tf.contrib.bayesflow.x"
    assert [place.split(":")[0] for place in data["openings"][0]["programs"]] == ["book.ipynb", "gone.py"]
    book = next(one for one in data["list"] if one["path"] == "book.ipynb")
    (where,) = [at for at, code in enumerate(cut((project / "gone.py").read_text(), 1), 2) if "bayesflow" in code]
    assert book["blocking"][0]["findings"][0]["place"].startswith(f"book.ipynb:cell {where}:")
    assert data["effort"]["minutes"] == sum(one["minutes"] for one in data["effort"]["parts"])
    assert [one["code"] for one in data["unreadable"]] == ["TFM902"]
    assert before == {path.name: path.read_bytes() for path in project.iterdir()}

    checked = CliRunner().invoke(program, ["--check", "."], prog_name="tf-migrate").stdout
    assert "5 programs: 1 native, 1 by the bridge, 3 blocked.\n8 files: " in checked, "programs, and files"

    text = run(".").stdout
    assert "5 programs with TensorFlow 1:" in text
    assert "Replacing this one unblocks 2 programs: tf.contrib.bayesflow.x" in text
    assert re.search(r"blocked +gone\.py:\d+ tf\.contrib\.bayesflow\.x \(TFM203\)", text)

    page = tmp_path / "left.html"
    assert run(".", "--format", "html", "--output", page).exit_code == 2
    html = page.read_text()
    assert html.startswith("<!DOCTYPE html>") and "tf.contrib.bayesflow.x" in html
    assert not re.search(r"(src|href)=\"(?!#)", html), "it needs no other file"


def test_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("import tensorflow as tf\nprint(tf.constant('<script>'))\n")
    result = run(tmp_path)
    assert (result.exit_code, result.stdout) == (0, "No TensorFlow 1 programs are left.\n")


def test_words_of_programs_are_no_markup(tmp_path: Path) -> None:
    (tmp_path / "<b>&.py").write_text("import tensorflow as tf\nx = tf.contrib.bayesflow.x\n")
    html = run(tmp_path, "--format", "html").stdout
    assert "&lt;b&gt;&amp;.py" in html and "<b>&" not in html


def test_codes_lead_to_their_text_and_nothing_is_a_link_in_a_button(project: Path) -> None:
    html = run(project, "--format", "html").stdout
    ids = re.findall(r'<h3 id="(TFM\d+)">', html)
    assert {"TFM203", "TFM902"} <= set(re.findall(r'href="#(TFM\d+)"', html)) <= set(ids)
    assert not any("<a " in summary for summary in re.findall(r"<summary>(.*?)</summary>", html))


def test_programs_that_keep_their_sessions_are_counted_as_bridges(tmp_path: Path) -> None:
    text = "import tensorflow as tf\nx = tf.placeholder(tf.float32)\ns = tf.Session()\nprint(s.run(2 * x, {x: 1.0}))\n"
    (tmp_path / "ask.py").write_text(text)
    assert re.search(r"^bridge +\S*ask\.py:3$", run(tmp_path).output, re.MULTILINE)
