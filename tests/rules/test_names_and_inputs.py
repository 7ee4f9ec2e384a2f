"""Names that stand for TensorFlow, and input functions."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrator.findings import Severity
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.rules.inputs import check_returns
from tests.rules.programs import program, run, run_project

RETURN = "    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)\n"
DATA = "    ds = tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)\n"
GET = "    x, y = ds.make_one_shot_iterator().get_next()\n"


def with_input(body: str) -> str:
    text = program()
    assert RETURN in text
    return text.replace(RETURN, body)


def with_head(head: str, text: str | None = None) -> str:
    return f"{head}\n" + (text or program()).partition("\n")[2]


def manual(text: str) -> list[tuple[str, str]]:
    new, findings = run(text)
    found = [(f.code, text.splitlines()[f.line - 1].strip()) for f in findings if f.severity is Severity.MANUAL]
    if found:
        assert new == text
    return found


INPUTS_LEFT = {
    "read": (DATA + GET + "    print(x)\n    return x, y\n", "print(x)"),
    "changed in a branch": (DATA + GET + "    if y:\n        x = x + 1\n    return x, y\n", "if y:"),
    "dataset bound again": (
        DATA + "    it = ds.make_one_shot_iterator()\n    ds = ds.repeat()\n    return it.get_next()\n",
        "ds = ds.repeat()",
    ),
    "made in branches": (
        DATA + "    if FLAG:\n        it = ds.make_one_shot_iterator()\n        print(1)\n    return it.get_next()\n",
        "return it.get_next()",
    ),
    "one name for data and tensors in a branch": (
        DATA + "    if FLAG:\n        ds = ds.make_one_shot_iterator().get_next()\n    return ds\n",
        "ds = ds.make_one_shot_iterator().get_next()",
    ),
    "one name for tensors and other data": (
        DATA + "    x, y = ds.make_one_shot_iterator().get_next()\n    ds = make()\n    return {'x': x}, y\n",
        "ds = make()",
    ),
    "never returned": (DATA + "    it = ds.make_one_shot_iterator()\n    return ds\n", None),
    "local in the map": (DATA + "    k = tf.ones([])\n" + GET + "    return {'x': x * k}, y\n", None),
    "function in the map": (DATA + GET + "    return {'x': f(x)}, y\n", None),
}


@pytest.mark.parametrize("case", INPUTS_LEFT)
def test_input_function_is_left(case: str) -> None:
    body, line = INPUTS_LEFT[case]
    found = manual(with_input(body))
    assert "TFM601" in [code for code, _ in found]
    if line is not None:
        assert ("TFM601", line) in found


@pytest.mark.parametrize(
    ("lines", "returned"),
    [
        ("ds = ds.make_one_shot_iterator().get_next()\nreturn ds", "ds"),
        ("ds = ds.make_one_shot_iterator()\nreturn ds.get_next()", "ds"),
        ("x, ds = ds.make_one_shot_iterator().get_next()\nreturn x, ds", "ds"),
        ("x, ds = ds.make_one_shot_iterator().get_next()\nreturn {'x': x}, ds", "ds.map(lambda x, ds: ({'x': x}, ds))"),
    ],
)
def test_a_name_that_stands_for_the_data_and_then_for_the_tensors(lines: str, returned: str) -> None:
    new, _ = run(with_input(DATA + "".join(f"    {line}\n" for line in lines.split("\n"))))
    assert f"{DATA}    return {returned}\n" in new


@pytest.mark.parametrize("symbol", ["tf.data.experimental.make_csv_dataset", "tf.contrib.data.make_csv_dataset"])
def test_a_dataset_of_csv_files(symbol: str) -> None:
    given = '("data.csv", 8, label_name="y", num_epochs=1, shuffle=False)'
    new, _ = run(with_input(f"    return {symbol}{given}\n"))
    assert f"    return tf.data.experimental.make_csv_dataset{given}\n" in new


@pytest.mark.parametrize("seed", ["", ", shuffle_seed=None", ", shuffle_seed=7"])
def test_the_order_of_a_seeded_dataset_of_csv_files_is_told(seed: str) -> None:
    body = f'    return tf.data.experimental.make_csv_dataset("data.csv", 8, label_name="y", num_epochs=1{seed})\n'
    _, findings = run(with_input(body))
    assert ("TFM616" in {finding.code for finding in findings}) == ("7" in seed)


def test_a_cast_that_is_given_to_a_function() -> None:
    new, _ = run(with_input(DATA.replace(".batch(1)", "") + "    return ds.map(prepare(tf.to_float)).batch(1)\n"))
    assert ".map(prepare((lambda tensor: tf.cast(tensor, tf.float32)))).batch(1)" in new


def test_get_next_beside_the_return() -> None:
    body = DATA + "    x, y = ds.make_one_shot_iterator().get_next(){} return x, y\n"
    assert not manual(with_input(body.format(";")))
    assert run(with_input(body.format(";")))[0] == run(with_input(body.format("\n   ")))[0]


def test_get_next_in_branches() -> None:
    body = DATA + (
        "    if FLAG:\n"
        "        return ds.repeat().make_one_shot_iterator().get_next()\n"
        "    else:\n"
        "        it = ds.make_one_shot_iterator()\n"
        "        return it.get_next()\n"
    )
    new, _ = run(with_input(body))
    assert DATA + "    if FLAG:\n        return ds.repeat()\n    else:\n        return ds\n" in new


def test_get_next_in_a_lambda_is_refused() -> None:
    made = "estimator.train(lambda: make().make_one_shot_iterator().get_next()"
    found = manual(program().replace("estimator.train(input_fn", made))
    assert [code for code, _ in found] == ["TFM601"]


def test_return_made_of_the_elements_becomes_a_map() -> None:
    new, _ = run(with_input(DATA + GET + '    return {"x": x}, tf.to_float(y)\n'))
    assert '    return ds.map(lambda x, y: ({"x": x}, tf.cast(y, tf.float32)))\n' in new


def test_iterator_at_module_level_is_refused() -> None:
    text = program(driver="it = make().make_one_shot_iterator()\nestimator.train(input_fn, steps=3)")
    assert manual(text) == [("TFM601", "it = make().make_one_shot_iterator()")]


@pytest.mark.parametrize(
    ("body", "refused"),
    [
        ("return {'x': tf.ones([1])}, tf.ones([1])", True),
        ("return {'x': 1}", True),
        ("f = {'x': 1}\n    return f", True),
        ("return dict(x=1)", True),
        ("return ds", False),
        ("x, y = ds.make_one_shot_iterator().get_next()\n    return x, y", False),
    ],
)
def test_check_returns(body: str, refused: bool) -> None:
    file = ParsedFile.parse(Path("a.py"), f"import tensorflow as tf\n\n\ndef f(ds):\n    {body}\n")
    if refused:
        with pytest.raises(Blocked, match="tensors"):
            check_returns(file.functions["f"], file.imports)
    else:
        check_returns(file.functions["f"], file.imports)


SAME_AS_PLAIN = {
    "try": (
        "try:\n    import tensorflow.compat.v1 as tf\n    tf.disable_v2_behavior()\n"
        "except ImportError:\n    import tensorflow as tf"
    ),
    "version": "import tensorflow as tf\nif tf.__version__ > '2':\n    tf = tf.compat.v1",
    "alias of the root": "import tensorflow\ntf = tensorflow.compat.v1",
    "over itself": "import tensorflow as tf\ntf = tf.compat.v1",
}


@pytest.mark.parametrize("case", SAME_AS_PLAIN)
def test_imports_become_one(case: str) -> None:
    assert run(with_head(SAME_AS_PLAIN[case]))[0] == run(program())[0]


def test_aliases_by_assignment() -> None:
    text = program().replace("tf.estimator.", "tfe.").replace("tf.layers.", "layers.")
    text = text.replace(
        "import tensorflow as tf\n", "import tensorflow as tf\ntfe = tf.estimator\nlayers = tf.layers\n"
    )
    assert run(text)[0] == run(program())[0]


def test_import_inside_a_function_goes() -> None:
    text = with_input("    import tensorflow.compat.v1 as tf\n" + RETURN)
    assert run(text)[0] == run(program())[0]


UNSURE = {
    "import only inside": (with_head("def f():\n    import tensorflow as tf"), "import tensorflow as tf"),
    "assigned": (with_head("import tensorflow as tf\ntf = None"), "tf = None"),
    "parameter": (with_head("import tensorflow as tf\ndef f(tf):\n    pass"), "def f(tf):"),
    "another module": (
        with_head("import tensorflow as tf1\nimport other as tf", program().replace("tf.", "tf1.")),
        "import other as tf",
    ),
    "star": (
        with_head("from tensorflow import *\nimport tensorflow as tf"),
        "from tensorflow import *",
    ),
    "alias bound twice": (
        with_head("import tensorflow as tf\nlayers = tf.layers\nfor layers in []:\n    pass"),
        "layers = tf.layers",
    ),
    "as a value": (program(driver="estimator.train(input_fn)\nprint(tf)"), "print(tf)"),
    "in the model function": (
        program(network="import tensorflow.compat.v1 as tf\nnet = net + 1"),
        "import tensorflow.compat.v1 as tf",
    ),
}


@pytest.mark.parametrize("case", UNSURE)
def test_unsure_names_are_refused(case: str) -> None:
    text, line = UNSURE[case]
    assert ("TFM209", line) in manual(text)


def test_star_import_of_a_sibling() -> None:
    whole = program()
    head, _, rest = whole.partition("def model_fn")
    files = {"data.py": head, "train.py": "import tensorflow as tf\nfrom data import *\n\n\ndef model_fn" + rest}
    results = run_project(files)
    assert "from data import *" in results["train.py"][0] and "tf.keras.Model" in results["train.py"][0]
    assert "TF_USE_LEGACY_KERAS" in results["data.py"][0]


def test_tensorflow_through_another_module_is_refused() -> None:
    files = {"common.py": "import tensorflow as tf\n", "train.py": with_head("# tensorflow\nfrom common import tf")}
    results = run_project(files)
    assert {path: text for path, (text, _) in results.items()} == files
    assert [f.code for f in results["train.py"][1]] == ["TFM209"]


def test_modules_are_asked_for_their_names_and_versions() -> None:
    head = "import sys\nimport tensorflow as tf\nfrom tensorflow import keras\n\n"
    head += "for module in sys, tf, keras:\n    print({})\n"
    new, findings = run(with_head(head.format("module.__name__")))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "for module in sys, tf, tf.keras:\n    print(module.__name__)\n" in new
    shown = "module.__name__, module.__version__"
    new, findings = run(with_head(head.replace("tf, keras:", "tf:").format(shown)))
    assert f"for module in sys, tf:\n    print({shown})\n" in new
    for other in (shown, "module.__name__, dir(module)"):  # tf.keras says no version in TensorFlow 2.21
        _, findings = run(with_head(head.format(other)))
        assert "TFM209" in [f.code for f in findings if f.severity is Severity.MANUAL]


def test_what_tensorflow_says_of_its_build_moved() -> None:
    new, findings = run(program(driver="estimator.train(input_fn)\nprint(tf.GIT_VERSION, tf.__compiler_version__)"))
    assert not [f for f in findings if f.severity is Severity.MANUAL]
    assert "print(tf.version.GIT_VERSION, tf.version.COMPILER_VERSION)" in new


def test_modes_and_versions_outside_of_model_functions() -> None:
    new, _ = run(program(driver="estimator.train(input_fn)\nprint(tf.estimator.ModeKeys.PREDICT, tf.VERSION)"))
    assert 'print("infer", tf.version.VERSION)' in new


def test_comments_of_removed_statements_stay() -> None:
    head = "import tensorflow.compat.v1 as tf  # one\n\ntf.disable_v2_behavior()  # two"
    new, _ = run(with_head(head))
    assert "import tensorflow as tf  # one\n" in new and "# two\n" in new


def test_constants_and_names() -> None:
    text = (
        "a = 1\nb = 1\nb += 1\nc = 1\nfor c in []:\n    pass\nd = 1\nif a:\n    d = 2\n"
        "e = 1\ndef f(g):\n    global e\n    a = 2\n    return lambda h: [i for i in h]\n"
        "try:\n    pass\nexcept ValueError as k:\n    pass\nclass L:\n    pass\n"
    )
    file = ParsedFile.parse(Path("a.py"), text)
    assert sorted(file.constants) == ["a"]
    assert set("abcdefghikL") <= file.names
    assert Project.of([file]).function(file, cst.Name("missing")) is None


BOTH = "import tensorflow as tf\nimport tensorflow.compat.v1 as tf1"


@pytest.mark.parametrize(
    ("network", "code"),
    [
        ("net += tf.cast(tf.argmax(net, 1, tf.int32), tf.float32)", "TFM204"),
        ("net = tf.where(MASK, net, -net)", "TFM240"),
    ],
)
def test_plain_names_beside_compat_v1_may_be_either(network: str, code: str) -> None:
    assert code in [found for found, _ in manual(with_head(BOTH, program(network=network)))]


def test_what_both_versions_share_is_carried_over_beside_compat_v1() -> None:
    data = "(tf1.where(MASK, x, tf.squeeze(x, [1], 's')), y))"
    text = program(network="net = tf.where(net > 0, net, -net)")
    text = text.replace(".batch(1)", f".batch(1).map(lambda x, y: {data}")
    new, _ = run(with_head(BOTH, text))
    assert "net = tf.where(net > 0, net, -net)" in new
    assert "tf.raw_ops.Select(condition=MASK, x=x, y=tf.squeeze(x, [1], 's'))" in new


@pytest.mark.parametrize(
    ("network", "code"),
    [
        ("net = tf.image.resize_bilinear(net, [8, 8])", "TFM240"),
        ("net = tf.image.resize_images(net, [8, 8])", "TFM244"),
        ("net = tf.map_fn(lambda row: row * 2.0, net)", "TFM240"),
    ],
)
def test_symbolic_tensors_do_not_go_through_operations_by_their_names(network: str, code: str) -> None:
    """tf_keras: `TypeError: You are passing KerasTensor(...)` (TensorFlow 2.21)."""
    assert [found for found, _ in manual(program(network=network))] == [code]


WHERE = '''\
def where(condition, x, y):
    """Chooses as TensorFlow 1's tf.where: a condition of one axis chooses whole rows."""
    if len(condition.shape) == 1:
        condition = tf.reshape(condition, [-1] + [1] * (len(x.shape) - 1))
    return tf.where(condition, x, y)
'''


@pytest.mark.parametrize(
    ("top", "network", "wanted"),
    [
        ("", "net = tf.where(MASK, net, -net)", "net = where(MASK, net, -net)"),
        (
            "def choose(one):\n    return tf.where(MASK, one, -one)\n",
            "net = choose(net)",
            "    return where(MASK, one, -one)",
        ),
    ],
)
def test_a_network_chooses_rows_by_a_function_of_the_file(top: str, network: str, wanted: str) -> None:
    text = program(network=network).replace("\n\ndef model_fn", f"\n\n{top}\n\ndef model_fn")
    new, findings = run(text)
    assert not [one for one in findings if one.severity is Severity.MANUAL]
    assert wanted in new and WHERE in new and new.index(WHERE) < new.index(wanted)


@pytest.mark.parametrize(
    ("top", "network"),
    [
        ("", "net = tf.custom_gradient(lambda one: (one * 2.0, lambda change: change))(net)"),
        ("@tf.custom_gradient\ndef twice(one):\n    return one * 2.0, lambda change: change\n", "net = twice(net)"),
        ("@tf.function\ndef twice(one):\n    return one * 2.0\n", "net = twice(net)"),
        ("", "print(net.op.name)"),
        ("", "print(net.graph.version)"),
        ("def show(one):\n    print(one.op.name, one.get_shape().as_list())\n", "show(net)"),
        ("", "print(len(net.consumers()))"),
        ("", "net = net * 2.0 if isinstance(net, (tf.Tensor, tf.SparseTensor)) else net"),
    ],
)
def test_networks_that_ask_for_more_than_symbolic_tensors_have(top: str, network: str) -> None:
    """`You are passing KerasTensor(...)`, or `'KerasTensor' object has no attribute 'op'`; or another branch."""
    text = program(network=network).replace("def model_fn", f"{top}\n\ndef model_fn", 1)
    assert [found for found, _ in manual(text)] == ["TFM240"]


def test_attributes_of_other_names_are_not_asked_of_tensors() -> None:
    text = program(network="print(tf.constant(1.0).shape.rank, net.name)")
    assert not manual(text)


IMAGES = (
    "x, y = tf.image.resize_images(x, [3, 4]), tf.div(y, x)\n        return tf.image.resize_images(x, [2, 2], 1), y"
)


def test_functions_of_the_file_resize_and_divide_as_tensorflow_1_did() -> None:
    text = program().replace("    return tf.data", f"    def parse(x, y):\n        {IMAGES}\n\n    return tf.data")
    new, _ = run(text.replace(".batch(1)", ".batch(1).map(parse)"))
    assert (
        IMAGES.replace("tf.div", "div")
        .replace("tf.image.resize_images(x, [3", "resize_bilinear(x, [3")
        .replace("tf.image.resize_images(x, [2, 2], 1)", "resize_nearest(x, [2, 2])")
        in new
    )
    assert new.count("def resize_bilinear(") == new.count("def resize_nearest(") == new.count("def div(") == 1


def test_summaries_of_helpers_are_left_out() -> None:
    helper = (
        "def block(net):\n    # what comes in\n    tf.summary.histogram('in', net)\n"
        "    if net.shape[1] > 1:\n        tf.summary.scalar('mean', tf.reduce_mean(net))\n"
        "    return tf.nn.relu(net)\n\n\n"
    )
    text = program(network="net = block(net)").replace("def model_fn", helper + "def model_fn")
    new, findings = run(text)
    assert "tf.summary" not in new and "        pass\n" in new and "    # what comes in\n" in new
    assert [f.line for f in findings if f.code == "TFM801"] == [10, 12]
    assert "TFM203" in [f.code for f in run(text.replace("    tf.summary", "    s = tf.summary", 1))[1]]


def test_arguments_that_are_no_flags_still_reach_main() -> None:
    driver = "def main(argv):\n    pass\n\n\ntf.app.run(main)\nestimator.train(input_fn, steps=3)"
    new, _ = run("import argparse\n" + program(driver=driver))
    assert "absl.app.run(main, flags_parser=lambda argv: absl.flags.FLAGS(argv, known_only=True))\n" in new
    assert "import absl.app\nimport absl.flags\n" in new
    assert "absl.app.run(main)\n" in run(program(driver=driver))[0]


@pytest.mark.parametrize("call", ["tf.app.run()", "tf.app.run(None)"])
def test_a_script_without_main_that_runs_it(call: str) -> None:
    text = program(driver=f"estimator.train(input_fn, steps=3)\n{call}")
    new, findings = run(text)
    assert new == text and [f.code for f in findings if f.severity is Severity.MANUAL] == ["TFM204"]
