"""DTensor programs of TensorFlow 2.9 to 2.15 as input: what is mended, what is only told, what is left alone."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from migrator.findings import Severity
from migrator.migrate import Options, migrate
from migrator.modern import modernize
from migrator.source.reading import Source, decode
from tests.fixture_cases import FixtureCase, load_cases
from tests.rules.programs import program

HEAD = "import tensorflow as tf\nfrom tensorflow.experimental import dtensor\n"
MESH = 'mesh = dtensor.create_mesh([("batch", 8)], devices=DEVICES)\n'


def modern(text: str) -> tuple[str, list[str]]:
    """The new text of a file, and its findings as "code line severity"."""
    path, text = Path("train.py"), textwrap.dedent(text)
    new, findings = modernize({path: text}, ())
    return new.get(path, text), [f"{f.code} {f.line} {f.severity.value}" for f in sorted(findings.get(path, []))]


@pytest.mark.parametrize(
    "text",
    [
        # The core API as it is in 2.21.
        HEAD + MESH + "layout = dtensor.Layout.replicated(mesh, rank=2)\nw = dtensor.DVariable(tf.zeros([2, 2]))\n",
        # The shape of a tensor, of a mesh, of a variable with a layout.
        HEAD + MESH + "n = x.shape[0] + mesh.shape()[0] + variable.shape[1]\n",
        "import numpy as np\n" + HEAD + MESH + "layout = np.zeros([3, 4])\nn = layout.shape[0]\n",
        # A counter that is a variable; one in a method that updates nothing; one in a file without tf.function.
        HEAD + "class A(tf.Module):\n    def __init__(self):\n        self.t = dtensor.DVariable(1.0)\n"
        "    def step(self):\n        self.t += 1.0\n        self.w.assign_sub(1.0)\nrun = tf.function(A().step)\n",
        HEAD + "class A:\n    def __init__(self):\n        self.t = 0\n    def see(self):\n        self.t += 1\n"
        "run = tf.function(f)\n",
        HEAD + "class A:\n    def __init__(self):\n        self.t = 0\n    def step(self):\n        self.t += 1\n"
        "        self.w.assign_sub(1.0)\n",
        # Widths that are used in between, or the same.
        HEAD + MESH + "width = 700\nfirst = layer(width)\nwidth = 500\nsecond = layer(width)\nn = 3\nn = 3\n",
        # Batches that divide: without a remainder, dropped, or no data set at all.
        HEAD + MESH + "ds = tf.data.Dataset.range(9).batch(8, drop_remainder=True)\nx = client.batch(12)\n",
        HEAD + 'mesh = dtensor.create_mesh([("model", 2)], device_type="CPU")\n'
        "ds = tf.data.Dataset.range(9).batch(3)\n",
        HEAD + MESH.replace("DEVICES", '["CPU:%d" % i for i in range(8)]') + "ds = dataset.take(5000).batch(128)\n",
        # keras.distribution where it works.
        'import os\nos.environ["KERAS_BACKEND"] = "jax"\nimport keras\n'
        "keras.distribution.set_distribution(keras.distribution.DataParallel())\n",
        "import tensorflow as tf\nfrom scipy import distribution\nd = distribution.DataParallel()\n",
    ],
)
def test_left_alone(text: str) -> None:
    assert modernize({Path("train.py"): text}, ()) == ({}, {})


def test_names_of_2_9_by_what_the_file_calls_them() -> None:
    new, findings = modern(
        """\
        import tensorflow as tf
        from tensorflow.experimental import dtensor
        from tensorflow.keras.dtensor.experimental import layout_map_scope

        dtensor.initialize_multi_client()
        dtensor.initialize_tpu_system(enable_coordination_service=True)
        layout = dtensor.Layout(["batch", "unsharded"], mesh)
        with dtensor.run_on(layout):
            x = tf.ones([8])
        with dtensor.run_on(mesh):
            y = tf.ones([8])
        layouts = tf.keras.dtensor.experimental.LayoutMap(mesh=mesh)
        with layout_map_scope(layouts):
            model = make()
        optimizer = tf.keras.dtensor.experimental.optimizers.Adam(0.01, 0.9, 0.999, 1e-7, True, mesh=mesh)
        dtensor.shutdown_tpu_system()
        """
    )
    assert new.partition("import tensorflow as tf\n")[2] == textwrap.dedent(
        """\
        from tensorflow.experimental import dtensor

        dtensor.initialize_accelerator_system()
        dtensor.initialize_accelerator_system("TPU", enable_coordination_service=True)
        layout = dtensor.Layout(["batch", "unsharded"], mesh)
        with dtensor.default_mesh(layout.mesh):
            x = tf.ones([8])
        with dtensor.default_mesh(mesh):
            y = tf.ones([8])
        layouts = tf.keras.dtensor.experimental.LayoutMap(mesh=mesh)
        with layouts.scope():
            model = make()
        optimizer = tf.keras.dtensor.experimental.optimizers.Adam(0.01, 0.9, 0.999, 1e-7, amsgrad=True, mesh=mesh)
        dtensor.shutdown_accelerator_system()
        """
    )
    assert "TF_USE_LEGACY_KERAS" in new
    assert {line.split()[0] for line in findings} == {"TFM770", "TFM712"}


def test_what_is_gone_is_named() -> None:
    text = HEAD + (
        "mesh = dtensor.create_distributed_mesh([('batch', 8)], num_clients=2, client_id=0)\n"
        "print(weight_layout.serialized_string(), other.mesh_proto())\n"
        "from keras.dtensor.experimental import LayoutMap\n"
        "from tensorflow.experimental.dtensor import run_on\n"
        "optimizer = tf.keras.optimizers.Adam(mesh=mesh, ema_option=average)\n"
    )
    new, findings = modern(text)
    assert [line for line in findings if line.startswith("TFM771")] == [
        "TFM771 3 manual",
        "TFM771 3 manual",
        "TFM771 4 manual",
        "TFM771 5 manual",
        "TFM771 6 manual",
        "TFM771 7 manual",
    ]
    assert new.endswith(text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("layout.shape[axis]", "layout.num_shards(axis)"),
        ("variable.layout.shape[0]", "variable.layout.num_shards(0)"),
        ("dtensor.fetch_layout(x).shape[i + 1]", "dtensor.fetch_layout(x).num_shards(i + 1)"),
    ],
)
def test_shards_of_an_axis(before: str, after: str) -> None:
    new, findings = modern(HEAD + f"pieces = tf.split(x, {before})\n")
    assert new == HEAD + f"pieces = tf.split(x, {after})\n"
    assert findings == ["TFM772 3 review"]


def test_a_declared_layout_is_one() -> None:
    text = HEAD + "def split(x, where: dtensor.Layout):\n    return tf.split(x, where.shape[0])\n"
    assert "where.num_shards(0)" in modern(text)[0]


def test_the_shape_of_a_layout_as_a_whole_is_only_told() -> None:
    text = HEAD + "print(layout.shape, layout.shape[-1])\n"
    assert modern(text) == (text, ["TFM772 3 review", "TFM772 3 review"])


@pytest.mark.parametrize("count", ["self.t += 1.0", "self.t = self.t + 1.0", "self.t = 1.0 + self.t"])
def test_a_counter_that_tracing_freezes(count: str) -> None:
    text = HEAD + textwrap.dedent(
        f"""\
        class Adam(tf.Module):
            def __init__(self, variables):
                self.rate = 0.001
                self.t = 1.0

            def apply(self, gradients):
                for gradient, variable in zip(gradients, self.variables):
                    variable.assign_sub(gradient * self.rate / (1 - 0.9 ** self.t))
                {count}

        @tf.function
        def step(x):
            Adam([]).apply(x)
        """
    )
    assert modern(text) == (text, ["TFM773 11 review"])


@pytest.mark.parametrize(
    ("made", "count", "line"),
    [
        ("t: float = 1.0", "self.t += 1.0", 7),
        ("def __init__(self, t=1):\n        self.t = t", "self.t += 1", 8),
        ("def __init__(self):\n        self.t = {'steps': 0}", "self.t['steps'] += 1", 8),
        ("def __init__(self):\n        self.t = {'steps': None}", "self.t['steps'] += 1", None),
        ("def __init__(self, t):\n        self.t = t", "self.t += 1", None),
    ],
)
def test_counters_as_people_begin_them(made: str, count: str, line: int | None) -> None:
    text = HEAD + f"class Adam:\n    {made}\n    def apply(self, variable, gradient):\n"
    text += f"        variable.assign_sub(gradient)\n        {count}\n\nrun = tf.function(Adam().apply)\n"
    assert modern(text) == (text, [] if line is None else [f"TFM773 {line} review"])


def test_counters_around_a_traced_function() -> None:
    text = HEAD + textwrap.dedent(
        """\
        t = 0

        @tf.function
        def step(variable, gradient):
            global t
            t += 1
            variable.assign_sub(gradient / t)

        def make():
            count, other = 0.0, 1
            seen = 0

            @tf.function
            def step(variable, gradient):
                nonlocal seen
                seen = seen + 1
                variable.assign_sub(gradient / seen)

            return step
        """
    )
    assert modern(text) == (text, ["TFM773 8 review", "TFM773 18 review"])
    eager = text.replace("@tf.function\n", "").replace("assign_sub", "look_at") + "run = tf.function(make)\n"
    assert modern(eager) == (eager, [])


@pytest.mark.parametrize(
    ("widths", "expected"),
    [
        ("hidden_1 = 700\nhidden_2 = 500\nhidden_2 = 10", ["TFM774 5 review"]),
        ("hidden_1, hidden_2 = 700, 500\nhidden_2 = 10", ["TFM774 4 review"]),
        ("hidden_1: int = 700\nhidden_1: int = 10\nhidden_2 = 10", ["TFM774 4 review"]),
        ("sizes = {'hidden': 500, 'out': 10, 'hidden': 10}", ["TFM774 3 review"]),
        ("sizes = {'hidden': 10, 'out': 10}\nhidden_1 = 10\nhidden_1 = 10", []),
        ("hidden_2 = 500\nuse(hidden_2)\nhidden_2 = 10", []),
    ],
)
def test_a_width_that_is_overwritten(widths: str, expected: list[str]) -> None:
    text = HEAD + widths + "\nmodel = make(hidden_1, hidden_2)\n"
    assert modern(text) == (text, expected)


def test_a_mesh_whose_dimensions_have_a_name() -> None:
    text = HEAD + 'DIMS = [("batch", 8)]\nmesh = dtensor.create_mesh(DIMS, devices=["CPU:0"] * 8)\n'
    text += "first = tf.data.Dataset.range(99).batch(batch_size=12)\n"
    text += "second = tf.data.Dataset.range(99).padded_batch(12, drop_remainder=True)\n"
    assert modern(text) == (text, ["TFM775 5 manual", "TFM775 6 manual"])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("tf.data.Dataset.range(100).batch(12)", "TFM775 4 manual"),
        ("tf.data.Dataset.range(100).batch(16)", "TFM775 4 review"),
        ("train_data.shuffle(9).batch(16)", "TFM775 4 review"),
    ],
)
def test_batches_over_the_mesh(data: str, expected: str) -> None:
    text = HEAD + MESH.replace("DEVICES", '["CPU:0"] * 8') + f"batches = {data}\n"
    assert modern(text) == (text, [expected])


def test_a_last_batch_that_cannot_be_split_is_dropped() -> None:
    devices = 'DEVICES = [f"CPU:{i}" for i in range(8)]\n'
    mesh = 'mesh = dtensor.create_mesh([("batch", len(DEVICES))], devices=DEVICES)\n'
    new, findings = modern(HEAD + devices + mesh + "ds = tf.data.Dataset.range(9999).take(100).cache().batch(16)\n")
    assert new.endswith("ds = tf.data.Dataset.range(9999).take(100).cache().batch(16, drop_remainder=True)\n")
    assert findings == ["TFM775 5 review"]


def test_gradients_that_are_applied_as_they_come() -> None:
    step = (
        "@tf.function\ndef step(x):\n    with tf.GradientTape() as tape:\n        loss = f(x)\n"
        "    gradients = tape.gradient(loss, variables)\n    {}\n"
    )
    text = HEAD + MESH + step.format("optimizer.apply_gradients(zip(gradients, variables))")
    assert modern(text) == (text, ["TFM777 8 review"])
    for exact in (
        "optimizer.apply([dtensor.relayout(g, v.layout) for g, v in zip(gradients, variables)])",
        "[v.assign_sub(g) for g, v in zip(gradients, variables)]",
    ):
        text = HEAD + MESH + step.format(exact)
        assert modern(text) == (text, [])


def test_a_metric_gets_the_mesh_that_it_sees() -> None:
    packed = "x = dtensor.pack(parts, layout)\n"
    new, findings = modern(HEAD + MESH + packed + "hits = tf.keras.metrics.Mean('hits')\nhits.update_state(x)\n")
    assert new.endswith("hits = tf.keras.metrics.Mean('hits', mesh=mesh)\nhits.update_state(x)\n")
    assert "TF_USE_LEGACY_KERAS" in new and findings == ["TFM778 5 review"]


@pytest.mark.parametrize(
    "text",
    [
        MESH + "mesh = dtensor.create_mesh(other)\nhits = tf.keras.metrics.Mean()\n",
        "def make():\n    " + MESH + "    return mesh\nhits = tf.keras.metrics.Mean()\n",
        "hits = tf.keras.metrics.Mean()\n" + MESH,
    ],
)
def test_a_metric_that_sees_no_mesh_is_told_of(text: str) -> None:
    text = HEAD + text + "x = dtensor.pack(parts, layout)\nhits.update_state(x)\n"
    new, findings = modern(text)
    assert new == text and [line[:6] for line in findings] == ["TFM778"]


@pytest.mark.parametrize(
    "text",
    [
        "x = dtensor.pack(parts, layout)\nhits = tf.keras.metrics.Mean()\nhits.update_state(loss.numpy())\n",
        "hits = tf.keras.metrics.Mean()\nhits.update_state(x)\n",
        "x = dtensor.pack(parts, layout)\nhits = tf.keras.metrics.Mean\n",
    ],
)
def test_a_metric_of_numbers_is_left_alone(text: str) -> None:
    assert modern(HEAD + MESH + text) == (HEAD + MESH + text, [])


@pytest.mark.parametrize(
    "text",
    [
        "import keras\nkeras.distribution.set_distribution(keras.distribution.DataParallel())\n",
        "import tensorflow as tf\nfrom tensorflow import keras\nd = keras.distribution.DataParallel()\n",
        "from keras import distribution\nd = distribution.DataParallel()\nkeras = 3\n",
        "import tensorflow as tf\nfrom keras.distribution import DataParallel\nd = DataParallel()\n",
    ],
)
def test_keras_distribution_does_nothing_on_tensorflow(text: str) -> None:
    new, findings = modernize({Path("train.py"): text}, ())
    assert new == {}
    assert [(f.code, f.severity) for f in findings[Path("train.py")]] == [("TFM776", Severity.MANUAL)]


@pytest.mark.parametrize(
    "call",
    [
        "tf.keras.layers.Dense(3, kernel_layout=layout, bias_layout=layout)",
        "tf.keras.metrics.Mean(mesh=mesh)",
        "tf.keras.dtensor.experimental.LayoutMap(mesh=mesh)",
    ],
)
def test_keras_with_layouts_needs_keras_2(call: str) -> None:
    new, findings = modern(HEAD + f"thing = {call}\n")
    assert "TF_USE_LEGACY_KERAS" in new and new.endswith(f"thing = {call}\n")
    assert findings == ["TFM712 3 migrated"]


@pytest.mark.parametrize("case", load_cases(dtensor=True), ids=lambda case: case.name)
def test_a_fixture_comes_out_as_expected(case: FixtureCase) -> None:
    text = case.original.read_text(encoding="utf-8")
    new, findings = modernize({case.original: text}, ())
    expected = case.migrated.read_text(encoding="utf-8")
    assert new[case.original] == expected
    assert not [f for f in findings[case.original] if f.severity is Severity.MANUAL]
    assert modernize({case.migrated: expected}, ())[0] == {}


APART = (
    HEAD
    + MESH
    + (
        "@tf.function\ndef gradients(x):\n    with tf.GradientTape() as tape:\n        loss = f(x)\n"
        "    return tape.gradient(loss, variables)\n\n\n"
        "def step(x):\n    optimizer.apply_gradients(zip(gradients(x), variables))\n"
    )
)


def test_gradients_that_an_optimizer_of_the_program_lays_out() -> None:
    """Where all of its optimizers do, and none is Keras'."""
    laid = (
        "class Descent:\n    def apply_gradients(self, gradients, variables):\n"
        "        for g, v in zip(gradients, variables):\n            v.assign_sub(dtensor.relayout(g, v.layout))\n"
    )
    step = (
        "@tf.function\ndef step(x):\n    with tf.GradientTape() as tape:\n        loss = f(x)\n"
        "    Descent().apply_gradients(tape.gradient(loss, variables), variables)\n"
    )
    text = HEAD + MESH + laid + step
    assert modern(text) == (text, [])
    for trap in (
        text.replace("dtensor.relayout(g, v.layout)", "g"),
        text + laid.replace("Descent", "Other").replace("dtensor.relayout(g, v.layout)", "g"),
    ):
        new, findings = modern(trap)
        assert new == trap and [one.split()[0] for one in findings] == ["TFM777"], trap


def test_gradients_that_are_applied_outside_of_their_function() -> None:
    in_place = APART.replace("def step(x):\n    ", "for x in batches:\n    ")
    assert modern(APART) == (APART, []) and modern(in_place) == (in_place, [])
    for trap in (
        APART.replace("def step", "@tf.function\ndef step"),
        APART + "\n\nquick = tf.function(step)\n",
        APART + "\n\n@tf.function\ndef steps(batches):\n    for batch in batches:\n        step(batch)\n",
    ):
        new, findings = modern(trap)
        assert new == trap and [one.split()[0] for one in findings] == ["TFM777"], trap


def test_a_program_for_a_mesh_is_left_alone() -> None:
    """A second migration of what `--strategy dtensor` writes changes nothing and warns of nothing."""
    source = decode(Path("train.py"), program().encode())
    assert isinstance(source, Source)
    [first] = migrate([source], Options("dtensor", "native", mesh="model=2", layouts=(".*kernel=model,unsharded",)))
    assert "create_mesh" in first.text
    assert modern(first.text) == (first.text, [])


def test_sparse_gradients_of_embeddings() -> None:
    text = APART + "\n\ntable = tf.keras.layers.Embedding(12, 4)\n"
    assert [one.split()[0] for one in modern(text)[1] if "TFM7" in one] == ["TFM779"]
    dense = text.replace("return tape.gradient(loss, variables)", "return dense(tape.gradient(loss, variables))")
    dense += "\n\ndef dense(gradients):\n    return [tf.convert_to_tensor(gradient) for gradient in gradients]\n"
    assert not [one for one in modern(dense)[1] if "TFM779" in one]
