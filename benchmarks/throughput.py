"""Whether a migrated program trains as fast as its original: steps per second of both, in turns, on this machine.

usage: python benchmarks/throughput.py [--rounds N] [--seconds S] [--json FILE] [--markdown FILE] [CASE ...]

Each case is a fixture whose training is made longer; the codemod of this checkout migrates it. In every round both run
once, one after the other, in fresh forks of an interpreter that has imported TensorFlow; the figures are medians over
the rounds. The first steps (tracing, the first checkpoint) are left out, and a training that lasts longer than
--seconds after them is ended there, so that slow programs make fewer steps (not that of workers in step, which would
wait for each other). Beside the steps per second stand the CPU milliseconds per step of all processes together: on a
busy machine they say more. Where a coordinator gives steps to workers, the clock starts when the first ones are done. A
case that fails has a row that says so, and the exit code is 1. With --json, cases that the file has already are kept,
and not run again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from migrator.harness import environments
from migrator.harness.case import counterpart
from migrator.harness.cluster import ClusterShape, ForkServer, Launch
from migrator.migrate import Options, migrate
from migrator.source.reading import decode

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks" / "programs"))
import kinds  # noqa: E402

WATCH = ROOT / "benchmarks" / "programs" / "stepwatch.py"
INSIDE = ROOT / "migrator" / "harness" / "inside"


@dataclass(frozen=True)
class Case:
    """A fixture (or a `text`), what makes its training longer, and where it runs. `cluster` is the original's.

    `style`, `strategy` and `loop` are what the codemod is asked for, and `trains` what does in the original (see
    stepwatch.py).
    `tpu_cores` virtual CPUs stand in for a TPU; of `devices` a bridged program is given as many. `shares`: trainers
    with parameter servers that wait for each other.
    """

    fixture: str
    changes: Mapping[str, str] = field(default_factory=dict)
    cluster: str = ""
    arguments: tuple[str, ...] = ()
    script: str = "original.py"
    style: str = "native"
    keras: int = 2
    warm: int = 100
    strategy: str = "auto"
    loop: str = "fit"
    trains: str = "estimator"
    tpu_cores: int = 0
    shares: bool = False
    devices: int = 0
    text: str = ""

    @property
    def in_step(self) -> bool:
        """Whether trainers of several processes wait for each other, so that none may end before the others."""
        return self.cluster.startswith("worker=") or self.shares


_MORE_IMAGES = {"images(96, 1)": "images(30000, 1)", "range(2)": "range(1)"}


_ONE, _TWO = "chief=1,ps=2", "chief=1,worker=1,ps=2"
_FLAGS = tuple(f"--{name}={{{name}}}" for name in ("ps_hosts", "worker_hosts", "job_name", "task_index"))


def _servers(cluster: str, fixture: str = "parameter_server_fixed_shards", **more: str) -> Case:
    changes = {"MAX_STEPS = 40": "MAX_STEPS = 2000", "_steps=20": "_steps=200"}
    return Case(fixture, changes, cluster, warm=200, **more)  # type: ignore[arg-type]


_TPU = ("--use_tpu=true", "--tpu=any", "--train_steps=2000", "--iterations_per_loop=100")
_MORE_ROUNDS = {".repeat(2)": ".repeat(300)"}
_MORE_STEPS = {".repeat(2))": ".repeat(), steps=2000)", "        eval_distribute=strategy,\n": ""}
_CENTRAL = {
    "MirroredStrategy(devices=": 'experimental.CentralStorageStrategy(parameter_device="/cpu:0", compute_devices='
}
_LARGE_IMAGES = {"images(96, 1)": "images(30000, 1)", "range(2)": "range(1)", "filters=4": "filters=128"} | {
    "units=16": "units=512",
    ".batch(20)": ".batch(128)",
}
_HIDDEN = "tf.layers.dense(features, 1024, tf.nn.relu)"
_LARGE_SERVERS = {
    "MAX_STEPS = 40": "MAX_STEPS = 400",
    "_steps=20": "_steps=200",
    "features, 16,": f"{_HIDDEN}, 1024,",
    "BATCH_SIZE = 16": "BATCH_SIZE = 128",
}
_LARGE_WORKERS = {
    "STEPS = 30": "STEPS = 200",
    "batch(10)": "repeat().batch(128)",
    "features, 8,": f"{_HIDDEN}, 1024,",
    "Optimizer(0.1)": "Optimizer(0.001)",
}

CASES: dict[str, Case] = {
    "classifier": Case("classifier", _MORE_IMAGES),
    "classifier, Keras 3": Case("classifier", _MORE_IMAGES, keras=3),
    "classifier, central storage": Case("classifier", _MORE_IMAGES, strategy="central-storage"),
    "wide and deep": Case("wide_and_deep", {"steps=30": "steps=1000"}),
    "two files": Case("two_files", arguments=("--steps", "2000"), script="train.py"),
    "a cluster inside one process": Case("in_process_cluster", {"MAX_STEPS = 24": "MAX_STEPS = 1000"}),
    "train_and_evaluate": Case(
        "parameter_server_fixed_shards", {"MAX_STEPS = 40": "MAX_STEPS = 2000", "_steps=20": "_steps=500"}
    ),
    "the multi-worker guide": Case("multi_worker_guide", {".batch(1)": ".repeat(700).batch(1)"}),
    "three mirrored workers": Case("multi_worker_sharded", {"STEPS = 12": "STEPS = 500"}, "worker=3"),
    "a tower loop": Case(
        "towers", arguments=("--max_steps=2000",), strategy="mirrored", loop="custom", trains="session"
    ),
    "the custom loop's program": Case(
        "custom_loop",
        {"estimator.train(train_input_fn)": "estimator.train(lambda: train_input_fn().repeat(), steps=2000)"},
        strategy="mirrored",
        loop="custom",
    ),
    "bridge": Case("classifier", _MORE_IMAGES, style="bridge"),
    "bridge, wide and deep": Case("wide_and_deep", {"steps=30": "steps=1000"}, style="bridge"),
    "bridge, two replicas": Case("mirrored_replicas", _MORE_ROUNDS, style="bridge", devices=2),
    "bridge, scopes": Case("variable_scopes", {"max_steps=30": "max_steps=1000"}, script="train.py", style="bridge"),
    "bridge, two workers": Case("multi_worker_mirrored", {"STEPS = 30": "STEPS = 500"}, "worker=2", style="bridge"),
    "bridge, parameter servers, one trainer": _servers(_ONE, style="bridge"),
    "bridge, parameter servers, two trainers": _servers(_TWO, style="bridge"),
    "BERT": Case(
        "bert_classifier",
        {"FLAGS.train_batch_size * 2)": "FLAGS.train_batch_size * 60)"},
        arguments=("--do_eval=false", "--do_predict=false"),
        script="run.py",
        style="bridge",
        warm=20,
    ),
    "max_size partitioner": _servers(_ONE, "parameter_server_max_size"),
    "min_max partitioner": _servers(_ONE, "parameter_server_min_size"),
    "parameter servers, one trainer": _servers(_ONE),
    "parameter servers, two trainers": _servers(_TWO),
    "parameter servers, one trainer, custom loop": _servers(_ONE, strategy="parameter-server", loop="custom"),
    "parameter servers, two trainers, custom loop": _servers(_TWO, strategy="parameter-server", loop="custom"),
    "between-graph, two trainers": Case(
        "between_graph", {"LAST_STEP = 24": "LAST_STEP = 2000"}, _TWO, _FLAGS, warm=200, trains="session"
    ),
    "between-graph in step": Case(
        "between_graph_sync",
        cluster="chief=1,worker=1,ps=1",
        arguments=(*_FLAGS, "--last_step=1000"),
        trains="session",
        shares=True,
    ),
    "TPU (a stand-in of one core)": Case(
        "tpu_convnet",
        arguments=_TPU,
        tpu_cores=1,
    ),
    "TPU (a stand-in of one core), custom loop": Case(
        "tpu_convnet",
        arguments=_TPU,
        tpu_cores=1,
        loop="custom",
    ),
    "two replicas": Case("mirrored_replicas", _MORE_ROUNDS),
    "two replicas, custom loop": Case("mirrored_replicas", _MORE_STEPS, loop="custom"),
    "two replicas, central storage": Case("mirrored_replicas", _MORE_ROUNDS | _CENTRAL),
    "two replicas, central storage, custom loop": Case("mirrored_replicas", _MORE_STEPS | _CENTRAL, loop="custom"),
    "train_and_evaluate, custom loop": Case(
        "parameter_server_fixed_shards",
        {"MAX_STEPS = 40": "MAX_STEPS = 2000", "_steps=20": "_steps=500"},
        loop="custom",
    ),
    "two mirrored workers, custom loop": Case(
        "multi_worker_mirrored", {"STEPS = 30": "STEPS = 500"}, "worker=2", loop="custom"
    ),
    "two mirrored workers": Case("multi_worker_mirrored", {"STEPS = 30": "STEPS = 500"}, "worker=2"),
    "classifier, larger": Case("classifier", _LARGE_IMAGES, warm=20),
    "bridge, larger": Case("classifier", _LARGE_IMAGES, style="bridge", warm=20),
    "bridge, scopes, larger": Case(
        "variable_scopes",
        {
            "max_steps=30": "max_steps=1000",
            ", 8,": ", 1024,",
            "signals(96, 1)).batch(20)": "signals(96, 1)).repeat().batch(512)",
        },
        style="bridge",
        script="train.py",
        warm=20,
    ),
    "bridge, parameter servers, one trainer, larger": Case(
        "parameter_server_fixed_shards", _LARGE_SERVERS, _ONE, style="bridge", warm=20
    ),
    "bridge, parameter servers, two trainers, larger": Case(
        "parameter_server_fixed_shards", _LARGE_SERVERS, _TWO, style="bridge", warm=20
    ),
    "bridge, two workers, larger": Case("multi_worker_mirrored", _LARGE_WORKERS, "worker=2", style="bridge", warm=20),
    "two replicas, larger": Case(
        "mirrored_replicas",
        _MORE_ROUNDS | {"BATCH = 8": "BATCH = 128", "features, 8,": f"{_HIDDEN}, 1024,"},
        warm=20,
    ),
    "parameter servers, one trainer, larger": Case(
        "parameter_server_fixed_shards", _LARGE_SERVERS, "chief=1,ps=2", warm=20
    ),
    "parameter servers, two trainers, larger": Case(
        "parameter_server_fixed_shards", _LARGE_SERVERS, "chief=1,worker=1,ps=2", warm=20
    ),
    "two mirrored workers, larger": Case(
        "multi_worker_mirrored",
        _LARGE_WORKERS,
        "worker=2",
        warm=20,
    ),
}


@dataclass(frozen=True)
class Speed:
    """Steps per second of all trainers together, and CPU milliseconds per step of all processes."""

    steps_per_second: float
    cpu_ms_per_step: float


#: Networks of one kind each, of some thousand weights and of a million.
CASES |= {
    f"{kind}, {size}{', bridge' if style == 'bridge' else ''}": Case(
        "", text=kinds.program(kind, size == "a million"), style=style, warm=200
    )
    for kind in kinds.KINDS
    for size in ("small", "a million")
    for style in ("native", "bridge")
}


def originals(case: Case, folder: Path) -> dict[Path, bytes]:
    """The longer program's files, written to `folder`."""
    if case.text:
        (folder / case.script).write_text(case.text, encoding="utf-8")
        return {folder / case.script: case.text.encode()}
    source = ROOT / "fixtures" / case.fixture
    files = sorted((source / "original").glob("*.py")) or [source / "original.py"]
    found, changed = {}, set()
    for path in files:
        text = path.read_text(encoding="utf-8")
        for old, new in case.changes.items():
            changed |= {old} if old in text else set()
            text = text.replace(old, new)
        found[folder / path.name] = text.encode()
        (folder / path.name).write_text(text, encoding="utf-8")
    if case.changes and not changed:
        raise Failed(f"nothing to make longer was found: {', '.join(case.changes)}")
    return found


def migrated(case: Case, files: Mapping[Path, bytes], folder: Path) -> None:
    """Writes what the codemod makes of the files to `folder`."""
    options = Options(case.strategy, case.style, str(case.keras), case.loop)
    for result in migrate([decode(path, content) for path, content in files.items()], options):  # support files too
        if any(finding.severity.value == "manual" for finding in result.findings):
            raise Failed(f"it is not migrated: {result.findings}")
        (folder / result.source.path.name).write_text(result.text, encoding="utf-8")


class Failed(Exception):
    """A case that could not be measured."""


def measure(server: ForkServer, kind: str, case: Case, script: Path, shape: ClusterShape, seconds: float) -> Speed:
    """Runs a program once. Raises Failed."""
    made = "bridge" if case.style == "bridge" else "fit" if case.loop == "fit" else "loop"
    trains = case.trains if kind == "original" else made
    environment = {"STEPWATCH": trains, "STEPWATCH_SECONDS": "" if case.in_step else str(seconds)}
    if case.tpu_cores:
        environment |= {"STEPWATCH_TPU": str(case.tpu_cores), "STEPWATCH_INSIDE": str(INSIDE)}
    if case.devices and kind == "migrated":
        environment["STEPWATCH_DEVICES"] = str(case.devices)
    with tempfile.TemporaryDirectory(prefix="tf-migrate-throughput-") as name:
        folder = Path(name)
        text = script.read_text(encoding="utf-8").replace("/tmp/tf_migrate_fixtures", f"{name}/models")
        copy = script.with_name(f"run_{script.name}")
        copy.write_text(text, encoding="utf-8")
        launch = Launch(
            kind,
            WATCH,
            (str(copy), str(folder / "times"), str(case.warm), *case.arguments),
            shape,
            folder / "run",
            environment=environment,
            stall_timeout=600.0,
            total_timeout=1800.0,
        )
        outcome = server.run(launch)
        if outcome.failure is not None:
            raise Failed(f"the {kind} program failed: {outcome.failure.message}")
        found = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("times-*") if not path.suffix]
        if not found:
            raise Failed(f"the {kind} program took too few steps")
        start, end = min(one["start"] for one in found), max(one["end"] for one in found)
        cpu = sum(_cpu(path, start, end) for path in folder.glob("times-*.cpu"))
    counts = [one["steps"] for one in found]
    steps = max(counts) if case.in_step else sum(counts)
    return Speed(steps / (end - start), 1000.0 * cpu / steps)


def _cpu(path: Path, start: float, end: float) -> float:
    """The CPU seconds of a process between two times."""
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    found = [float(row[1]) for row in rows if len(row) == 2 and start <= float(row[0]) <= end]
    return found[-1] - found[0] if found else 0.0


def compare(name: str, rounds: int, seconds: float) -> dict[str, object]:
    """The medians of a case. Raises Failed."""
    case = CASES[name]
    shape = ClusterShape.parse(case.cluster)
    with tempfile.TemporaryDirectory(prefix="tf-migrate-throughput-") as made:
        folders = {"original": Path(made) / "original", "migrated": Path(made) / "migrated"}
        for folder in folders.values():
            folder.mkdir()
        migrated(case, originals(case, folders["original"]), folders["migrated"])
        speeds: dict[str, list[Speed]] = {kind: [] for kind in folders}
        with (
            ForkServer(environments.original_python(), "original") as first,
            ForkServer(environments.migrated_python(), "migrated", keras=case.keras) as second,
        ):
            for _ in range(rounds):
                for kind, server in (("original", first), ("migrated", second)):
                    cluster = shape if kind == "original" else counterpart(replace(shape, in_step=case.shares))
                    script = folders[kind] / case.script
                    speeds[kind].append(measure(server, kind, case, script, cluster, seconds))
    middle = {
        kind: Speed(
            statistics.median(one.steps_per_second for one in found),
            statistics.median(one.cpu_ms_per_step for one in found),
        )
        for kind, found in speeds.items()
    }
    return {
        "case": name,
        "cluster": case.cluster or "one process",
        "rounds": rounds,
        "original": asdict(middle["original"]),
        "migrated": asdict(middle["migrated"]),
        "ratio": middle["migrated"].steps_per_second / middle["original"].steps_per_second,
        "cpu_ratio": middle["migrated"].cpu_ms_per_step / middle["original"].cpu_ms_per_step,
    }


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """The rows as a table of Markdown."""
    lines = [
        "| program | cluster | original, steps/s | migrated, steps/s | ratio "
        "| original, CPU ms/step | migrated, CPU ms/step |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        if "failed" in row:
            lines.append(f"| {row['case']} | {row['cluster']} | {row['failed']} | | | | |")
            continue
        old, new = row["original"], row["migrated"]
        assert isinstance(old, dict) and isinstance(new, dict)
        lines.append(
            f"| {row['case']} | {row['cluster']} | {old['steps_per_second']:.0f} | {new['steps_per_second']:.0f} "
            f"| {row['ratio']:.2f} | {old['cpu_ms_per_step']:.2f} | {new['cpu_ms_per_step']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measures, and prints or writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    if options.json and options.json.exists():
        rows = json.loads(options.json.read_text(encoding="utf-8"))
    for name in options.cases or CASES:
        if any(row["case"] == name and "failed" not in row for row in rows):
            continue
        try:
            row = compare(name, options.rounds, options.seconds)
        except Failed as error:
            row = {"case": name, "cluster": CASES[name].cluster or "one process", "failed": f"not measured: {error}"}
        rows = [*(one for one in rows if one["case"] != name), row]
        print(table(rows[-1:]).splitlines()[-1], flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(table(rows), encoding="utf-8")
    if any("failed" in row for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
