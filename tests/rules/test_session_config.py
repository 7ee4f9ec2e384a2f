"""ConfigProtos: the `tf.config` calls that they become, and where these stand."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run, run_project

GPUS = 'tf.config.list_physical_devices("GPU")'
GROWTH = f"for gpu in {GPUS}:\n    tf.config.experimental.set_memory_growth(gpu, True)\n"


def configured(lines: str, given: str = "session_config", top: str = "") -> str:
    text = program().replace("estimator = ", f"{lines}\nestimator = ", 1)
    text = text.replace("import tensorflow as tf\n", f"import tensorflow as tf\n{top}", 1)
    config = f"tf.estimator.RunConfig(session_config={given})"
    return text.replace('params={"rate": 0.1})', f'params={{"rate": 0.1}}, config={config})')


def migrated(text: str) -> tuple[str, list[str]]:
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    ast.parse(new)
    assert "ConfigProto" not in new and "session_config" not in new
    return new, sorted({f.code for f in findings if f.severity is Severity.REVIEW})


def settings(text: str) -> list[str]:
    return [line.strip() for line in migrated(text)[0].splitlines() if "tf.config." in line or "tf.debugging" in line]


ONE_LINE = {
    "inter_op_parallelism_threads=2": ["tf.config.threading.set_inter_op_parallelism_threads(2)"],
    "intra_op_parallelism_threads=2 * 3": ["tf.config.threading.set_intra_op_parallelism_threads(2 * 3)"],
    "intra_op_parallelism_threads=0": [],
    "allow_soft_placement=True, log_device_placement=False": [],
    "allow_soft_placement=False": ["tf.config.set_soft_device_placement(False)"],
    "log_device_placement=True": ["tf.debugging.set_log_device_placement(True)"],
    "device_count={'GPU': 0, 'CPU': 4}": ['tf.config.set_visible_devices([], "GPU")'],
    "device_count={'GPU': 2}": [f'tf.config.set_visible_devices({GPUS}[:2], "GPU")'],
    "gpu_options=tf.GPUOptions(visible_device_list='0')": [f'tf.config.set_visible_devices({GPUS}[:1], "GPU")'],
    "gpu_options=tf.GPUOptions(visible_device_list='1')": [f'tf.config.set_visible_devices({GPUS}[1:2], "GPU")'],
    "gpu_options=tf.GPUOptions(visible_device_list='')": [],
    "graph_options=tf.GraphOptions(optimizer_options=tf.OptimizerOptions(global_jit_level=tf.OptimizerOptions.ON_1))": [
        'tf.config.optimizer.set_jit("autoclustering")'
    ],
    "graph_options=tf.GraphOptions(optimizer_options=tf.OptimizerOptions("
    "global_jit_level=tf.OptimizerOptions.OFF))": [],
}


@pytest.mark.parametrize("arguments", ONE_LINE)
def test_a_field_becomes_a_call(arguments: str) -> None:
    made = ONE_LINE[arguments]
    assert settings(configured(f"session_config = tf.ConfigProto({arguments})")) == made
    assert settings(configured("", f"tf.ConfigProto({arguments})")) == made
    assert ("TFM170" in migrated(configured("", f"tf.ConfigProto({arguments})"))[1]) == bool(made)


def test_fields_stay_where_they_were_set() -> None:
    text = configured(
        "# the machine\nsession_config = tf.ConfigProto()\nsession_config.gpu_options.allow_growth = True\n"
        "if os.environ.get('FAST'):\n"
        "    session_config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1\n"
        "options = session_config.graph_options\n".replace("options = session_config.graph_options\n", "")
        + "session_config.graph_options.rewrite_options.constant_folding = rewriter_config_pb2.RewriterConfig.OFF\n",
        top="import os\nfrom tensorflow.core.protobuf import rewriter_config_pb2\n",
    )
    new, codes = migrated(text)
    expected = (
        f"# the machine\n{GROWTH}if os.environ.get('FAST'):\n"
        '    tf.config.optimizer.set_jit("autoclustering")\n'
        'tf.config.optimizer.set_experimental_options({"constant_folding": False})\n'
    )
    assert expected in new and "rewriter_config" not in new
    assert codes == ["TFM170"]


def test_parts_of_their_own_and_values_of_the_program() -> None:
    lines = (
        "threads = 3\nfraction = 0.4\noptions = tf.GPUOptions(allow_growth=True)\n"
        "options.per_process_gpu_memory_fraction = fraction\n"
        "session_config = tf.ConfigProto(gpu_options=options, intra_op_parallelism_threads=threads)\n"
    )
    new, codes = migrated(configured(lines))
    assert f"threads = 3\n{GROWTH}tf.config.threading.set_intra_op_parallelism_threads(threads)\n" in new
    assert "fraction" not in new and codes == ["TFM140", "TFM170"]


def test_a_function_that_returns_the_config() -> None:
    made = "def settings():\n    made = tf.ConfigProto()\n    made.gpu_options.allow_growth = {}\n    return made\n\n\n"
    new, _ = migrated(configured("", "settings()", made.format("True")))
    growth = GROWTH.replace("\n", "\n    ").rstrip(" ")
    assert f"def settings():\n    {growth}" in new and "\nsettings()\nmodel = model_fn(" in new
    new, codes = migrated(configured("", "settings()", made.format("False")))
    assert "settings" not in new and codes == []


def test_two_estimators_share_one_config() -> None:
    text = configured("session_config = tf.ConfigProto(inter_op_parallelism_threads=2)")
    at = text.index("estimator = ")
    second = text[at:].replace("estimator = ", "other = ").replace("estimator.train(", "other.train(")
    assert settings(text + second) == ["tf.config.threading.set_inter_op_parallelism_threads(2)"]


LATE = {
    "an operation above": "print(tf.zeros([2]))\nsession_config = tf.ConfigProto(inter_op_parallelism_threads=2)",
    "a function above": "input_fn()\nsession_config = tf.ConfigProto(inter_op_parallelism_threads=2)",
    "a loop": "for i in range(1):\n    session_config = tf.ConfigProto(inter_op_parallelism_threads=2)\n    i += 1",
}


@pytest.mark.parametrize("name", LATE)
def test_settings_that_would_come_too_late_are_left_out(name: str) -> None:
    text = configured(LATE[name])
    assert settings(text) == []
    assert "TFM140" in migrated(text)[1]


MAIN = """

def main(_):
    {lines}
    session_config = tf.ConfigProto(inter_op_parallelism_threads=2)
    config = tf.estimator.RunConfig(session_config=session_config)
    estimator = tf.estimator.Estimator(model_fn, params={{"rate": 0.1}}, config=config)
    estimator.train(input_fn, steps=3)


if __name__ == "__main__":
    {before}
    {call}
"""
CALLED = {
    "main of tf.app": ("print()", "tf.logging.set_verbosity(tf.logging.INFO)", "tf.app.run()", True),
    "called plainly": ("print()", "print()", "main(None)", True),
    "behind an operation": ("print()", "print(tf.zeros([1]))", "main(None)", False),
    "columns are no operations": ("c = tf.feature_column.numeric_column('x')", "print()", "tf.app.run(main)", True),
    "never called": ("print()", "print()", "print()", False),
    "a method that computes": ("Made().make()", "print()", "main(None)", False),
}


@pytest.mark.parametrize("name", CALLED)
def test_the_way_to_the_function_counts(name: str) -> None:
    lines, before, call, sure = CALLED[name]
    text = program()[: program().index("estimator = ")]
    text += "class Made:\n    def make(self):\n        return tf.zeros([1])\n"
    text += MAIN.format(lines=lines, before=before, call=call)
    assert bool(settings(text)) is sure
    assert migrated(text)[1] == (["TFM170"] if sure else ["TFM140"])


def test_what_a_module_does_when_it_is_imported_counts() -> None:
    text = configured("session_config = tf.ConfigProto(inter_op_parallelism_threads=2)", top="import data\n")
    for line, sure in (("import tensorflow as tf\nx = tf.zeros([1])\n", False), ("import tensorflow as tf\n", True)):
        new = run_project({"train.py": text, "data.py": line})["train.py"][0]
        assert ("tf.config.threading" in new) is sure


def test_a_config_that_is_used_otherwise_stays() -> None:
    text = configured("session_config = tf.ConfigProto(allow_soft_placement=True)\nprint(session_config)")
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL] and "TFM140" in [f.code for f in findings]
    assert "session_config = tf.compat.v1.ConfigProto(allow_soft_placement=True)\nprint(session_config)" in new
