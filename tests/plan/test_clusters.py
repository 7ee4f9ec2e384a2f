"""`--evaluate-on coordinator` and `--servers`: who evaluates on a cluster, and clusters in one process."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from migrator.bridge.assemble import library
from migrator.cli.program import program as command
from migrator.findings import Finding, Severity
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, decode
from migrator.targets.clusters import Clusters, ServersError, parse
from tests.rules.programs import program
from tests.rules.test_exports import exporting

CONFIG = 'config=tf.estimator.RunConfig(save_checkpoints_steps=5), model_dir="m", '
DRIVER = """tf.estimator.train_and_evaluate(
    estimator,
    tf.estimator.TrainSpec(input_fn, max_steps=10),
    tf.estimator.EvalSpec(input_fn, steps=None),
)"""
TEXT = program(driver=DRIVER).replace("params=", f"{CONFIG}params=")


def migrated(text: str, **options: str) -> tuple[dict[str, str], list[Finding]]:
    """The new texts by path, and the findings."""
    source = decode(Path("train.py"), text.encode())
    assert isinstance(source, Source)
    results = migrate([source], Options(**{"style": "native", **options}))  # type: ignore[arg-type]
    return {str(one.source.path): one.text for one in results}, [f for one in results for f in one.findings]


def native(text: str, **options: str) -> str:
    texts, findings = migrated(text, **options)
    assert not [one for one in findings if one.severity is Severity.MANUAL], findings
    ast.parse(texts["train.py"])
    return texts["train.py"]


def blocked(text: str, **options: str) -> list[str]:
    texts, findings = migrated(text, **options)
    assert texts == {"train.py": text}
    return [one.code for one in findings if one.severity is Severity.MANUAL]


def codes(text: str, **options: str) -> set[str]:
    return {one.code for one in migrated(text, **options)[1]}


def test_what_is_asked_for() -> None:
    assert parse("evaluator", "") == Clusters()
    assert parse("coordinator", "") == Clusters(True)
    assert parse("evaluator", "worker=2, ps=1") == Clusters(True, 2, 1)
    for wrong in ("2", "worker=2", "ps=1,worker=2", "worker=0,ps=1", "chief=1,worker=1,ps=1"):
        with pytest.raises(ServersError, match="worker=2,ps=1"):
            parse("evaluator", wrong)


def test_the_evaluator_evaluates_unless_asked_otherwise() -> None:
    new = native(TEXT)
    assert "tf.train.checkpoints_iterator" in new
    assert "LocalCopy" not in new and "create_in_process_cluster" not in new
    assert not {"TFM753", "TFM754"} & codes(TEXT)


def test_the_coordinator_evaluates_after_each_period() -> None:
    new = native(TEXT, evaluate_on="coordinator")
    assert "checkpoints_iterator" not in new
    assert "        CoordinatorEvaluation(local, lambda copy: copy.evaluate(input_fn())),\n" in new
    assert "validation_data=None if resolver.cluster_spec().jobs else input_fn()," in new  # one process, as before
    assert 'print("The coordinator evaluates, and nothing is left for an evaluator.")' in new
    # What is left of a period that an earlier run began is no evaluation of its own.
    assert new.count("CoordinatorEvaluation(") == 2
    assert "TFM753" in codes(TEXT, evaluate_on="coordinator")


def test_no_folder_is_needed_for_it() -> None:
    text = program(driver=DRIVER)
    assert "TFM112" in codes(text) and "TFM112" not in codes(text, evaluate_on="coordinator")
    new = native(text, evaluate_on="coordinator")
    assert "CoordinatorEvaluation(local" in new and "ModelCheckpoint" not in new


def test_a_loop_of_its_own_evaluates_on_servers() -> None:
    options = {"loop": "custom", "strategy": "parameter-server"}
    text = TEXT.replace(".batch(1)", ".repeat().batch(1)").replace("steps=None", "steps=2")
    before, after = native(text, **options), native(text, **options, evaluate_on="coordinator")
    assert "if not resolver.cluster_spec().jobs:\n            print(loop.evaluate" in before
    assert "cluster_spec().jobs:\n            print" not in after and "        print(loop.evaluate" in after


def test_a_loop_for_workers_ends_with_its_data() -> None:
    new = native(TEXT, loop="custom", strategy="multi-worker-mirrored")
    assert "  # the data have ended\n            break\n        if not resolver.cluster_spec().jobs:\n" in new
    refused = {"loop": "custom", "strategy": "multi-worker-mirrored", "evaluate_on": "coordinator"}
    assert "TFM753" in blocked(TEXT, **refused)


def test_one_device_has_no_coordinator() -> None:
    assert native(TEXT, strategy="one-device", evaluate_on="coordinator") == native(TEXT, strategy="one-device")


REFUSED = {
    "an exporter": exporting(
        driver=DRIVER.replace("steps=None", 'steps=None, exporters=tf.estimator.FinalExporter("last", serving_fn)')
    ).replace("params=", 'model_dir="m", params='),
    "a model of Keras": """import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(1,))])
model.compile("sgd", "mse")
estimator = tf.keras.estimator.model_to_estimator(model)
tf.estimator.train_and_evaluate(
    estimator, tf.estimator.TrainSpec(input_fn, max_steps=10), tf.estimator.EvalSpec(input_fn, steps=None)
)
""",
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_a_coordinator_cannot_evaluate_is_refused(why: str) -> None:
    native(REFUSED[why])
    assert "TFM753" in blocked(REFUSED[why], evaluate_on="coordinator")


def test_servers_start_where_there_is_no_cluster() -> None:
    new = native(TEXT, servers="worker=2,ps=1")
    assert (
        "if not resolver.cluster_spec().jobs:\n    resolver = create_in_process_cluster(num_workers=2, num_ps=1)\n"
        in new
    )
    assert "validation_data" not in new and "CoordinatorEvaluation(local" in new
    assert {"TFM753", "TFM754"} <= codes(TEXT, servers="worker=2,ps=1")


def test_programs_without_parameter_servers_start_none() -> None:
    of_workers = TEXT.replace(
        "RunConfig(", "RunConfig(train_distribute=tf.distribute.experimental.MultiWorkerMirroredStrategy(), "
    )
    for text in (program(), of_workers):
        new = native(text, servers="worker=2,ps=1")
        assert "create_in_process_cluster" not in new and "TFM754" in codes(text, servers="worker=2,ps=1")


def test_a_plain_training_starts_them_under_its_strategy() -> None:
    text = program(driver="estimator.train(input_fn, steps=3)\nestimator.evaluate(input_fn)")
    new = native(text, servers="worker=1,ps=2", strategy="parameter-server")
    assert "create_in_process_cluster(num_workers=1, num_ps=2)" in new and "local.current().evaluate(" in new


SUPPORT = "keras_estimator.py"


def test_a_bridge_has_it_as_settings_of_its_support_file() -> None:
    plain = migrated(TEXT, style="bridge")[0]
    assert 'EVALUATES_ON = "evaluator"' in plain[SUPPORT] and "start_servers" not in plain[SUPPORT]
    coordinated, findings = migrated(TEXT, style="bridge", evaluate_on="coordinator")
    assert coordinated[SUPPORT] == plain[SUPPORT].replace('EVALUATES_ON = "evaluator"', 'EVALUATES_ON = "coordinator"')
    assert "TFM753" in {one.code for one in findings}
    served, findings = migrated(TEXT, style="bridge", servers="worker=2,ps=1")
    assert 'SERVERS = {"worker": 2, "ps": 1}' in served[SUPPORT] and served[SUPPORT].endswith("\n\n\nstart_servers()\n")
    assert {"TFM753", "TFM754"} <= {one.code for one in findings}


@pytest.mark.parametrize(
    ("task", "servers", "workers", "by_evaluator", "by_coordinator"),
    [
        ("worker", 0, 1, "evaluates", "evaluates"),  # without a cluster
        ("chief", 2, 3, "trains", "evaluates"),
        ("worker", 2, 3, "trains", "trains"),  # where it serves
        ("master", 2, 3, "evaluates", "evaluates"),
        ("chief", 0, 2, "trains", "evaluates"),
        ("worker", 0, 2, "trains", "trains"),
        ("evaluator", 0, 0, "evaluates all", "is idle"),
    ],
)
def test_who_evaluates_in_a_bridge(
    task: str, servers: int, workers: int, by_evaluator: str, by_coordinator: str
) -> None:
    told: list[str] = []

    class Listener:
        results = exports = None

        def __init__(self, *given: object) -> None:
            pass

    def train(estimator: object, spec: object, listeners: Sequence[object] = ()) -> None:
        told.append("evaluates" if listeners else "trains")

    config = SimpleNamespace(
        task_type=task,
        num_ps_replicas=servers,
        num_worker_replicas=workers,
        is_chief=task in ("chief", "master") or (task == "worker" and workers == 1),
    )
    for evaluates_on, expected in (("evaluator", by_evaluator), ("coordinator", by_coordinator)):
        told.clear()
        names: dict[str, Any] = {
            "TaskType": SimpleNamespace(MASTER="master", EVALUATOR="evaluator"),
            "EVALUATES_ON": evaluates_on,
            "EvaluatingListener": Listener,
            "_train": train,
            "_evaluate_checkpoints": lambda *given: told.append("evaluates all"),
        }
        exec(library().definitions["train_and_evaluate"].text, names)
        names["train_and_evaluate"](SimpleNamespace(config=config), None, None)
        assert (told or ["is idle"]) == [expected]


def test_a_second_run_changes_the_settings_of_a_support_file() -> None:
    first = migrated(TEXT, style="bridge")[0]
    sources = []
    for path, text in {SUPPORT: first[SUPPORT], "train.py": TEXT}.items():
        source = decode(Path(path), text.encode())
        assert isinstance(source, Source)
        sources.append(source)
    results = migrate(sources, Options(style="bridge", evaluate_on="coordinator"))
    new = {str(one.source.path): one.text for one in results}
    assert new[SUPPORT] == migrated(TEXT, style="bridge", evaluate_on="coordinator")[0][SUPPORT]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--servers", "2"), "give servers as worker=2,ps=1"),
        (("--servers", "worker=1,ps=1", "--strategy", "mirrored"), "--strategy auto or parameter-server"),
        (("--evaluate-on", "chief"), "'chief' is not one of"),
    ],
)
def test_wrong_usage(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(TEXT, encoding="utf-8")
    result = CliRunner().invoke(command, [str(path), *options])
    assert result.exit_code == 2 and message in result.output
    assert path.read_text(encoding="utf-8") == TEXT
