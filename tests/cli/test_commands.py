"""`rules`, `verify` and `environments`: the shell around what others do."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

from migrator.findings import Finding, Severity
from migrator.rules.catalogue import all_rules
from tests.cli.conftest import Run


def test_rules_lists_all_codes_in_order(run: Run) -> None:
    result = run("rules")
    assert result.exit_code == 0
    codes = [line.split()[0] for line in result.stdout.splitlines()]
    assert codes == [rule.code for rule in all_rules()]
    assert {"TFM901", "TFM902", "TFM903", "TFM904"} <= set(codes)


@pytest.mark.parametrize("code", ["TFM902", "tfm902", "902"])
def test_rules_shows_a_page(run: Run, code: str) -> None:
    result = run("rules", code)
    assert result.exit_code == 0
    assert result.stdout.startswith("# TFM902: ")
    assert "--python2" in result.stdout


@pytest.mark.parametrize("symbol", ["tf.layers.dense", "tf.compat.v1.layers.dense", "tensorflow.layers.dense"])
def test_rules_shows_what_becomes_of_a_symbol(run: Run, symbol: str) -> None:
    result = run("rules", symbol)
    assert result.exit_code == 0
    assert result.stdout.startswith("# tf.layers.dense\n")
    assert "tf.keras.layers.Dense(10, activation=tf.nn.relu)(net)" in result.stdout


def test_an_unknown_symbol_is_told_with_its_like(run: Run) -> None:
    result = run("rules", "tf.keras.layers.dropout")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "tf.layers.dropout" in result.stderr and "tf.nn.dropout" in result.stderr


def test_unknown_rule(run: Run) -> None:
    result = run("rules", "TFM999")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "TFM999" in result.stderr


@pytest.fixture
def scripts(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "original.py", tmp_path / "migrated.py"
    for path in paths:
        path.write_text("x = 1\n")
    return paths


@pytest.mark.parametrize("package", ["psutil", "numpy"])
def test_missing_extra_is_one_clear_message(
    run: Run, scripts: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    for name in [name for name in sys.modules if name.startswith("migrator.harness")]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def without(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name.split(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        return real(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    result = run("verify", *scripts)
    assert result.exit_code == 2
    assert "pip install 'tf-migrate[verify]'" in result.stderr
    assert package in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "options",
    [["--cluster", "wrker=1"], ["--cluster", "worker"], ["--steps", "0"], ["--name-map", "/missing"]],
)
def test_verify_wrong_usage(run: Run, scripts: tuple[Path, Path], options: list[str]) -> None:
    result = run("verify", *scripts, *options)
    assert result.exit_code == 2
    assert "Usage: tf-migrate verify" in result.output


def test_verify_missing_script(run: Run, tmp_path: Path) -> None:
    assert run("verify", tmp_path / "a.py", tmp_path / "b.py").exit_code == 2


@pytest.mark.parametrize("names", ["[]", "{", '{"a": 1}'])
def test_verify_name_map_that_is_none(run: Run, scripts: tuple[Path, Path], tmp_path: Path, names: str) -> None:
    (tmp_path / "names.json").write_text(names)
    result = run("verify", *scripts, "--name-map", tmp_path / "names.json")
    assert result.exit_code == 2
    assert "names.json is not" in result.output


def test_verify_passes_everything_on(
    run: Run, scripts: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from migrator.harness import session

    cases: list[session.Case] = []

    def verify(case: session.Case, progress: object) -> None:
        cases.append(case)
        raise session.ForkServerError("no interpreter")

    monkeypatch.setattr(session, "verify", verify)
    (tmp_path / "names.json").write_text('{"a": "b"}')
    options = ["--cluster", "chief=1,ps=2", "--steps", 7, "--report", tmp_path / "out", "--name-map"]
    result = run("verify", *scripts, *options, tmp_path / "names.json", "--", "--rate", "0.1", "--cluster")
    assert (result.exit_code, result.stderr) == (2, "Error: no interpreter\n")
    (case,) = cases
    assert (case.original, case.migrated) == scripts
    assert case.args == ("--rate", "0.1", "--cluster")
    assert (str(case.shape), case.steps) == ("chief=1,ps=2", 7)
    assert (case.names, case.report_dir) == ({"a": "b"}, tmp_path / "out")


def test_findings_sort_by_place_and_render() -> None:
    first = Finding("a.py", 2, 1, "TFM101", Severity.MIGRATED, "m")
    assert sorted([Finding("a.py", 10, 1, "TFM101", Severity.MIGRATED, "m"), first])[0] == first
    assert first < Finding("a.py", 2, 1, "TFM101", Severity.REVIEW, "m"), "equal but for the severity"
    assert str(first) == "a.py:2:1: TFM101 m"
