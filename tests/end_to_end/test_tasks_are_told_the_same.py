"""What takes the place of a RunConfig says of TF_CONFIG what the RunConfig said (TFM178)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrator.harness.environments import migrated_python, original_python
from migrator.program.config_reads import TASK
from migrator.targets.setup import cluster_task
from tests import warm
from tests.rules.programs import program, run

pytestmark = pytest.mark.tensorflow

CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1", "e:1"]}
TASKS = [
    "{}",
    *(
        json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
        for cluster, job, index in (
            (CLUSTER, "chief", 0),
            (CLUSTER, "worker", 1),
            (CLUSTER, "ps", 1),
            (CLUSTER, "evaluator", 0),
            ({"chief": ["a:1"]}, "chief", 0),
            ({"chief": ["a:1"], "worker": ["b:1"]}, "worker", 0),
            ({"master": ["a:1"], "worker": ["b:1"], "ps": ["d:1"]}, "master", 0),
            ({"master": ["a:1"], "worker": ["b:1"], "ps": ["d:1"]}, "worker", 0),
        )
    ),
]
SAY = """
for given in {tasks!r}:
    os.environ["TF_CONFIG"] = given
    made = {made}
    said = {{key: getattr(made, key) for key in {keys!r}}}
    said["cluster_spec"] = said["cluster_spec"].as_dict()
    print("said", json.dumps(said, sort_keys=True))
"""


def said(python: Path, head: str, made: str) -> list[str]:
    text = "import json, os\nimport tensorflow as tf\n" + head + SAY.format(tasks=TASKS, made=made, keys=TASK)
    done = warm.run(python, "-c", text)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("said")]


def test_a_task_says_what_the_run_config_said() -> None:
    before = said(original_python(), "", "tf.compat.v1.estimator.RunConfig()")
    after = said(migrated_python(), cluster_task("ClusterTask", "    ", TASK), "ClusterTask()")
    assert len(before) == len(TASKS) and len(set(before)) > 7
    assert after == before


def test_what_the_run_config_was_given_is_known_where_the_calls_are_rewritten(tmp_path: Path) -> None:
    driver = "estimator.train(input_fn, steps=config.save_checkpoints_steps)\n"
    driver += "print('said', estimator.evaluate(input_fn, steps=1)['loss'] > 0, config.tf_random_seed ** 2)"
    made = f"config = tf.estimator.RunConfig({str(tmp_path / 'm')!r}, save_checkpoints_steps=2, tf_random_seed=-3)\n"
    text = program(driver=driver).replace("estimator = ", f"{made}estimator = ", 1)
    text = text.replace(".batch(1)", ".repeat(9).batch(1)")
    text = text.replace("params=", "model_dir=config.model_dir, config=config, params=")
    new, _ = run(text)
    assert "RunConfig" not in new
    done = warm.run(migrated_python(), "-c", new, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("said")] == ["said True 9"]
