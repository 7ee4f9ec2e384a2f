"""`tf-migrate checkpoint`: usage, table, codes and exit codes around what carries the values over."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.checkpoint import carrying
from migrator.checkpoint.carrying import Carried, Order, Row
from migrator.checkpoint.matching import CheckpointError
from migrator.harness import environments
from migrator.rules.catalogue import all_rules
from tests.cli.conftest import Run

KERNEL = Row("a/kernel", "dense/kernel", (3, 2), "", True)
STEP = Row("global_step", "optimizer.iterations", (), "", True)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(environments, "migrated_python", lambda say=None: tmp_path / "python")
    path = tmp_path / "migrated.py"
    path.write_text("x = 1\n")
    return path


def answer(monkeypatch: pytest.MonkeyPatch, *rows: Row, error: CheckpointError | None = None) -> list[Order]:
    orders: list[Order] = []

    def carry(order: Order) -> Carried:
        orders.append(order)
        if error is not None:
            raise error
        return Carried(Path("out/ckpt"), rows, "creation order", (("TFM862", "`rate` does not exist"),))

    monkeypatch.setattr(carrying, "carry", carry)
    return orders


def test_a_table_of_all_tensors(run: Run, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = answer(monkeypatch, KERNEL, STEP)
    result = run("checkpoint", "model_dir", program, "-o", "new", "--", "--rate", "0.1")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["a/kernel", "dense/kernel", "3x2", "equal"]
    assert lines[2].split() == ["global_step", "optimizer.iterations", "-", "equal"]
    assert lines[3:] == [
        "TFM862 `rate` does not exist",
        "2 tensors, paired by creation order: all equal. Written: out/ckpt",
    ]
    (order,) = orders
    assert (order.tf1, order.keras, order.out) == (Path("model_dir"), None, Path("new"))
    assert order.arguments == ("--rate", "0.1")


def test_a_tensor_that_differs_is_a_failure(run: Run, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, KERNEL, Row("b", "c", (), "", False))
    result = run("checkpoint", "model_dir", program)
    assert result.exit_code == 2
    assert "DIFFERENT" in result.stdout
    assert "all equal" not in result.stdout
    assert result.stderr.startswith("TFM868 `b` ")


def test_what_does_not_fit_is_a_code_with_a_page(run: Run, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, error=CheckpointError("TFM861", "the checkpoint has no values for dense/kernel [3, 2]"))
    result = run("checkpoint", "model_dir", program)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "TFM861 the checkpoint has no values for dense/kernel [3, 2]\n"
    assert {f"TFM86{i}" for i in range(9)} <= {rule.code for rule in all_rules()}


def test_back_asks_for_the_names(run: Run, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = answer(monkeypatch, KERNEL)
    assert run("checkpoint", "keras", program, "--back").exit_code == 2
    assert run("checkpoint", "tf1", program, "--like", "tf1").exit_code == 2
    assert not orders
    assert run("checkpoint", "keras", program, "--back", "--like", "tf1", "-o", "new").exit_code == 0
    assert (orders[0].tf1, orders[0].keras) == (Path("tf1"), Path("keras"))


@pytest.mark.parametrize("text", ["[]", "{", '{"a": 1}'])
def test_a_name_map_that_is_none(run: Run, program: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "names.json").write_text(text)
    result = run("checkpoint", "m", program, "--name-map", tmp_path / "names.json")
    assert result.exit_code == 2
    assert "names.json" in result.stderr
