"""Programs of several files: which change, where the support file goes, and what is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.bridge.assemble import assemble, held_by
from migrator.bridge.project import bridge_project
from migrator.findings import Finding, Severity
from migrator.migrate import Options, migrate
from migrator.source.reading import Source

MODEL = """import tensorflow as tf


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    train_op = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""
TRAIN = """import tensorflow as tf
from {model} import model_fn

if __name__ == "__main__":
    tf.estimator.Estimator(model_fn, "m").train(lambda: None, steps=3)
"""
FIRST = "  # before TensorFlow: it chooses Keras 2"


def bridge(files: dict[str, str]) -> tuple[dict[str, str], list[Finding]]:
    found = bridge_project({Path("/p", name): text for name, text in files.items()})
    texts = {str(path.relative_to("/p")): text for path, text in found.texts.items()}
    again = bridge_project({Path("/p", name): text for name, text in {**files, **texts}.items()})
    assert not {p for p, text in again.texts.items() if texts.get(str(p.relative_to("/p"))) != text}
    return texts, [one for some in found.findings.values() for one in some]


def head(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("import", "from"))]


def test_files_side_by_side() -> None:
    texts, findings = bridge({"train.py": TRAIN.format(model="model"), "model.py": MODEL, "other.py": MODEL})
    assert texts["keras_estimator.py"] == assemble(["Estimator", "EstimatorSpec"])
    assert head(texts["train.py"]) == [
        "import keras_estimator" + FIRST,
        "from model import model_fn",
    ]
    assert head(texts["model.py"]) == ["import keras_estimator" + FIRST, "import tensorflow.compat.v1 as tf"]
    assert texts["other.py"] == texts["model.py"], "no program imports it, and it is of TensorFlow 1"
    assert texts.keys() == {"keras_estimator.py", "train.py", "model.py", "other.py"}
    assert [(one.code, one.severity, one.line) for one in findings] == [
        ("TFM155", Severity.REVIEW, 5),
        ("TFM185", Severity.REVIEW, 1),
    ]


PLACES = {
    "below the folder that names are looked up in": (
        {"train.py": TRAIN.format(model="models.model"), "models/model.py": MODEL, "models/__init__.py": ""},
        "keras_estimator.py",
        {"train.py": "import keras_estimator", "models/model.py": "import keras_estimator"},
    ),
    "in a package that is imported by its name": (
        {"pkg/train.py": TRAIN.format(model="pkg.net.model"), "pkg/net/model.py": MODEL, "pkg/__init__.py": ""},
        "pkg/keras_estimator.py",
        {"pkg/train.py": "from pkg import keras_estimator", "pkg/net/model.py": "from pkg import keras_estimator"},
    ),
    "in a package of relative imports": (
        {"pkg/train.py": TRAIN.format(model=".net.model"), "pkg/net/model.py": MODEL},
        "pkg/keras_estimator.py",
        {"pkg/train.py": "from . import keras_estimator", "pkg/net/model.py": "from .. import keras_estimator"},
    ),
    "of a file that others import from above": (
        {
            "main.py": "from pkg.one import run\n",
            "pkg/one.py": MODEL + "\n\ndef run():\n    tf.estimator.Estimator(model_fn)\n",
        },
        "pkg/keras_estimator.py",
        {"pkg/one.py": "from pkg import keras_estimator"},
    ),
    "of two programs in a folder": (
        {
            "a/one.py": MODEL + "tf.estimator.Estimator(model_fn)\n",
            "a/two.py": MODEL + "tf.estimator.Estimator(model_fn)\n",
        },
        "a/keras_estimator.py",
        {"a/one.py": "import keras_estimator", "a/two.py": "import keras_estimator"},
    ),
    "where the project has a file of that name": (
        {"train.py": TRAIN.format(model="model"), "model.py": MODEL, "keras_estimator.py": "x = 1\n"},
        "keras_estimator_2.py",
        {"train.py": "import keras_estimator_2", "model.py": "import keras_estimator_2"},
    ),
}


@pytest.mark.parametrize(("files", "support", "imports"), PLACES.values(), ids=PLACES)
def test_place_of_the_support_file(files: dict[str, str], support: str, imports: dict[str, str]) -> None:
    texts, _ = bridge(files)
    assert [name for name in texts if "keras_estimator" in name] == [support]
    for name, line in imports.items():
        assert line + FIRST in head(texts[name]), texts[name]


def test_file_without_estimators_that_a_program_imports() -> None:
    data = "import tensorflow as tf\n\n\ndef batches():\n    return tf.data.Dataset.range(3).make_one_shot_iterator()\n"
    texts, _ = bridge({"train.py": MODEL + "\nimport data\ntf.estimator.Estimator(model_fn)\n", "data.py": data})
    assert head(texts["data.py"]) == ["import tensorflow.compat.v1 as tf"]


def test_name_that_reaches_a_file_through_another() -> None:
    files = {
        "common.py": "import tensorflow as tf\nfrom tensorflow.estimator import ModeKeys as MK\n",
        "train.py": "from common import *\nfrom common import MK as K\n\ntf.estimator.Estimator(None, K.TRAIN)\n",
    }
    texts, _ = bridge(files)
    assert texts["common.py"] == ("import tensorflow.compat.v1 as tf\nfrom keras_estimator import ModeKeys as MK\n")
    assert texts["train.py"].endswith("\nkeras_estimator.Estimator(None, K.TRAIN)\n")


COLUMNS = """import tensorflow as tf
from tensorflow.python.feature_column.feature_column import *

def columns():
    return [numeric_column("x")]
"""


def test_everything_of_tensorflow_and_of_a_file() -> None:
    train = (
        "from tensorflow.contrib.layers import *\nfrom columns import *\n"
        + TRAIN.format(model="model")
        + "    print(columns(), xavier_initializer())\n"
    )
    texts, findings = bridge({"train.py": train, "model.py": MODEL, "columns.py": COLUMNS})
    assert head(texts["train.py"]) == [
        "import keras_estimator" + FIRST,
        "from columns import *",
        "from model import model_fn",
    ]
    assert "print(columns(), keras_estimator.xavier_initializer())" in texts["train.py"]
    assert 'return [tf.feature_column.numeric_column("x")]' in texts["columns.py"]
    assert {one.code for one in findings} == {"TFM155"}


def test_everything_of_tensorflow_itself() -> None:
    model = MODEL + "\n\ndef more(bool, data):\n    return data.x, bool\n"
    train = """from tensorflow import *
from model import *

def network(x):
    with variable_scope("x"):
        return layers.dense(x, 2, activation=nn.relu), abs(x), len("x")

def main(argv):
    estimator.Estimator(model_fn, params=network).train(lambda: data.Dataset.range(3))

app.run(main)
"""
    texts, findings = bridge({"train.py": train, "model.py": model})
    assert (
        texts["train.py"]
        == f"""import keras_estimator{FIRST}
import tensorflow.compat.v1 as tf
from model import *

def network(x):
    with tf.variable_scope("x"):
        return tf.layers.dense(x, 2, activation=tf.nn.relu), tf.abs(x), len("x")

def main(argv):
    keras_estimator.Estimator(model_fn, params=network).train(lambda: tf.data.Dataset.range(3))

tf.app.run(main)
"""
    )
    assert {one.code for one in findings} == {"TFM155"}


@pytest.mark.parametrize(
    ("line", "use"),
    [
        ("from columns import *", "numeric_column"),
        ("from columns import numeric_column", "numeric_column"),
        ("import columns", "columns.numeric_column"),
    ],
)
def test_everything_of_tensorflow_that_another_file_takes(line: str, use: str) -> None:
    train = f"{line}\n{TRAIN.format(model='model')}    print({use}('x'))\n"
    texts, findings = bridge({"train.py": train, "model.py": MODEL, "columns.py": COLUMNS})
    assert not texts
    assert [one.line for one in findings if "`import *`" in one.message and one.path.endswith("columns.py")] == [2]


def test_program_that_is_blocked_stays_and_every_line_is_told() -> None:
    model = MODEL + "\n\ndef other(x):\n    tf.contrib.nosuch.a(x)\n    return tf.contrib.nosuch.b(x)\n\n\nother(1)\n"
    texts, findings = bridge({"train.py": TRAIN.format(model="model"), "model.py": model})
    assert not texts
    told = sorted((Path(one.path).name, one.line, one.code, one.severity) for one in findings)
    assert told == [
        ("model.py", 11, "TFM156", Severity.MANUAL),
        ("model.py", 12, "TFM156", Severity.MANUAL),
        ("train.py", 5, "TFM156", Severity.MANUAL),
    ]


# A function with a name that is gone, and how the program comes to it: whether the program is blocked by that.
COMES_TO = {
    "nothing calls it": ("", False),
    "a condition that is not known": ("import sys\nif len(sys.argv) > 1:\n    other(1)\n", False),
    "a condition that never holds": ("if False:\n    other(1)\n", False),
    "it is called": ("other(1)\n", True),
    "it is called under another name": ("again = other\nagain(1)\n", True),
    "a condition that holds": ("if not None:\n    other(1)\n", True),
    "it is handed to a library": ("import atexit\natexit.register(other)\n", True),
    "a function calls it that nothing calls": ("def unused():\n    other(1)\n", False),
    "a function calls it that is called": ("def used():\n    other(1)\nused()\n", True),
    "a lambda calls it that is handed to a library": ("import atexit\natexit.register(lambda: other(1))\n", True),
    "a lambda calls it in a condition": ("import atexit\natexit.register(lambda: __debug__ and other(1))\n", False),
    "a function calls it that is handed to a library": (
        "import atexit\ndef used():\n    other(1)\natexit.register(used)\n",
        True,
    ),
    "a hook of a list calls it": (
        "class Hook(tf.train.SessionRunHook):\n    def end(self, session):\n        other(1)\n\n"
        "tf.train.MonitoredSession(hooks=[Hook()])\n",
        True,
    ),
    "a hook calls it that nothing makes": (
        "class Hook(tf.train.SessionRunHook):\n    def end(self, session):\n        other(1)\n",
        False,
    ),
}


@pytest.mark.parametrize("name", COMES_TO)
def test_name_that_is_gone_blocks_the_programs_that_come_to_it(name: str) -> None:
    lines, is_blocked = COMES_TO[name]
    model = f"{MODEL}\n\ndef other(x):\n    return tf.contrib.nosuch.a(x)\n\n\n{lines}"
    texts, findings = bridge({"train.py": TRAIN.format(model="model"), "model.py": model})
    told = {(one.code, one.severity) for one in findings if one.path.endswith("model.py")}
    assert (not texts) is is_blocked
    assert told == ({("TFM156", Severity.MANUAL)} if is_blocked else {("TFM180", Severity.REVIEW)})


BRANCHES = """\
import tensorflow as tf
from tensorflow.contrib import cudnn_rnn
from tensorflow.contrib.cudnn_rnn import CudnnLSTM


def cell(x, kind):
    if kind == "lstm":
        return CudnnLSTM(1, 5)(x)
    return cudnn_rnn.CudnnGRU(1, 5)(x) if kind else x


def model_fn(features, labels, mode, params):
    loss = tf.reduce_mean(cell(features, params["kind"]))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.no_op())


def kind():
    {kind}


tf.estimator.Estimator(model_fn, params={{"kind": kind()}}).train(lambda: tf.zeros([1]), steps=1)
"""


def test_imports_of_what_is_gone_go_where_only_branches_read_them() -> None:
    texts, findings = bridge({"train.py": BRANCHES.format(kind="return input()")})
    assert "import cudnn_rnn" not in texts["train.py"] and "import CudnnLSTM" not in texts["train.py"]
    assert "return tf.contrib.cudnn_rnn.CudnnLSTM(1, 5)(x)" in texts["train.py"]
    assert [(one.line, one.code) for one in findings if one.code != "TFM155"] == [(8, "TFM180"), (9, "TFM180")]
    texts, findings = bridge({"train.py": BRANCHES.format(kind="return 'lstm'")})
    assert not texts and (8, "TFM156") in [(one.line, one.code) for one in findings]


IN_A_FUNCTION = {
    "a name that is imported": ("from tensorflow.contrib.nosuch import a\n", "return a(x)", True),
    "such a name, where a condition holds": ("from tensorflow.contrib.nosuch import a\n", "return x and a(x)", False),
    "where a condition never holds": ("", "return None and tf.contrib.nosuch.a(x)", False),
    "behind a return": ("", "return x\n    return tf.contrib.nosuch.a(x)", False),
    "an import": ("", "from tensorflow.contrib.nosuch import a\n    return a", True),
    "in a lambda for a library": ("", "return tf.map_fn(lambda one: tf.contrib.nosuch.a(one), x)", True),
    "in a loop that is known": ("", "for one in (1, 2):\n        tf.contrib.nosuch.a(one)", True),
}


@pytest.mark.parametrize("name", IN_A_FUNCTION)
def test_name_that_is_gone_in_a_function_that_is_called(name: str) -> None:
    first, body, is_blocked = IN_A_FUNCTION[name]
    model = f"{first}{MODEL}\n\ndef other(x):\n    {body}\n\n\nother(input())\n"
    texts, findings = bridge({"train.py": TRAIN.format(model="model"), "model.py": model})
    codes = {one.code for one in findings if one.path.endswith("model.py")}
    assert (not texts) is is_blocked
    assert codes == ({"TFM156"} if is_blocked else {"TFM180"})


def test_name_that_is_gone_in_a_mode_of_the_program() -> None:
    model = MODEL.replace("    loss =", "    if mode == 'infer':\n        return tf.estimator.nothing\n    loss =", 1)
    files = {"train.py": TRAIN.format(model="model"), "model.py": model}
    texts, findings = bridge(files)
    assert texts and ("TFM180", 6) in [(one.code, one.line) for one in findings]
    predicts = files["train.py"] + "    list(tf.estimator.Estimator(model_fn, 'm').predict(lambda: None))\n"
    texts, findings = bridge({**files, "train.py": predicts})
    assert not texts and ("TFM156", 6) in [(one.code, one.line) for one in findings]


def test_library_of_tensorflow_1_in_a_function_that_nothing_calls() -> None:
    adafactor = "def adafactor():\n    from tensor2tensor.utils import adafactor\n    return adafactor\n"
    files = {"train.py": TRAIN.format(model="model"), "model.py": f"{MODEL}\n\n{adafactor}"}
    texts, findings = bridge(files)
    assert texts and ("TFM180", 11) in [(one.code, one.line) for one in findings]
    texts, findings = bridge({**files, "model.py": files["model.py"] + "\n\nadafactor()\n"})
    assert not texts and ("TFM157", 11) in [(one.code, one.line) for one in findings]


def test_error_of_a_name_that_is_gone_is_not_left_to_be_caught() -> None:
    caught = "def other(x):\n    try:\n        return tf.contrib.nosuch.a(x)\n    except Exception:\n        return x\n"
    texts, findings = bridge({"train.py": TRAIN.format(model="model"), "model.py": f"{MODEL}\n\n{caught}"})
    assert not texts and ("TFM156", 12) in [(one.code, one.line) for one in findings]


def test_program_goes_though_it_shares_files_with_a_blocked_one() -> None:
    helper = "import tensorflow as tf\n\n\ndef dense(x):\n    return tf.layers.dense(x, 3)\n"
    good = "import tensorflow as tf\nimport helper\n\ntf.estimator.Estimator(helper.dense)\n"
    bad = "import tensorflow as tf\nimport helper\n\ntf.estimator.Estimator(tf.nosuch)\n"
    texts, _ = bridge({"helper.py": helper, "good.py": good, "bad.py": bad})
    assert texts.keys() == {"keras_estimator.py", "helper.py", "good.py"}
    texts, findings = bridge({"helper.py": helper, "good.py": good, "bad.py": bad + "import good\n"})
    assert texts.keys() == {"keras_estimator.py", "helper.py", "good.py"}
    told = {(Path(one.path).name, one.code) for one in findings}
    assert told == {("bad.py", "TFM156"), ("bad.py", "TFM158"), ("good.py", "TFM155")}


def test_support_file_grows_and_what_was_changed_stays() -> None:
    files = {"train.py": TRAIN.format(model="model"), "model.py": MODEL}
    old = assemble(["RunConfig"])
    texts, _ = bridge({**files, "keras_estimator.py": old})
    assert texts["keras_estimator.py"] == assemble(["RunConfig", "Estimator", "EstimatorSpec"])
    texts, _ = bridge({**files, "keras_estimator.py": old + "\n# Ours.\n"})
    before, mine, after = texts["keras_estimator.py"].partition("\n# Ours.\n")
    assert held_by(before) == held_by(old) and mine and {"Estimator", "EstimatorSpec"} <= held_by(after)
    changed = assemble(["EstimatorSpec"]).replace("class EstimatorSpec(", "class EstimatorSpec(  # ours")
    texts, findings = bridge({**files, "keras_estimator.py": changed})
    assert not texts
    assert [(one.code, one.severity) for one in findings] == [("TFM159", Severity.MANUAL)]
    assert "lacks Estimator, and its EstimatorSpec is changed or too old" in findings[0].message


def test_support_file_that_is_gone_has_what_other_programs_use_of_it() -> None:
    files = {"train.py": TRAIN.format(model="model"), "model.py": MODEL}
    before = "import os, keras_estimator as k\n\nk.RunConfig()\nk.inputs\n"
    again = "from keras_estimator import FinalExporter, nothing_of_ours\n"
    texts, _ = bridge({**files, "before.py": before, "again.py": again})
    names = ["Estimator", "EstimatorSpec", "RunConfig", "FinalExporter"]
    assert texts["keras_estimator.py"] == assemble(names)


def test_the_version_of_keras_is_told_where_it_may_be_asked_for() -> None:
    text = "import tensorflow as tf\n\nprint({})\ntf.estimator.Estimator(tf.keras.layers.Dense)\n"
    texts, _ = bridge({"train.py": text.format("tf.keras.__version__")})
    assert texts["keras_estimator.py"].endswith("\n\n\ntell_version_of_keras()\n")
    texts, _ = bridge({"train.py": text.format("tf.VERSION")})
    assert "tell_version_of_keras" not in texts["keras_estimator.py"]


def test_what_else_the_support_file_has_to_do() -> None:
    slim = "import tensorflow as tf\n\nx = tf.contrib.slim.conv2d\ny = x.shape[1].value\ntf.estimator.Estimator(x)\n"
    texts, findings = bridge({"train.py": slim})
    assert texts["keras_estimator.py"].endswith("\n\n\nkeep_tensorflow_1_shapes()\nlet_tf_slim_find_its_layers()\n")
    assert {one.code for one in findings} == {"TFM155", "TFM167"}


def test_style_bridge_gives_the_support_file_too() -> None:
    path = Path("/p/train.py")
    text = MODEL + "\n\ntf.estimator.Estimator(model_fn).train(lambda: None)\n"
    program, support = migrate([Source(path, text.encode(), text, "utf-8", False)], Options(style="bridge"))
    assert "keras_estimator.Estimator(model_fn)" in program.text
    assert support.source.path == Path("/p/keras_estimator.py") and not support.source.raw
    again = migrate(
        [Source(one.source.path, b"", one.text, "utf-8", False) for one in (program, support)], Options(style="bridge")
    )
    assert [one.text for one in again] == [program.text, support.text]
    assert not any(one.findings for one in again)


def test_cases_that_were_refused_needlessly() -> None:
    folder = Path(__file__).parents[2].parent / "shared" / "cases" / "refused-needlessly"
    if not folder.exists():
        pytest.skip("the cases are not here")
    texts = {path: path.read_text() for path in folder.rglob("*.py")}
    found = bridge_project(texts)
    assert not [one for some in found.findings.values() for one in some if one.severity is Severity.MANUAL]
    for path, text in found.texts.items():
        compile(text, str(path), "exec")


def test_a_second_run_leaves_what_a_bridged_program_reaches() -> None:
    """DenseFeatures needs Keras 2, which the support file chooses before the layers are imported."""
    layers = "import tensorflow as tf\nfrom tensorflow.keras.layers import DenseFeatures\n\n\ndef net(x):\n"
    layers += "    return DenseFeatures(tf.placeholder)(x)\n"
    files = {
        "/p/layers.py": layers,
        "/p/train.py": MODEL + "\nimport layers\n\ntf.estimator.Estimator(model_fn).train(lambda: layers.net(1))\n",
    }
    first = migrate([Source(Path(p), t.encode(), t, "utf-8", False) for p, t in files.items()], Options(style="bridge"))
    again = migrate([Source(one.source.path, b"", one.text, "utf-8", False) for one in first], Options(style="bridge"))
    assert [one.text for one in again] == [one.text for one in first]
    assert len(first) == 3


USER = """import tensorflow as tf
import model

tf.logging.set_verbosity("INFO")
model.build().train(tf.estimator.inputs.numpy_input_fn({"x": 1}, 2))
"""
BUILDS = MODEL + "\n\ndef build():\n    return tf.estimator.Estimator(model_fn)\n"


def test_files_that_use_a_program_go_with_it() -> None:
    texts, findings = bridge({"model.py": BUILDS, "train.py": USER})
    assert texts["train.py"].endswith('\nmodel.build().train(keras_estimator.numpy_input_fn({"x": 1}, 2))\n')
    assert {one.code for one in findings} == {"TFM155"}


def test_a_user_that_cannot_go_stays() -> None:
    texts, findings = bridge({"model.py": BUILDS, "train.py": USER + "tf.contrib.nosuch(1)\n"})
    assert texts.keys() == {"model.py", "keras_estimator.py"}
    assert {(Path(one.path).name, one.code) for one in findings} == {("model.py", "TFM155"), ("train.py", "TFM158")}


@pytest.mark.parametrize("module", ["tensorflow.estimator.experimental", "tensorflow.contrib.slim"])
@pytest.mark.parametrize("two", ["", "import tensorflow.compat.v1.logging\n"])
def test_import_of_a_module_that_is_no_more(module: str, two: str) -> None:
    texts, _ = bridge({"train.py": f"import {module}\n{two}" + BUILDS})
    assert module not in texts["train.py"]


MAIN = """import tensorflow as tf
from model import model_fn

if __name__ == "__main__":
    estimator = tf.estimator.Estimator(model_fn, "m")
    estimator.train(lambda: None, steps=3)
    image = tf.placeholder(tf.float32, [None, 2])
    estimator.export_savedmodel("out", tf.estimator.export.build_raw_serving_input_receiver_fn({"x": image}))
"""
HOOK = """import tensorflow as tf


class Hook(tf.estimator.SessionRunHook):
    def begin(self):
        self.step = tf.compat.v1.train.get_global_step()
"""
OF_KERAS = """import tensorflow as tf


def create():
    return tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(2,))])


def model_fn(features, labels, mode):
    return tf.estimator.EstimatorSpec(mode, predictions=create()(features["x"]))
"""


def set_up(files: dict[str, str]) -> tuple[set[str], list[tuple[str, int]]]:
    """What the support file does when it is imported, and the lines that are to be put into a graph by hand."""
    texts, findings = bridge(files)
    lines = texts["keras_estimator.py"].splitlines()
    told = [(Path(one.path).name, one.line) for one in findings if one.code == "TFM158"]
    return {line[:-2] for line in lines if line.endswith("()") and line[:-2].isidentifier()}, told


def test_keras_models_of_model_fns_leave_the_driver_its_default_graph() -> None:
    done, told = set_up({"train.py": MAIN, "model.py": OF_KERAS})
    assert done == {"build_in_default_graph", "let_keras_models_take_any_shape"} and told == []


def test_keras_models_of_drivers_run_operations_at_once() -> None:
    made = MAIN.replace("    image =", "    create()\n    image =").replace(
        "import model_fn", "import create, model_fn"
    )
    done, told = set_up({"train.py": made, "model.py": OF_KERAS})
    assert done == {"let_keras_models_take_any_shape"} and told == [("train.py", 8)]


def test_files_for_both_versions_are_eager_where_their_drivers_compute() -> None:
    with_hook = MODEL.replace("import tensorflow as tf\n", "import tensorflow as tf\nfrom hook import Hook\n")
    files = {"train.py": MAIN, "model.py": with_hook, "hook.py": HOOK}
    assert set_up(files) == ({"build_in_default_graph"}, [])
    computed = f"{HOOK}\n\nCLASSES = tf.range(3).numpy()\n"
    assert set_up({**files, "hook.py": computed}) == (set(), [("train.py", 7)])


READER = """import sys
import tensorflow as tf


def freeze(path):
    with tf.Session(graph=tf.Graph()) as session:
        saver = tf.train.import_meta_graph(path + ".meta")
        saver.restore(session, path)
        print(session.run(tf.trainable_variables()))


freeze(sys.argv[1])
"""


def test_readers_of_graphs_that_estimators_wrote_are_told() -> None:
    files = {"train.py": TRAIN.format(model="model"), "model.py": MODEL, "again.py": TRAIN.format(model="model")}
    _, findings = bridge({**files, "freeze.py": READER})
    told = [one for one in findings if one.code == "TFM149"]
    assert [(one.path, one.line, one.severity) for one in told] == [("/p/freeze.py", 7, Severity.REVIEW)]
    assert "TFM149" not in {one.code for one in bridge({"freeze.py": READER})[1]}, "a session wrote it"


IMPORTS_OF_THE_PACKAGE = {
    "from tensorflow_estimator import estimator": "estimator",
    "import tensorflow_estimator as tfes": "tfes.estimator",
    "import tensorflow_estimator": "tensorflow_estimator.estimator",
    "if True:\n    import tensorflow_estimator as tfes\nelse:\n    tfes = tf": "tfes.estimator",
}


@pytest.mark.parametrize("line", IMPORTS_OF_THE_PACKAGE)
def test_the_package_of_estimators_is_tf_estimator(line: str) -> None:
    program = MODEL.replace("tf.estimator", IMPORTS_OF_THE_PACKAGE[line]).replace(
        "import tensorflow as tf\n", f"import tensorflow as tf\n{line}\n"
    )
    train = f'\n\n{IMPORTS_OF_THE_PACKAGE[line]}.Estimator(model_fn, "m").train(lambda: None, steps=3)\n'
    texts, findings = bridge({"train.py": program + train})
    assert "tensorflow_estimator" not in texts["train.py"], "TensorFlow 2.21 comes without it"
    assert {one.code for one in findings} == {"TFM155"}
