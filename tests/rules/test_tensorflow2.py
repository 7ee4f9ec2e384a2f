"""Programs that are TensorFlow 2 already: what is mended, what is only told, and what is left alone."""

from __future__ import annotations

import json
import subprocess
import textwrap
from pathlib import Path

import pytest

from migrator.migrate import Options, migrate
from migrator.modern import modernize
from migrator.rules import tf2_names
from migrator.source.reading import Source
from tests.names.test_symbols import environment

HEADER = """\
import importlib.util
import os

# Keras 2 (tf_keras), not the Keras 3 of TensorFlow 2.16 and newer: this program needs it.
if importlib.util.find_spec("tf_keras"):
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
"""


def modern(text: str) -> tuple[str, list[str]]:
    """The new text of a file, and its findings as "code line"."""
    path, text = Path("train.py"), textwrap.dedent(text)
    new, findings = modernize({path: text}, ())
    return new.get(path, text), [f"{f.code} {f.line}" for f in sorted(findings.get(path, []))]


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n",
        # One device, or several of one machine with fit: Keras 3 does the same.
        "import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\nwith strategy.scope():\n"
        "    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n",
        # A recurrent layer has reset_states, and what is not known may have it as well.
        "import tensorflow as tf\nlayer = tf.keras.layers.LSTM(3, stateful=True)\nlayer.reset_states()\n"
        "x.reset_states()\n",
        # Another library's names.
        "import tensorflow as tf\nfrom experimental import run\nclient.run(run)\nthing.lr = 3\nAdam(lr=0.1)\n",
        # TensorFlow 1 code is none of this.
        "import tensorflow as tf\nw = tf.trainable_variables()\noptions = tf.data.experimental.AUTOTUNE\n",
        "import tensorflow.compat.v1 as tf\noptions = tf.data.experimental.AUTOTUNE\n",
        # Chosen already.
        'import os\nos.environ["TF_USE_LEGACY_KERAS"] = "1"\nimport tensorflow as tf\n'
        "strategy = tf.distribute.ParameterServerStrategy(resolver)\nmodel = tf.keras.Sequential()\n",
        # No Keras in it: nothing to choose.
        "import tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n",
    ],
)
def test_left_alone(text: str) -> None:
    assert modernize({Path("train.py"): text}, ()) == ({}, {})


def test_files_of_an_estimator_program_are_left_to_it() -> None:
    texts = {
        "train.py": "import tensorflow as tf\nimport data\nprint(tf.estimator.DNNClassifier([3], []).config)\n",
        "data.py": "import tensorflow as tf\nn = tf.data.experimental.AUTOTUNE\n",
        "other.py": "import tensorflow as tf\nn = tf.data.experimental.AUTOTUNE\n",
    }
    sources = [Source(Path(path), text.encode(), text, "utf-8", False) for path, text in texts.items()]
    changed = [str(result.source.path) for result in migrate(sources, Options()) if result.text != result.source.text]
    assert changed == ["other.py"]


def test_names_by_what_the_file_calls_them() -> None:
    new, findings = modern(
        """\
        import tensorflow as tf
        from tensorflow import keras
        from tensorflow.keras.experimental import CosineDecay
        from tensorflow.keras.mixed_precision.experimental import set_policy
        from tensorflow.keras.optimizers.experimental import Adam, SGD

        n = tf.data.experimental.AUTOTUNE
        scale = keras.layers.experimental.preprocessing.Rescaling(2.0)
        """
    )
    assert new == textwrap.dedent(
        """\
        import tensorflow as tf
        from tensorflow import keras
        from tensorflow.keras.optimizers.schedules import CosineDecay
        from tensorflow.keras.mixed_precision import set_global_policy as set_policy
        from tensorflow.keras.optimizers import Adam, SGD

        n = tf.data.AUTOTUNE
        scale = keras.layers.Rescaling(2.0)
        """
    )
    assert findings == ["TFM710 3", "TFM710 4", "TFM710 5", "TFM710 5", "TFM710 7", "TFM710 8"]


PREPROCESSING = "from tensorflow.keras.layers.experimental import preprocessing"
MODULES = [
    # What is used of the module decides nothing here: its names are the same in the new one.
    (
        f"{PREPROCESSING}\nx = preprocessing.Rescaling(2.0)\n",
        "from tensorflow.keras import layers as preprocessing\nx = preprocessing.Rescaling(2.0)\n",
    ),
    (
        f'{PREPROCESSING}\n__all__ = ["preprocessing"]\n',
        'from tensorflow.keras import layers as preprocessing\n__all__ = ["preprocessing"]\n',
    ),
    (
        "import tensorflow as tf\n# of policies\n"
        "from tensorflow.keras.mixed_precision import experimental as mixed_precision  # noqa\n"
        "mixed_precision.set_policy(mixed_precision.Policy('mixed_float16'))\n",
        "import tensorflow as tf\n# of policies\nfrom tensorflow.keras import mixed_precision  # noqa\n"
        "mixed_precision.set_global_policy(mixed_precision.Policy('mixed_float16'))\n",
    ),
    (
        "import tensorflow.keras.mixed_precision.experimental as mp\nmp.set_policy('mixed_float16')\n",
        "import tensorflow.keras.mixed_precision as mp\nmp.set_global_policy('mixed_float16')\n",
    ),
    (
        "import tensorflow.keras.layers.experimental.preprocessing\n"
        "x = tensorflow.keras.layers.experimental.preprocessing.Rescaling(2.0)\n",
        "import tensorflow.keras.layers\nx = tensorflow.keras.layers.Rescaling(2.0)\n",
    ),
    (
        "from tensorflow.keras.layers import Dense, experimental\n"
        "x = experimental.preprocessing.Rescaling(2.0), experimental.EinsumDense.__name__\n",
        "from tensorflow.keras.layers import Dense\nfrom tensorflow.keras import layers as experimental\n"
        "x = experimental.Rescaling(2.0), experimental.EinsumDense.__name__\n",
    ),
    (
        "from tensorflow.keras import experimental\nx = experimental.CosineDecay(0.1, 9)\n",
        "from tensorflow.keras.optimizers import schedules as experimental\nx = experimental.CosineDecay(0.1, 9)\n",
    ),
    (
        "import tensorflow as tf\npre = tf.keras.layers.experimental.preprocessing\nx = pre.Rescaling(2.0)\n",
        "import tensorflow as tf\npre = tf.keras.layers\nx = pre.Rescaling(2.0)\n",
    ),
    # Several names: those that are elsewhere now get lines of their own, and no comment goes.
    (
        "if True:\n    # above\n    from tensorflow.keras.optimizers.experimental import (\n        SGD as S,  # in\n"
        "        Adam,\n        schedules,\n    )  # behind\n",
        "if True:\n    # above\n    # in\n    from tensorflow.keras.optimizers import SGD as S, Adam\n"
        "    from tensorflow.keras.optimizers.experimental import schedules  # behind\n",
    ),
    (
        "from tensorflow.keras.layers.experimental.preprocessing import (\n    Rescaling,  # one\n    Resizing,\n)\n",
        "from tensorflow.keras.layers import (\n    Rescaling,  # one\n    Resizing,\n)\n",
    ),
]


@pytest.mark.parametrize(("before", "after"), MODULES)
def test_modules_that_moved(before: str, after: str) -> None:
    new, findings = modern(before)
    assert new == after and {f.split()[0] for f in findings} == {"TFM710"}


@pytest.mark.parametrize(
    "text",
    [
        f"{PREPROCESSING}\nx = preprocessing.PreprocessingLayer\n",
        f"{PREPROCESSING}\nx = preprocessing.nobody_knows(3)\n",
        "from tensorflow.keras import experimental\nx = experimental.LinearModel()\n",
        "import tensorflow as tf\nf(tf.keras.layers.experimental.preprocessing)\n",
        "import tensorflow as tf\nm = a = tf.keras.layers.experimental\nx = m.SyncBatchNormalization()\n",
    ],
)
def test_modules_that_stay_on_keras_2(text: str) -> None:
    assert modern(text)[0] == HEADER + text


@pytest.mark.parametrize("use", ["mp.LossScaleOptimizer(o, 'dynamic')", "mp.nobody_knows(3)"])
def test_a_module_that_is_nowhere(use: str) -> None:
    text = f"from tensorflow.keras.mixed_precision import experimental as mp\n{use}\n"
    new, findings = modern(text)
    assert new == text and "TFM711 1" in findings


def test_imports_in_a_line_with_others() -> None:
    text = "from tensorflow.keras.layers import Dense, experimental; x = experimental.EinsumDense('a', 3)\n"
    assert modern(text)[0] == (
        "from tensorflow.keras.layers import Dense; from tensorflow.keras import layers as experimental; "
        "x = experimental.EinsumDense('a', 3)\n"
    )


def test_strategies_of_older_names() -> None:
    new, findings = modern(
        """\
        import tensorflow as tf

        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy(
            tf.distribute.experimental.CollectiveCommunication.RING, resolver
        )
        tpu = tf.distribute.experimental.TPUStrategy(resolver, device_assignment=None)
        model = tf.keras.Sequential()
        """
    )
    assert new == HEADER + textwrap.dedent(
        """\
        import tensorflow as tf

        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        strategy = tf.distribute.MultiWorkerMirroredStrategy(
            communication_options=tf.distribute.experimental.CommunicationOptions(
                implementation=tf.distribute.experimental.CommunicationImplementation.RING
            ), cluster_resolver=resolver
        )
        tpu = tf.distribute.TPUStrategy(resolver, experimental_device_assignment=None)
        model = tf.keras.Sequential()
        """
    )
    assert set(findings) == {"TFM710 4", "TFM710 5", "TFM710 7", "TFM712 4"}


def test_keras_2_is_chosen_where_tensorflow_is_first_imported() -> None:
    texts = {
        Path("main.py"): "import tensorflow as tf\nimport model\n\nmodel.build()\n",
        Path("model.py"): "import tensorflow as tf\n\ndef build():\n    return tf.keras.optimizers.legacy.Adam()\n",
        Path("other.py"): "import tensorflow as tf\nprint(tf.keras.__name__)\n",
    }
    new, findings = modernize(texts, ())
    assert sorted(map(str, new)) == ["main.py", "model.py"]
    assert all(new[path] == HEADER + texts[path] for path in new)
    assert [f.code for f in findings[Path("model.py")]] == ["TFM712"]
    # Also in a script that has something to mend of its own.
    texts[Path("main.py")] += "n = tf.data.experimental.AUTOTUNE\n"
    new, _ = modernize(texts, ())
    assert new[Path("main.py")] == HEADER + texts[Path("main.py")].replace(".experimental", "")


OPTIMIZERS = [
    ("Adam(lr=0.1, beta_1=0.8)", "Adam(learning_rate=0.1, beta_1=0.8)"),
    ("SGD(decay=0.0, momentum=0.9)", "SGD(momentum=0.9)"),
    ("SGD(lr=0.1, decay=0.)", "SGD(learning_rate=0.1)"),
    ("SGD(lr=0.1, decay=0.5)", "SGD(learning_rate=tf.keras.optimizers.schedules.InverseTimeDecay(0.1, 1, 0.5))"),
    ("SGD(decay=0.5)", "SGD(tf.keras.optimizers.schedules.InverseTimeDecay(0.01, 1, 0.5))"),
    ("Adam(0.1, 0.8, decay=d)", "Adam(tf.keras.optimizers.schedules.InverseTimeDecay(0.1, 1, d), 0.8)"),
]


@pytest.mark.parametrize(("before", "after"), OPTIMIZERS)
def test_optimizers(before: str, after: str) -> None:
    start = "import tensorflow as tf\noptimizer = tf.keras.optimizers."
    assert modern(f"{start}{before}\n") == (f"{start}{after}\n", ["TFM713 2"])
    shorter = start.replace("keras.", "")
    assert modern(f"{shorter}{before}\n") == (f"{shorter}{after.replace('keras.', '')}\n", ["TFM713 2"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "0.1,  # rate\n    decay=0.0,  # none\n    momentum=0.9,  # heavy\n",
            "0.1,  # rate\n    # none\n    momentum=0.9,  # heavy\n",
        ),
        (
            "momentum=0.9,  # heavy\n    # above\n    decay=0.0,  # none\n    # end\n",
            "momentum=0.9,  # heavy\n    # above\n    # none\n    # end\n",
        ),
        ("0.1,  # rate\n    decay=0.0  # none\n", "0.1,  # rate\n    # none\n"),
        ("decay=0.0,  # none\n    momentum=0.9\n", "# none\n    momentum=0.9\n"),
        (
            "lr=0.1,  # rate\n    decay=0.5\n",
            "learning_rate=tf.keras.optimizers.schedules.InverseTimeDecay(0.1, 1, 0.5),  # rate\n",
        ),
    ],
)
def test_no_comment_is_lost_with_an_argument(before: str, after: str) -> None:
    start = "import tensorflow as tf\nx = tf.keras.optimizers.SGD(\n    "
    new = modern(f"{start}{before})\n")[0]
    assert new == f"{start}{after})\n"


def test_a_rate_that_a_callback_sets_is_no_schedule() -> None:
    text = (
        "import tensorflow as tf\noptimizer = tf.keras.optimizers.SGD(0.1, decay=0.5)\n"
        "callback = tf.keras.callbacks.ReduceLROnPlateau()\n"
    )
    new, findings = modern(text)
    assert new == text and findings == ["TFM713 2"]


def test_models_and_metrics() -> None:
    new, findings = modern(
        """\
        import tensorflow as tf

        class Trainer:
            def __init__(self):
                self.mean = tf.keras.metrics.Mean()

            def epoch(self):
                self.mean.reset_states()
                for metric in [tf.keras.metrics.Mean(), self.mean]:
                    metric.reset_states()
                self.model.fit_generator(generator=batches(), steps_per_epoch=3)
                self.model.evaluate_generator(batches(), 3, verbose=0)
                return self.model.optimizer.lr
        """
    )
    assert "self.mean.reset_state()" in new
    assert "metric.reset_states()" in new  # one of the two is not known to be a metric
    assert "self.model.fit(x=batches(), steps_per_epoch=3)" in new
    assert "self.model.evaluate(batches(), steps=3, verbose=0)" in new
    assert "return self.model.optimizer.learning_rate" in new
    assert findings == ["TFM715 8", "TFM714 11", "TFM714 12", "TFM713 13"]


@pytest.mark.parametrize("given", ["workers=4, use_multiprocessing=True", "max_queue_size=5"])
def test_generators_with_threads_of_keras_2(given: str) -> None:
    text = "import tensorflow as tf\nmodel = tf.keras.models.load_model('m')\n"
    text += f"model.fit_generator(data(), 3, {given})\n"
    new, findings = modern(text)
    assert new.startswith(HEADER) and f"model.fit(data(), steps_per_epoch=3, {given})" in new
    assert findings == ["TFM714 3"] and modern(new)[0] == new


METRIC = """\
import tensorflow as tf

class Low(tf.keras.metrics.Metric):
    def __init__(self):
        super().__init__()
        self.low = self.add_weight(name="low")
        self.mean = tf.keras.metrics.Mean()
        self.reset_states()

    def reset_states(self):
        self.low.assign(9.0)
        self.mean.reset_states()

class Lower(Low):
    def reset_states(self):
        super().reset_states()
        super(Lower, self).reset_states()

low = Lower()
low.reset_states()
Low().reset_states()
rnn = tf.keras.layers.LSTM(3)
rnn.reset_states()
"""


def test_own_metrics() -> None:
    new, findings = modern(METRIC)
    assert new == METRIC.replace("reset_states", "reset_state").replace("rnn.reset_state()", "rnn.reset_states()")
    assert [f.split()[0] for f in findings] == ["TFM715"] * 8 and new.count("reset_state()") == 6


@pytest.mark.parametrize(
    "more",
    [
        "for one in model.metrics:\n    one.reset_states()\n",
        "getattr(low, 'reset_states')()\n",
        "class Part:\n    def reset_states(self):\n        pass\nclass M(Part, tf.keras.metrics.Mean):\n    pass\n",
        "from base import Base\nclass M(Base):\n    def update_state(self, y, p):\n        pass\n"
        "    def result(self):\n        return 0\n    def reset_states(self):\n        pass\n",
        "class M(tf.keras.metrics.Mean):\n    def reset_states(self):\n        super().reset_states()\n"
        "    reset_state = reset_states\n",
        "class A(tf.keras.metrics.Mean):\n    def reset_state(self):\n        pass\n"
        "class B(A):\n    def reset_states(self):\n        pass\n",
    ],
)
def test_own_metrics_that_others_may_reset(more: str) -> None:
    start = METRIC.replace("self.mean.reset_states()", "pass")
    assert modern(start + more)[0] == HEADER + start + more


def test_own_metrics_of_other_files() -> None:
    texts = {
        Path("low.py"): METRIC.replace("self.mean.reset_states()", "pass"),
        Path("main.py"): "import tensorflow as tf\nfrom low import Low\nlow = Low()\nlow.reset_states()\n",
    }
    assert modernize(texts, ())[0] == {path: HEADER + text for path, text in texts.items()}


@pytest.mark.parametrize(
    "text",
    [
        "class M(tf.keras.metrics.Mean):\n    def reset_states(self):\n        self.total.assign(0.0)\n"
        "    reset_state = reset_states\nM().reset_states()\n",
        "class M(tf.keras.metrics.Mean):\n    def reset_states(self):\n        self.reset_state()\n"
        "    def reset_state(self):\n        self.total.assign(0.0)\n",
        "class M(Trainer):\n    def reset_states(self):\n        pass\n",
        "class M(tf.keras.layers.LSTM):\n    def reset_states(self):\n        super().reset_states()\n",
    ],
)
def test_classes_that_keep_their_reset_states(text: str) -> None:
    text = "import tensorflow as tf\n" + text
    assert modern(text) == (text, [])


REDUCTION = "tf.keras.losses.Reduction"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            f"tf.keras.losses.Huber(reduction={REDUCTION}.AUTO)",
            f"tf.keras.losses.Huber(reduction={REDUCTION}.SUM_OVER_BATCH_SIZE)",
        ),
        (
            f"tf.keras.losses.Huber(1.0, {REDUCTION}.AUTO)",
            f"tf.keras.losses.Huber(1.0, {REDUCTION}.SUM_OVER_BATCH_SIZE)",
        ),
        ("tf.keras.losses.Huber(reduction='auto')", "tf.keras.losses.Huber(reduction='sum_over_batch_size')"),
        ("f(reduction='auto')", "f(reduction='auto')"),
        (f"tf.keras.losses.Huber(reduction={REDUCTION}.SUM_OVER_BATCH_SIZE)",) * 2,
        (
            "tf.distribute.InputOptions(experimental_prefetch_to_device=False)",
            "tf.distribute.InputOptions(experimental_fetch_to_device=False)",
        ),
        ("tf.keras.optimizers.Adam(**{'lr': 0.1})", "tf.keras.optimizers.Adam(**{'learning_rate': 0.1})"),
    ],
)
def test_arguments_with_other_values_or_names(before: str, after: str) -> None:
    start = "import tensorflow as tf\nx = "
    new, findings = modern(start + before + "\n")
    assert new == start + after + "\n"
    assert bool(findings) is (before != after)


def test_a_reduction_that_is_compared_needs_keras_2() -> None:
    text = f"import tensorflow as tf\nx = loss.reduction == {REDUCTION}.AUTO\n"
    assert modern(text)[0] == HEADER + text


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("kw = {'lr': 0.1, 'beta_1': 0.9}\nx = tf.keras.optimizers.Adam(**kw)\n", ["TFM713 3"]),
        ("kw = dict(lr=0.1)\nx = tf.keras.optimizers.Adam(**kw)\n", ["TFM713 3"]),
        ("kw = {'learning_rate': 0.1}\nx = tf.keras.optimizers.Adam(**kw)\n", []),
        ("x = tf.keras.optimizers.Adam(**{'decay': 0.1})\n", ["TFM713 2"]),
        ("def f(**kw):\n    kw['lr'] = 0.1\n    return tf.keras.optimizers.Adam(**kw)\n", ["TFM713 4"]),
        ("def f(lr, **kw):\n    return tf.keras.optimizers.Adam(lr, **kw)\n", []),
    ],
)
def test_optimizers_that_are_given_a_dict(lines: str, told: list[str]) -> None:
    text = "import tensorflow as tf\n" + lines
    assert modern(text) == (text, told)


REPLICAS = """\
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    entropy = tf.keras.losses.SparseCategoricalCrossentropy(reduction=tf.keras.losses.Reduction.NONE)
    huber = tf.keras.losses.Huber(reduction="none")
    total = tf.keras.metrics.Mean()


def step(images, labels):
    predictions = model(images)
    {step}
    return loss


def test_step(images, labels):
    return huber(labels[:, tf.newaxis], model(images)[:, tf.newaxis])


@tf.function
def train(batch):
    return strategy.run(step, args=batch)
"""


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("loss = tf.nn.compute_average_loss(entropy(labels, predictions), global_batch_size=8)", None),
        ("loss = tf.reduce_mean(entropy(labels, predictions)) / strategy.num_replicas_in_sync", None),
        ("loss = tf.reduce_mean(entropy(labels, predictions))", "TFM716"),
        ("each = entropy(labels, predictions)\n    loss = tf.reduce_mean(each)", "TFM716"),
        ("each = entropy(labels, predictions)\n    loss = tf.reduce_sum(each) / 8.0", None),
        (
            "each = entropy(labels, predictions)\n"
            "    loss = tf.nn.compute_average_loss(each, global_batch_size=8) / strategy.num_replicas_in_sync",
            "TFM717",
        ),
        ("loss = huber(labels, predictions)", "TFM718"),
        ("loss = huber(labels[:, tf.newaxis], predictions[:, tf.newaxis])", None),
        ("loss = entropy(labels, predictions)\n    total.reset_state()", "TFM719"),
        ("loss = entropy(labels, predictions)\n    total.update_state(loss)", None),
    ],
)
def test_the_step_of_a_replica(step: str, code: str | None) -> None:
    new, findings = modern(REPLICAS.replace("{step}", step))
    assert [f.split()[0] for f in findings] == ([code] if code else [])
    assert new == REPLICAS.replace("{step}", step)


STEP = """\
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
BATCH_SIZE_PER_REPLICA = 4
GLOBAL_BATCH_SIZE = BATCH_SIZE_PER_REPLICA * strategy.num_replicas_in_sync
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD()
    each = tf.keras.losses.SparseCategoricalCrossentropy(reduction=tf.keras.losses.Reduction.NONE)
    total = tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.SUM)
    squared = tf.keras.losses.MeanSquaredError(reduction="none")
    entropy = tf.keras.losses.BinaryCrossentropy(reduction="none")
{helpers}

def step(x, y):
    with tf.GradientTape() as tape:
        p = model(x, training=True)
{loss}
    gradients = tape.gradient(loss, model.trainable_variables)
{apply}
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def train(batch):
    losses = strategy.run(step, args=batch)
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None) / strategy.num_replicas_in_sync


data = tf.data.Dataset.from_tensor_slices((xs, ys)).batch(GLOBAL_BATCH_SIZE)
mean = 0.0
for batch in strategy.experimental_distribute_dataset(data):
    mean += train(batch) / strategy.num_replicas_in_sync
"""
N = "strategy.num_replicas_in_sync"
AVERAGE = "loss = tf.nn.compute_average_loss(each(y, p), global_batch_size=GLOBAL_BATCH_SIZE)"
HELPER = """
def compute_loss(y, p, losses=()):
    per_example = each(y, p)
    {lines}
"""


def steps(loss: str, helpers: str = "", apply: str = "") -> list[str]:
    """The findings of a step, as the code and the text of its line."""
    program = STEP.replace("{helpers}", helpers).replace("{loss}", textwrap.indent(loss, "        "))
    program = program.replace("{apply}", textwrap.indent(apply, "    "))
    new, findings = modern(program)
    assert new == program
    return [f"{f.split()[0]} {program.splitlines()[int(f.split()[1]) - 1].strip()}" for f in findings]


# What the guides of TensorFlow write, and other right forms of it.
RIGHT = [
    (AVERAGE, "", ""),
    ("loss = tf.reduce_sum(each(y, p)) * (1.0 / GLOBAL_BATCH_SIZE)", "", ""),
    ("loss = tf.reduce_sum(each(y, p)) * (1.0 / BATCH_SIZE_PER_REPLICA)\nloss = loss / " + N, "", ""),
    (f"loss = tf.reduce_sum(each(y, p)) / (GLOBAL_BATCH_SIZE / {N})\nloss /= {N}", "", ""),
    (f"loss = total(y, p) / GLOBAL_BATCH_SIZE\nshown = loss * {N}\nshown = shown / {N}", "", ""),
    (f"loss = tf.reduce_mean(each(y, p))\nloss = loss / {N}", "", ""),
    (f"loss = tf.reduce_mean(each(y, p))\nloss *= 1.0 / {N}", "", ""),
    ("loss = tf.reduce_mean(each(y, p))", "", f"gradients = [g / {N} for g in gradients]"),
    (
        f"{AVERAGE}\nif model.losses:\n    loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))",
        "",
        "gradients = [tf.clip_by_norm(g, 1.0) for g in gradients]",
    ),
    (f"{AVERAGE}\nloss += sum(model.losses) / {N}", "", ""),
    (f"{AVERAGE}\nloss += sum(model.losses) * (1.0 / {N})", "", ""),
    (f"loss = (tf.reduce_mean(each(y, p)) + tf.add_n(model.losses)) / {N}", "", ""),
    (f"loss = tf.reduce_mean(each(y, p)) + tf.add_n(model.losses)\nloss = loss / {N}", "", ""),
    (f"loss = compute_loss(y, p) / {N}", HELPER.format(lines="return tf.reduce_mean(per_example)"), ""),
    (
        f"loss, other = compute_loss(y, p)\nloss /= {N}",
        HELPER.format(lines="return tf.reduce_mean(per_example), y"),
        "",
    ),
    (
        "loss = compute_loss(y, p, model.losses)",
        HELPER.format(
            lines="loss = tf.nn.compute_average_loss(per_example)\n"
            "    if losses:\n        loss += tf.nn.scale_regularization_loss(tf.add_n(losses))\n    return loss"
        ),
        "",
    ),
    # One of two ways only.
    (f"if wide:\n    loss = total(y, p) / GLOBAL_BATCH_SIZE\nelse:\n    loss = f(y, p)\nloss = loss / {N}", "", ""),
    # What is not known is not told of.
    (f"loss = elsewhere.loss(y, p)\nloss = loss / {N}", "", ""),
    (f"size = size * 2\nloss = tf.reduce_sum(each(y, p)) / size / {N}", "", ""),
    (
        f"loss = total(y, p) / GLOBAL_BATCH_SIZE\nloss = loss / {N}",
        "",
        "gradients = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, gradients)",
    ),
    ("loss = tf.reduce_sum(squared(y[:, None], p)) / GLOBAL_BATCH_SIZE", "", ""),
    ("loss = tf.reduce_sum(entropy(y[:, tf.newaxis], p)) / GLOBAL_BATCH_SIZE", "", ""),
    ("loss = tf.reduce_sum(tf.keras.losses.mse(y, p)) / GLOBAL_BATCH_SIZE", "", ""),
]
TWICE = f"loss = loss / {N}"
WRONG = [
    (f"{AVERAGE} / {N}", "", "", f"TFM717 {AVERAGE} / {N}"),
    (f"{AVERAGE}\n{TWICE}", "", "", f"TFM717 {TWICE}"),
    (f"{AVERAGE}\nloss = tf.divide(loss, {N})", "", "", f"TFM717 loss = tf.divide(loss, {N})"),
    (f"{AVERAGE}\nn = tf.cast({N}, tf.float32)\nloss *= 1.0 / n", "", "", "TFM717 loss *= 1.0 / n"),
    (
        "loss = compute_loss(y, p)",
        HELPER.format(
            lines=f"loss = tf.nn.compute_average_loss(per_example, global_batch_size=8)\n    return loss / {N}"
        ),
        "",
        f"TFM717 return loss / {N}",
    ),
    (
        f"loss = compute_loss(y, p) / {N}",
        HELPER.format(lines="return tf.nn.compute_average_loss(per_example, global_batch_size=8)"),
        "",
        f"TFM717 loss = compute_loss(y, p) / {N}",
    ),
    (
        f"loss, other = compute_loss(y, p)\n{TWICE}",
        HELPER.format(lines="return tf.reduce_sum(per_example) / GLOBAL_BATCH_SIZE, y"),
        "",
        f"TFM717 {TWICE}",
    ),
    ("loss = tf.reduce_sum(each(y, p)) * (1. / GLOBAL_BATCH_SIZE)\n" + f"loss /= {N}", "", "", f"TFM717 loss /= {N}"),
    (f"loss = tf.reduce_sum(each(y, p) / GLOBAL_BATCH_SIZE)\nloss /= {N}", "", "", f"TFM717 loss /= {N}"),
    (f"loss = total(y, p) / GLOBAL_BATCH_SIZE\n{TWICE}", "", "", f"TFM717 {TWICE}"),
    (
        f"loss = total(y, p) / (GLOBAL_BATCH_SIZE * {N})",
        "",
        "",
        f"TFM717 loss = total(y, p) / (GLOBAL_BATCH_SIZE * {N})",
    ),
    (f"loss = tf.reduce_mean(each(y, p)) / {N}\n{TWICE}", "", "", f"TFM717 {TWICE}"),
    (
        AVERAGE,
        "",
        f"gradients = [g / {N} for g in gradients]",
        f"TFM717 gradients = [g / {N} for g in gradients]",
    ),
    (f"{AVERAGE}\nloss += sum(model.losses)", "", "", "TFM734 loss += sum(model.losses)"),
    (
        f"{AVERAGE}\nfor one in model.losses:\n    loss = loss + 0.1 * one",
        "",
        "",
        "TFM734 loss = loss + 0.1 * one",
    ),
    (
        f"loss = tf.reduce_mean(each(y, p)) / {N} + tf.add_n(model.losses)",
        "",
        "",
        f"TFM734 loss = tf.reduce_mean(each(y, p)) / {N} + tf.add_n(model.losses)",
    ),
    (
        "loss = tf.reduce_sum(tf.keras.losses.mean_squared_error(y, tf.squeeze(p))) / GLOBAL_BATCH_SIZE",
        "",
        "",
        "TFM718 loss = tf.reduce_sum(tf.keras.losses.mean_squared_error(y, tf.squeeze(p))) / GLOBAL_BATCH_SIZE",
    ),
    (
        "p = tf.squeeze(p, -1)\nloss = tf.reduce_sum(entropy(y, tf.squeeze(p, -1))) / GLOBAL_BATCH_SIZE",
        "",
        "",
        "TFM718 loss = tf.reduce_sum(entropy(y, tf.squeeze(p, -1))) / GLOBAL_BATCH_SIZE",
    ),
]


@pytest.mark.parametrize(("loss", "helpers", "apply"), RIGHT)
def test_losses_that_are_scaled_right(loss: str, helpers: str, apply: str) -> None:
    assert steps(loss, helpers, apply) == []


@pytest.mark.parametrize(("loss", "helpers", "apply", "told"), WRONG)
def test_losses_that_are_scaled_wrong(loss: str, helpers: str, apply: str, told: str) -> None:
    assert steps(loss, helpers, apply) == [told]


SCALED = """
import json
import tensorflow as tf

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
n = strategy.num_replicas_in_sync

def trained(loss):
    with strategy.scope():
        weight = tf.Variable(1.0)
        optimizer = tf.keras.optimizers.SGD(0.1)

    def step(x):
        with tf.GradientTape() as tape:
            value = loss(weight, x)
        optimizer.apply_gradients([(tape.gradient(value, weight), weight)])

    data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(tf.ones([4])).batch(4))
    for batch in data:
        strategy.run(step, args=(batch,))
    return float(strategy.experimental_local_results(weight)[0])

def average(weight, x):
    return tf.nn.compute_average_loss(weight * x, global_batch_size=4)

penalty = lambda weight: 0.1 * weight * weight
squared = tf.keras.losses.MeanSquaredError(reduction="none")
entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True, reduction="none")
vectors = [tf.zeros([4]), tf.ones([4])]
print(json.dumps({
    "right": trained(average),
    "twice": trained(lambda weight, x: average(weight, x) / n),
    "each replica": trained(lambda weight, x: 0 * average(weight, x) + penalty(weight)),
    "scaled": trained(lambda weight, x: 0 * average(weight, x) + tf.nn.scale_regularization_loss(penalty(weight))),
    "ranks": [len(loss(*vectors).shape) for loss in (squared, entropy, tf.keras.losses.binary_crossentropy)],
}))
"""


@pytest.mark.tensorflow
@pytest.mark.parametrize("which", ["original", "migrated"])
def test_what_is_said_of_scaled_losses_is_true(which: str) -> None:
    """Two replicas, a rate of 0.1: divided twice a step is half, a penalty that each adds counts twice."""
    from migrator.harness.environments import migrated_python, original_python

    python = migrated_python() if which == "migrated" else original_python()
    run = subprocess.run(
        [str(python), "-c", SCALED],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={**environment(), "TF_USE_LEGACY_KERAS": "1" if which == "migrated" else "0"},
    )
    figures = json.loads(run.stdout.splitlines()[-1])
    assert figures["right"] == pytest.approx(0.9) and figures["twice"] == pytest.approx(0.95)
    assert figures["scaled"] == pytest.approx(0.98) and figures["each replica"] == pytest.approx(0.96)
    assert figures["ranks"] == [0, 0, 0]


def test_the_same_outside_of_replicas_is_right() -> None:
    text = REPLICAS.replace("{step}", "loss = tf.reduce_mean(entropy(labels, predictions))")
    assert modern(text.replace("strategy.run(step, args=batch)", "step(*batch)"))[1] == []


CHECK = """
import json, sys
import tensorflow as tf

def exists(name):
    value = tf
    for part in name.split(".")[1:]:
        try:
            value = getattr(value, part)
        except (AttributeError, ImportError):
            return False
    return True

def rates(optimizer):
    weight, found = tf.Variable(1.0), []
    for _ in range(5):
        optimizer.apply_gradients([(tf.constant(0.5), weight)])
        found.append(float(weight))
    return found

names = json.loads(sys.stdin.read())
decayed = None
if exists("tf.keras.optimizers.legacy.SGD") and "2" in sys.argv:
    schedule = tf.keras.optimizers.schedules.InverseTimeDecay(0.1, 1, 0.5)
    decayed = [rates(tf.keras.optimizers.legacy.SGD(0.1, decay=0.5)), rates(tf.keras.optimizers.SGD(schedule))]
print(json.dumps([[name for name in names if exists(name)], decayed]))
"""


@pytest.mark.tensorflow
def test_what_is_said_of_tensorflow_2_21_is_true() -> None:
    """New names exist, old ones are gone or exist on Keras 2 only, and a decayed rate is what it was."""
    from migrator.harness.environments import migrated_python

    asked = sorted({*tf2_names.RENAMED.values(), *tf2_names.REMOVED, *tf2_names.KERAS_2})
    there: dict[str, set[str]] = {}
    decayed: list[list[float]] = []
    for keras in ("2", "3"):
        run = subprocess.run(
            [str(migrated_python()), "-c", CHECK, keras],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
            env={**environment(), "TF_USE_LEGACY_KERAS": "1" if keras == "2" else "0"},
        )
        found, rates = json.loads(run.stdout.splitlines()[-1])
        there[keras] = set(found)
        decayed = rates or decayed
    new = set(tf2_names.RENAMED.values())
    assert new <= there["2"]
    assert new - tf2_names.KERAS_2 - there["3"] <= {"tf.keras.layers.RandomHeight", "tf.keras.layers.RandomWidth"}
    assert not set(tf2_names.REMOVED) & (there["2"] | there["3"])
    assert there["2"] >= tf2_names.KERAS_2 and not tf2_names.KERAS_2 & there["3"]
    assert len(decayed) == 2 and decayed[0] == pytest.approx(decayed[1], rel=1e-6)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tf.keras.optimizers.Nadam(schedule_decay=0.004)", ["TFM713 2"]),
        ("tf.keras.optimizers.Nadam(0.01)", []),
        (
            "tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 9, 0.9), decay=0.1)",
            ["TFM713 2"],
        ),
    ],
)
def test_optimizers_that_stay(line: str, expected: list[str]) -> None:
    text = f"import tensorflow as tf\nx = {line}\n"
    assert modern(text) == (text, expected)


@pytest.mark.parametrize("name", ["Nadam", "RMSprop"])
def test_an_older_optimizer_that_is_computed_otherwise_is_told_of(name: str) -> None:
    new, findings = modern(f"import tensorflow as tf\nx = tf.keras.optimizers.{name}(lr=0.1)\n")
    assert new.endswith(f"{name}(learning_rate=0.1)\n") and findings == ["TFM713 2", "TFM713 2"]


@pytest.mark.parametrize("line", ["model.fit(x, workers=2)", "tf.keras.callbacks.ModelCheckpoint('m', period=5)"])
def test_arguments_of_keras_2(line: str) -> None:
    text = f"import tensorflow as tf\n{line}\n"
    assert modern(text)[0] == HEADER + text


def test_a_policy_without_a_loss_scale() -> None:
    text = "import tensorflow as tf\nx = tf.keras.mixed_precision.experimental.Policy('mixed_float16', loss_scale=9)\n"
    assert modern(text)[1] == ["TFM710 2", "TFM711 2"]
