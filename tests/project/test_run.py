"""The engine in parts and in processes: the same comes out, and what goes wrong in one of them is said."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from migrator.findings import Finding, Severity
from migrator.migrate import Options, Result
from migrator.project import run
from migrator.project.gather import gather
from migrator.project.run import EngineError, Means, migrate_parts, parts_of
from migrator.settings import find
from migrator.source.discovery import discover
from migrator.source.reading import Source, decode
from tests.rules.test_each_use import CONFIG, text_of

FIXTURES = Path(__file__).parents[2] / "fixtures"


def source(name: str, text: str) -> Source:
    made = decode(Path(name), text.encode())
    assert isinstance(made, Source)
    return made


def test_programs_that_share_nothing_are_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "a/train.py": "import tensorflow as tf\nimport net\n",
        "a/net.py": "import tensorflow as tf\n",
        "a/other.py": "import tensorflow as tf\nimport common\n",
        "b/train.py": "from net import x\nimport tensorflow\n",
        "b/net.py": "from tensorflow import x\n",
        "run_all.py": "from a.train import main\nfrom b import net\nimport os\n",
        "common.py": "x = 1\n",
        "star.py": "from os import *\n",
        "keras_estimator.py": "# the word is tensorflow\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    gathered = gather(discover([Path()]), find([Path()]), whole=True)
    assert sorted(sorted(str(source.path) for source in part) for part in parts_of(gathered)) == [
        ["a/net.py", "a/train.py", "keras_estimator.py", "run_all.py"],
        ["a/other.py", "common.py", "keras_estimator.py"],  # which is beside it, and stays
        ["b/net.py", "b/train.py", "keras_estimator.py", "run_all.py"],
    ]


def test_what_a_program_imports_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module without TensorFlow may change what a model_fn reads; it has no outcome of its own."""
    (tmp_path / "train.py").write_text(text_of("", "config.PARAMS['rate']", "config.double()\n", "import config"))
    (tmp_path / "config.py").write_text("from deeper import PARAMS, double\n")
    (tmp_path / "deeper.py").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    parts = parts_of(gather(discover([Path()]), find([Path()]), whole=True))
    assert [[(str(one.path), one.is_beside) for one in part] for part in parts] == [
        [("train.py", False), ("config.py", True), ("deeper.py", True)]
    ]
    made = migrate_parts(parts, Options(), Means())
    assert [str(path) for path in made] == ["train.py"] and "class KerasEstimator" in made[Path("train.py")].text


@pytest.mark.parametrize("starts", ["fork", "spawn"])
def test_several_processes_make_the_same(starts: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "STARTS_BY", starts)
    monkeypatch.chdir(tmp_path)
    for module in ("socket", "random", "click", "migrator"):  # which a new interpreter would find first
        (tmp_path / f"{module}.py").write_text("open('imported', 'w').close()\n")
    names = ("multi_worker_guide", "classifier", "custom_loop", "towers")
    parts = [
        [source(f"{name}/train.py", (FIXTURES / name / "original.py").read_text(encoding="utf-8"))] for name in names
    ]
    told: list[tuple[int, int]] = []
    one = migrate_parts(parts, Options(bridge=True), Means(jobs=1))
    two = migrate_parts(parts, Options(bridge=True), Means(jobs=2, advance=lambda *done: told.append(done)))
    assert one == two
    assert list(one) == list(two)
    assert any(result.changed for result in one.values())
    assert told == [(number, 4) for number in range(1, 5)]
    assert not (tmp_path / "imported").exists()


def fake(monkeypatch: pytest.MonkeyPatch, crash: bool) -> None:
    def migrate(sources: Sequence[Source], options: Options) -> list[Result]:
        if "bad" in str(sources[0].path):
            if crash:
                os._exit(9)
            raise RuntimeError("engine failure")
        finding = Finding(str(sources[0].path), 1, 1, "TFM102", Severity.REVIEW, "x")
        return [Result(one, one.text + "#", (finding,)) for one in sources]

    monkeypatch.setattr("migrator.migrate.migrate", migrate)


@pytest.mark.skipif(sys.platform != "linux", reason="a fork has the engine that is put in the place of ours")
@pytest.mark.parametrize(("crash", "said"), [(False, "RuntimeError: engine failure"), (True, "worker process died")])
def test_what_goes_wrong_in_a_process_is_said(monkeypatch: pytest.MonkeyPatch, crash: bool, said: str) -> None:
    fake(monkeypatch, crash)
    parts = [[source(f"{name}.py", "x = 1\n")] for name in ("a", "b", "bad", "c")]
    assert len(migrate_parts(parts[:2], Options(), Means(jobs=2))) == 2
    with pytest.raises(EngineError, match=said):
        migrate_parts(parts, Options(), Means(jobs=2))
