"""The parts of the recorder that need no TensorFlow."""

import ast
import importlib.util
import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

INSIDE = Path(__file__).parents[2] / "migrator" / "harness" / "inside"


def load(name: str) -> ModuleType:
    specification = importlib.util.spec_from_file_location(f"inside_{name}", INSIDE / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


parts = load("parts")
redirect = load("redirect")


def two_parts() -> list[object]:
    return [
        parts.Part("w", None, [2, 0], [1, 2], [3, 2], "float32", True),
        parts.Part("w", None, [0, 0], [2, 2], [3, 2], "float32", True),
        parts.Part("b", None, [0], [2], [2], "float32", False),
    ]


def test_parts_are_joined_and_cut() -> None:
    whole = {"w": np.arange(6, dtype=np.float32).reshape(3, 2), "b": np.array([7, 8], np.float32)}
    pieces = parts.cut(two_parts(), whole)
    assert [piece.tolist() for piece in pieces] == [[[4, 5]], [[0, 1], [2, 3]], [7, 8]]
    joined = parts.join(two_parts(), pieces)
    assert joined.keys() == whole.keys()
    for name, value in whole.items():
        np.testing.assert_array_equal(joined[name], value)


def test_parts_are_described_as_one_variable() -> None:
    first, second = parts.describe(two_parts())
    assert (first["name"], first["shape"], first["shards"], first["order"]) == ("w", [3, 2], 2, 0)
    assert (second["name"], second["shards"], second["trainable"], second["order"]) == ("b", 1, False, 1)


def test_values_that_do_not_fit_are_refused() -> None:
    with pytest.raises(KeyError, match="no initial value for variable 'w'"):
        parts.cut(two_parts(), {"b": np.zeros(2)})
    with pytest.raises(ValueError, match=r"'w' has shape \(2, 3\)"):
        parts.cut(two_parts(), {"w": np.zeros((2, 3)), "b": np.zeros(2)})


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ulp_moves(dtype: type) -> None:
    value = np.random.RandomState(0).normal(size=(50, 20)).astype(dtype)
    values = {"w": value, "b": value.copy(), "counts": np.arange(3)}
    moved = parts.moved_one_ulp(values, 3)
    assert moved["w"].dtype == dtype
    up = moved["w"] == np.nextafter(value, dtype(np.inf))
    down = moved["w"] == np.nextafter(value, dtype(-np.inf))
    assert np.all(up ^ down)
    assert 0.4 < up.mean() < 0.6
    np.testing.assert_array_equal(moved["counts"], np.arange(3))
    np.testing.assert_array_equal(moved["w"], parts.moved_one_ulp({"w": value}, 3)["w"])
    assert np.any(moved["w"] != moved["b"])
    assert np.any(moved["w"] != parts.moved_one_ulp(values, 4)["w"])


def test_arrays_of_any_name_on_disk(tmp_path: Path) -> None:
    arrays = {"file": np.ones(2), "a/b|c": np.arange(3), "scalar": np.float32(2)}
    parts.write_arrays(str(tmp_path / "x.npz"), arrays)
    with np.load(tmp_path / "x.npz") as archive:
        assert sorted(archive.files) == sorted(arrays)
        np.testing.assert_array_equal(archive["a/b|c"], np.arange(3))
        assert archive["scalar"].shape == ()
    assert os.listdir(tmp_path) == ["x.npz"]


def test_folders_are_moved_consistently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = redirect.Redirect(str(tmp_path / "model"))
    monkeypatch.chdir(tmp_path)
    assert moved.folder("runs/a") == moved.folder(str(tmp_path / "runs" / "a")) == moved.folder(b"runs/a")
    assert moved.folder("runs/a") != moved.folder("runs/b")
    assert moved.folder("runs/a/eval") == moved.folder("runs/a") + "/eval"
    assert moved.folder(moved.folder("runs/a")) == moved.folder("runs/a")
    assert moved.folder(None) is None
    assert moved.folder(Path("runs/a")).startswith(str(tmp_path / "model"))


def test_files_are_moved_with_their_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = redirect.Redirect(str(tmp_path / "model"))
    monkeypatch.chdir(tmp_path)
    assert moved.file("runs/a/ckpt-{epoch}") == moved.folder("runs/a") + "/ckpt-{epoch}"
    assert moved.file("ckpt") == moved.folder(".") + "/ckpt"
    assert os.path.isdir(moved.folder("runs/a"))
    assert not os.path.exists("runs")


def test_a_file_that_the_run_did_not_write_is_read_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = redirect.Redirect(str(tmp_path / "model"))
    monkeypatch.chdir(tmp_path)
    Path("given").mkdir()
    Path("given/ckpt-1.index").touch()
    assert moved.reading("given/ckpt-1") == "given/ckpt-1"
    Path(moved.file("given/ckpt-1.index")).touch()
    assert moved.reading("given/ckpt-1") == moved.folder("given") + "/ckpt-1"
    assert moved.reading("absent/ckpt-1") == moved.folder("absent") + "/ckpt-1"


def test_an_argument_is_changed_however_it_is_passed() -> None:
    def function(first: str, second: str = "s") -> tuple[str, str]:
        return first, second

    wrapped = redirect.wrap_argument(function, "second", str.upper)
    assert wrapped("a", "b") == wrapped("a", second="b") == wrapped(first="a", second="b") == ("a", "B")
    assert wrapped("a") == ("a", "s")


@pytest.mark.parametrize(
    "name", ["batches", "folder", "parts", "record_estimator", "record_keras", "recorder", "redirect"]
)
def test_the_recorder_is_python_37(name: str) -> None:
    ast.parse((INSIDE / f"{name}.py").read_text(), feature_version=(3, 7))
