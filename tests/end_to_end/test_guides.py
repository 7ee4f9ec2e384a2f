"""The programs of the five guides, as they are printed there: they run, come out, run again, and are the same.

They lie beside the project (shared/seeds) and are never copied into it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from migrator.harness.cluster import ClusterShape, ForkServer, Launch
from migrator.harness.environments import migrated_python, original_python
from migrator.harness.protocol.results import Status
from migrator.harness.runs import Session, plan_for
from migrator.harness.session import collect_original, make_case, verify
from tests.end_to_end.proving import told

SEEDS = Path(__file__).resolve().parents[3] / "shared" / "seeds"

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(not SEEDS.is_dir(), reason="the guides' programs are not here (shared/seeds)"),
]


@dataclass(frozen=True)
class Guide:
    """A program of a guide. `old`: it does not run on TensorFlow 2.21 as it is."""

    path: str
    old: bool = False
    cores: int = 0

    @property
    def name(self) -> str:
        return self.path.removesuffix(".py").replace("/", "_")


GUIDES = (
    Guide("S1/v1.py", old=True),
    Guide("S1/v1_env.py", old=True),
    Guide("S1/notebook.py", old=True),
    Guide("S1/tf2_ps.py", old=True),
    Guide("S1/tf2_mwms.py"),
    Guide("S2/guide.py"),
    Guide("S3/guide.py", old=True),
    Guide("S4/article.py", old=True),
)
ON_TPU = tuple(Guide(f"S5/{name}.py", cores=2) for name in ("p_fit", "p_loop", "p_multi", "p_run", "p_spe"))


def named(guide: Guide) -> str:
    return guide.name


def prepare(guide: Guide, folder: Path) -> tuple[Path, Path]:
    """The original and the migrated program, each beside what the registry lacks."""
    scripts = folder / "original" / "program.py", folder / "migrated" / "program.py"
    for script in scripts:
        script.parent.mkdir(parents=True)
        shutil.copyfile(SEEDS / guide.path, script)
    run = subprocess.run(
        [sys.executable, "-m", "migrator", str(scripts[1])], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in run.stderr and run.returncode in (0, 1), run.stderr
    again = subprocess.run(
        [sys.executable, "-m", "migrator", "--check", str(scripts[1])], capture_output=True, text=True, check=False
    )
    assert "would" not in again.stdout, again.stdout
    for script in scripts:
        shutil.copytree(SEEDS / "shims", script.parent, dirs_exist_ok=True)
    return scripts


def run_plainly(python: Path, script: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script as its user would, with no variable set by us (but for the size of the data made up)."""
    foreign = ("PYTHONPATH", "TF_CONFIG", "TF_USE_LEGACY_KERAS")
    environment = {key: value for key, value in os.environ.items() if key not in foreign}
    environment |= {"TF_CPP_MIN_LOG_LEVEL": "2", "SEED_TRAIN": "256", "SEED_TEST": "64"}
    return subprocess.run(
        [str(python), str(script)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=script.parent,
        env=environment,
    )


@pytest.mark.parametrize("guide", GUIDES, ids=named)
def test_a_migrated_guide_runs_by_itself(guide: Guide, tmp_path: Path) -> None:
    _, migrated = prepare(guide, tmp_path)
    run = run_plainly(migrated_python(), migrated)
    assert run.returncode == 0, run.stderr[-2000:]


@pytest.mark.parametrize("guide", GUIDES, ids=named)
def test_a_guide_runs_where_it_was_written_for(guide: Guide, tmp_path: Path) -> None:
    original, _ = prepare(guide, tmp_path)
    first = run_plainly(original_python(), original)
    assert first.returncode == 0, first.stderr[-2000:]
    later = run_plainly(migrated_python(), original)
    assert (later.returncode != 0) == guide.old, later.stderr[-2000:]


@pytest.mark.parametrize("guide", ON_TPU, ids=named)
def test_a_guide_for_a_tpu_runs_on_the_stand_in(
    guide: Guide, first_keras2: ForkServer, servers: tuple[ForkServer, ForkServer], tmp_path: Path
) -> None:
    original, migrated = prepare(guide, tmp_path)
    for name, server, script in (("original", first_keras2, original), ("migrated", servers[1], migrated)):
        folder = tmp_path / f"run-{name}"
        folder.mkdir()
        shape = ClusterShape()
        plan = plan_for("migrated", folder, shape, tpu_cores=guide.cores)
        environment = {"SEED_TRAIN": "256", "SEED_TEST": "64"}
        outcome = server.run(Launch("migrated", script, (), shape, folder, plan, environment))
        assert outcome.failure is None, (name, outcome.failure)
        assert (folder / "record").is_dir()


@dataclass(frozen=True)
class Pair:
    """How a guide's program is verified."""

    guide: Guide
    cluster: str = ""
    devices: int = 1

    @property
    def name(self) -> str:
        return "_".join(filter(None, [self.guide.name, self.cluster, f"{self.devices}" if self.devices > 1 else ""]))


PAIRS = (
    Pair(Guide("S1/tf2_ps.py")),
    Pair(Guide("S1/tf2_mwms.py")),
    Pair(Guide("S1/tf2_mwms.py"), cluster="worker=2"),
    Pair(Guide("S1/v1_env.py"), cluster="chief=1,worker=2,ps=2,evaluator=1"),
    Pair(Guide("S1/notebook.py")),
    Pair(Guide("S2/guide.py")),
    Pair(Guide("S3/guide.py")),
    Pair(Guide("S4/article.py"), devices=2),
    Pair(Guide("S5/p_fit.py", cores=2)),
    Pair(Guide("S5/p_loop.py", cores=2)),
    Pair(Guide("S5/p_multi.py", cores=2)),
    Pair(Guide("S5/p_spe.py", cores=2)),
)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_guide_is_equivalent(pair: Pair, session_for: Callable[[int], Session], tmp_path: Path) -> None:
    original, migrated = prepare(pair.guide, tmp_path)
    case = make_case(original, migrated, cluster=pair.cluster, devices=pair.devices, tpu_cores=pair.guide.cores or 1)
    report = verify(case, session=session_for(2))
    assert report.document["verdict"] == Status.EQUIVALENT.value, told(report.document)


ON_SERVERS = """
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id).join()
strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)


def make(context):
    rows = [[1.0, 1.5], [2.0, 2.5], [3.0, 3.5], [4.0, 4.5]], [[0.3], [0.5], [0.7], [0.9]]
    return tf.data.Dataset.from_tensor_slices(rows).repeat().batch(2)


with strategy.scope():
    model = tf.keras.models.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])
    model.compile(tf.keras.optimizers.Adagrad(learning_rate=0.05), "mse")
model.fit(tf.keras.utils.experimental.DatasetCreator(make), epochs=2, steps_per_epoch=10)
"""


def test_servers_of_tensorflow_2_are_compared_on_their_cluster(
    session_for: Callable[[int], Session], tmp_path: Path
) -> None:
    """The coordinator does not train on either side; two workers take their steps in a fixed order."""
    original, migrated = tmp_path / "old.py", tmp_path / "new.py"
    for script in (original, migrated):
        script.write_text(ON_SERVERS, encoding="utf-8")
    run = subprocess.run([sys.executable, "-m", "migrator", str(migrated)], capture_output=True, text=True, check=False)
    assert run.returncode == 0 and ".experimental.ParameterServerStrategy" not in migrated.read_text(), run.stdout
    session = session_for(2)
    case = make_case(original, migrated, cluster="chief=1,worker=2,ps=1")
    evidence = collect_original(session, case, lambda _: None, replicates=1)
    document = verify(case, session=session, evidence=evidence).document
    assert document["verdict"] == "EQUIVALENT", told(document)
    levels = {level["id"]: level for level in document["levels"]}
    assert levels["L5s"]["status"] == "EQUIVALENT" and "worker:1 10" in levels["L5s"]["summary"]
    migrated.write_text(migrated.read_text().replace("0.05", "0.06"))
    assert verify(case, session=session, evidence=evidence).document["verdict"] == "DIFFERENT"
