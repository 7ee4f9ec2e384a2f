"""`--strategy dtensor` of TensorFlow 2 programs that train on a MirroredStrategy (TFM780, TFM799)."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.findings import Severity
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, decode
from migrator.targets import custom
from migrator.targets.plan import LoopShape

HEAD = """
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
BATCH = 4 * strategy.num_replicas_in_sync


def data(count, seed):
    random = np.random.RandomState(seed)
    x = random.normal(size=(count, 6)).astype(np.float32)
    y = (x.sum(axis=1) > 0).astype(np.int64)
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)


def build_model():
    regularizer = tf.keras.regularizers.l2(0.01)
    return tf.keras.Sequential(
        [
            tf.keras.layers.Dense(8, activation="tanh", input_shape=(6,), kernel_regularizer=regularizer),
            tf.keras.layers.Dense(3),
        ]
    )

"""
FIT = (
    HEAD
    + """
# The model of all devices.
with strategy.scope():
    model = build_model()
    model.compile(
        optimizer=tf.keras.optimizers.Adam(tf.keras.optimizers.schedules.ExponentialDecay(0.05, 3, 0.5)),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )

# Train it.
model.fit(data(40, 0), epochs=2, validation_data=data(16, 1), verbose=0)
loss, accuracy = model.evaluate(data(16, 1), verbose=0)
print("loss %.7f accuracy %.5f" % (loss, accuracy))
"""
)
LOOP = (
    HEAD
    + """
train_data = strategy.experimental_distribute_dataset(data(41, 0))
test_data = strategy.experimental_distribute_dataset(data(16, 1))

with strategy.scope():
    model = build_model()
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9, global_clipnorm=0.5)
    losses = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    train_loss = tf.keras.metrics.Mean(name="train_loss")
    accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")


def compute_loss(labels, predictions, of_model):
    loss = tf.nn.compute_average_loss(losses(labels, predictions), global_batch_size=BATCH)
    return loss + tf.nn.scale_regularization_loss(tf.add_n(of_model))


def train_step(inputs):
    features, labels = inputs
    with tf.GradientTape() as tape:
        loss = compute_loss(labels, model(features, training=True), model.losses)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    train_loss.update_state(loss * strategy.num_replicas_in_sync)
    return loss


def test_step(inputs):
    features, labels = inputs
    accuracy.update_state(labels, model(features, training=False))


@tf.function
def distributed_train_step(inputs):
    \"\"\"One step of all replicas.\"\"\"
    per_replica = strategy.run(train_step, args=(inputs,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None)


@tf.function
def distributed_test_step(inputs):
    strategy.run(test_step, args=(inputs,))


for epoch in range(2):
    total = 0.0
    for batch in train_data:
        total += distributed_train_step(batch)
    accuracy.reset_state()
    for batch in test_data:
        distributed_test_step(batch)
    print("{:.6f} {:.6f} {:.4f}".format(total, train_loss.result(), accuracy.result()))
"""
)


def migrated(text: str, **options: object) -> tuple[str, list[tuple[str, str]]]:
    """The new text of a program, and what is to be looked at or blocks it."""
    source = decode(Path("train.py"), text.encode())
    assert isinstance(source, Source)
    [result] = migrate([source], Options("dtensor", "native", **options))  # type: ignore[arg-type]
    kinds = (Severity.MANUAL, Severity.REVIEW)
    return result.text, [(f.code, f.message) for f in result.findings if f.severity in kinds]


def test_fit_becomes_a_loop() -> None:
    new, found = migrated(FIT)
    assert [code for code, _ in found] == ["TFM780"]
    assert "strategy" not in new.replace("MirroredStrategy", "")
    assert "BATCH = 4 * mesh.size\n" in new
    assert "# The model of all devices.\nwith layouts.scope():\n    model = build_model()\n" in new
    assert "schedules.ExponentialDecay(0.05, 3, 0.5), mesh=mesh),\n" in new
    assert new.endswith(
        "# Train it.\n"
        "loop = TrainingLoop(model, mesh)\n"
        "for _ in range(2):\n"
        "    loop.train(loop.batches(data(40, 0)))\n"
        "    print(loop.evaluate(loop.batches(data(16, 1))))\n"
        "loss, accuracy = list(loop.evaluate(loop.batches(data(16, 1))).values())\n"
        'print("loss %.7f accuracy %.5f" % (loss, accuracy))\n'
    )
    assert migrated(new) == (new, [])


def test_a_loop_applies_its_gradients_after_its_function() -> None:
    new, found = migrated(LOOP)
    assert [code for code, _ in found] == ["TFM780"]
    assert "strategy" not in new
    assert "train_data = MeshBatches(data(41, 0), mesh)\n" in new
    assert (
        "@tf.function\n"
        "def train_step(inputs):\n"
        "    features, labels = inputs\n"
        "    with tf.GradientTape() as tape:\n"
        "        loss = compute_loss(labels, model(features, training=True), model.losses)\n"
        "    variables = model.trainable_variables\n"
        "    gradients = tape.gradient(loss, variables)\n"
        "    train_loss.update_state(loss)\n"
        "    return loss, gradients\n"
    ) in new
    assert (
        "\ndef distributed_train_step(inputs):\n"
        '    """One step of all replicas."""\n'
        "    loss, gradients = train_step(inputs)\n"
        "    # Not in a tf.function, which on a mesh may read the optimizer's slots before it assigns them (TensorFlow"
        " 2.21).\n"
        "    optimizer.apply_gradients(zip(gradients, model.trainable_variables))\n"
        "    return tf.constant(loss.numpy())\n"
    ) in new
    assert "@tf.function\ndef distributed_test_step(inputs):\n    test_step(inputs)\n" in new
    assert "train_loss.result().numpy(), accuracy.result().numpy()))\n" in new
    assert migrated(new) == (new, [])


def test_a_model_of_no_known_input_gets_it_where_it_is_made() -> None:
    text = LOOP.replace(", input_shape=(6,)", "").replace("data(41, 0))", "first)")
    text = text.replace("train_data = ", "first = data(41, 0)\ntrain_data = ")
    new, found = migrated(text)
    assert [code for code, _ in found] == ["TFM780"]
    assert "    model = build_model()\n    model.build(first.element_spec[0].shape)\n" in new


def test_a_step_that_returns_nothing() -> None:
    text = LOOP.replace("    return loss\n\n\ndef test_step", "\n\ndef test_step").replace("    total = 0.0\n", "")
    text = text.replace("per_replica = ", "").replace("total += ", "").replace("total, ", "")
    text = text.replace("    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica, axis=None)\n", "")
    new, _ = migrated(text)
    assert "    return gradients\n" in new and "    gradients = train_step(inputs)\n" in new


def test_variables_are_divided_as_the_command_line_says() -> None:
    new, _ = migrated(FIT, mesh="model=2", layouts=("dense.kernel=unsharded,model",))
    assert 'layouts["dense.kernel"] = tf.experimental.dtensor.Layout(["unsharded", "model"], mesh)\n' in new
    assert "check_layouts(model, layouts)\nloop = TrainingLoop(model, mesh)\n" in new
    assert "import itertools\nimport os\nimport re\n" in new


def test_optimizers_that_are_named_and_steps_of_an_epoch() -> None:
    text = FIT.replace(FIT[FIT.index("tf.keras.optimizers.Adam") : FIT.index(",\n        loss=")], '"adam"')
    text = text.replace("epochs=2, validation_data=data(16, 1), verbose=0", "epochs=2, steps_per_epoch=3")
    new, _ = migrated(text)
    assert "optimizer=tf.keras.optimizers.Adam(mesh=mesh),\n" in new
    assert "batches = loop.batches(data(40, 0))\nfor _ in range(2):\n    loop.train(batches, 3)\n" in new


BUILT = (
    HEAD.replace(
        "\nstrategy = tf.distribute.MirroredStrategy()\nBATCH = 4 * strategy.num_replicas_in_sync\n", "\nBATCH = 8\n"
    )
    + """
def build_and_compile(strategy, rate=0.1):
    with strategy.scope():
        net = build_model()
        net.compile(optimizer=tf.keras.optimizers.SGD(rate), loss="mse", metrics=[tf.keras.metrics.MeanAbsoluteError()])
    return net


def train(net):
    net.fit(data(40, 0))


def main():
    strategy = tf.distribute.MirroredStrategy()
    model = build_and_compile(strategy)
    train(model)


if __name__ == "__main__":
    main()
"""
)


def test_functions_are_given_the_mesh_that_they_read() -> None:
    new, found = migrated(BUILT.replace("train(net)", "train(model)").replace("    net.fit", "    model.fit"))
    assert [code for code, _ in found] == ["TFM780"]
    assert "def build_and_compile(layouts, rate=0.1, *, mesh):\n    with layouts.scope():\n" in new
    assert "tf.keras.optimizers.SGD(rate, mesh=mesh)" in new and "MeanAbsoluteError(mesh=mesh)" in new
    assert "def train(model, mesh):\n    loop = TrainingLoop(model, mesh)\n    loop.train(" in new
    assert (
        "    layouts = tf.keras.dtensor.experimental.LayoutMap(mesh=mesh)\n"
        "    model = build_and_compile(layouts, mesh=mesh)\n"
        "    train(model, mesh=mesh)\n"
    ) in new
    assert migrated(new) == (new, [])


def test_functions_whose_calls_are_not_seen_are_refused() -> None:
    for change in (
        ("model = build_and_compile(strategy)", "model = (lambda make: make(strategy))(build_and_compile)"),
    ):
        text = BUILT.replace(*change)
        new, found = migrated(text)
        assert "TFM799" in [code for code, _ in found] and "mesh" not in new
    new, found = migrated(BUILT)  # a model that has another name where it is trained
    assert [message for code, message in found if code == "TFM799"] == [
        "`net.fit` is not known to be the model compiled here: compile it where it is trained"
    ] or "net" in new


def test_layers_that_have_no_form_on_a_mesh_become_classes() -> None:
    text = FIT.replace(
        'tf.keras.layers.Dense(8, activation="tanh", input_shape=(6,), kernel_regularizer=regularizer)', "*table"
    )
    text = text.replace(
        "    return tf.keras.Sequential(\n        [\n            *table,\n",
        "    return tf.keras.Sequential(\n        [\n            tf.keras.layers.Embedding(20, 8, input_length=6),\n"
        "            tf.keras.layers.Flatten(),\n            tf.keras.layers.BatchNormalization(synchronized=True),\n",
    )
    new, found = migrated(text)
    assert [code for code, _ in found] == ["TFM780"]
    assert "            Embedding(20, 8, input_length=6),\n" in new
    assert "            BatchNormalization(synchronized=True),\n" in new
    assert "class Embedding(tf.keras.layers.Embedding):\n" in new
    assert "class BatchNormalization(tf.keras.layers.BatchNormalization):\n" in new
    _, found = migrated(text.replace("Adam(", "Adam(clipnorm=1.0, learning_rate="))
    assert "TFM792" in [code for code, _ in found]
    _, found = migrated(text.replace("synchronized=True", "momentum=0.9"))
    assert "the same on both" in next(message for code, message in found if code == "TFM791")


OWN = LOOP.replace(
    LOOP[LOOP.index("def build_model()") : LOOP.index("train_data = ")],
    """class Net(tf.keras.Model):
    def __init__(self, units):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(units, kernel_regularizer=tf.keras.regularizers.l2(0.01))
        self.norm = tf.keras.layers.BatchNormalization(synchronized=True)
        self.last = tf.keras.layers.Dense(3)

    def call(self, inputs, training=False):
        return self.last(tf.nn.tanh(self.norm(self.hidden(inputs), training=training)))


""",
).replace("model = build_model()", "model = Net(8)")


def test_a_model_of_its_own_class_gets_its_variables_from_its_data() -> None:
    new, found = migrated(OWN, mesh="model=2", layouts=("hidden.kernel=unsharded,model",))
    assert [code for code, _ in found] == ["TFM780"]
    assert "make_variables(model, train_data.dataset, mesh)\ncheck_layouts(model, layouts)\n" in new
    assert (
        "model.build(" not in new
        and "variables = model._flatten(" in new
        and "        self.norm = BatchNormalization(synchronized=True)\n" in new
    )
    assert migrated(new) == (new, [])


def test_a_model_of_its_own_class_that_is_compiled() -> None:
    model = OWN[OWN.index("class Net") : OWN.index("train_data = ")]
    text = FIT.replace("def build_model():", model + "def build_model():").replace(
        "    model = build_model()", "    model = Net(4)"
    )
    new, found = migrated(text)
    assert [code for code, _ in found] == ["TFM780"]
    assert "make_variables(model, data(40, 0), mesh)\nloop = TrainingLoop(model, mesh)\n" in new


def test_a_model_of_no_known_input_is_built_before_it_is_trained() -> None:
    new, found = migrated(FIT.replace(", input_shape=(6,)", ""))
    assert [code for code, _ in found] == ["TFM780"]
    assert "with layouts.scope():\n    model.build(data(40, 0).element_spec[0].shape)\nloop = " in new
    named = (
        "    first = tf.keras.layers.Dense(8, input_shape=(6,))\n"
        "    return tf.keras.Sequential([first, tf.keras.layers.Dense(3)])\n\n"
    )
    assert (
        "model.build(" not in migrated(FIT[: FIT.index("    regularizer")] + named + FIT[FIT.index("# The model") :])[0]
    )


def test_kernels_that_are_divided_over_the_batches_dimension_are_made_whole() -> None:
    new, found = migrated(FIT, layouts=("dense.*kernel=batch,unsharded",))
    assert [code for code, _ in found] == ["TFM780"]
    assert "class Dense(tf.keras.layers.Dense):\n" in new and "            Dense(3),\n" in new
    _, found = migrated(FIT.replace('"tanh"', '"softsign"'), layouts=("dense.*kernel=batch,unsharded",))
    assert "TFM791" in [code for code, _ in found]


def test_layouts_of_a_loop_are_checked() -> None:
    new, _ = migrated(LOOP, mesh="model=2", layouts=("dense.kernel=unsharded,model",))
    assert (
        '    accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy", mesh=mesh)\ncheck_layouts(' in new
    )


ALL = "tf.nn.scale_regularization_loss(tf.add_n(of_model))"


@pytest.mark.parametrize(
    ("term", "alike"),
    [
        ("tf.add_n(of_model)", False),
        ("sum(0.1 * tf.nn.l2_loss(one) for one in of_model)", False),
        ("tf.add_n(of_model) / strategy.num_replicas_in_sync", True),
        ("tf.add_n(of_model) * (1.0 / strategy.num_replicas_in_sync)", True),
        ("tf.add_n(of_model) + 0.0 / strategy.num_replicas_in_sync", False),
    ],
)
def test_regularizers_that_every_replica_counts(term: str, alike: bool) -> None:
    new, found = migrated(LOOP.replace(ALL, term))
    assert [code for code, _ in found] == (["TFM780"] if alike else ["TFM734", "TFM799"])
    assert ("mesh" in new) is alike
    assert alike or all("scale_regularization_loss" in message for _, message in found)


def test_regularizers_in_the_mean_of_the_examples() -> None:
    text = LOOP.replace(
        "losses(labels, predictions), global", "losses(labels, predictions) + tf.add_n(of_model), global"
    )
    assert [code for code, _ in migrated(text.replace(" + " + ALL, ""))[1]] == ["TFM780"]


def test_a_loss_that_is_divided_several_calls_away() -> None:
    text = LOOP.replace("loss = compute_loss(labels,", "loss = whole(labels,")
    text = text.replace("def train_step", "def whole(*given):\n    return compute_loss(*given)\n\n\ndef train_step")
    assert [code for code, _ in migrated(text)[1]] == ["TFM780"]


@pytest.mark.parametrize("loop", ["", "model_dir"])
def test_the_loops_that_were_emitted_become_those_of_a_mesh(loop: str) -> None:
    source = (Path(__file__).parents[2] / "fixtures" / "custom_loop" / "migrated.py").read_text(encoding="utf-8")
    if loop:  # as it is written where there is one
        shape = LoopShape(of_class=True, saves=True, measures=True, divides=True, counts=True)
        text = custom.training_loop("TrainingLoop", "    ", shape)
        source = source.replace(source[source.index("class TrainingLoop") : source.index("def main")], text + "\n\n")
        source = source.replace("TrainingLoop(model)", 'TrainingLoop(model, "/tmp/m", steps_per_call=9)')
    new, found = migrated(source)
    assert [code for code, _ in found] == ["TFM780"]
    assert "strategy" not in new and "def model_fn(features, params, mesh):\n" in new
    assert (
        '    loop = TrainingLoop(model, mesh, "/tmp/m")\n' if loop else "    loop = TrainingLoop(model, mesh)\n"
    ) in new
    assert "    def placed(self, tensor):\n" in new and "            loss = self.train_step(batch)\n" in new
    assert migrated(new) == (new, [])
    changed, found = migrated(source.replace("variables = self.model", "variables = self.model  # mine"))
    assert "TFM799" in [code for code, _ in found] and "mesh" not in changed


@pytest.mark.parametrize(
    ("code", "text", "old", "new"),
    [
        ("TFM799", FIT, "MirroredStrategy()", 'MirroredStrategy(["/gpu:0"])'),
        ("TFM799", FIT, "MirroredStrategy()", "MultiWorkerMirroredStrategy()"),
        ("TFM799", FIT, "model.fit(", "history = model.fit(data(8, 0))\nprint(history.history)\nmodel.fit("),
        ("TFM799", FIT, "verbose=0)\nloss", "callbacks=[])\nloss"),
        ("TFM799", FIT, "data(40, 0), epochs", "np.zeros([8, 6]), np.zeros([8]), epochs"),
        ("TFM799", FIT, "# Train it.", "model.predict(data(8, 0))"),
        ("TFM799", FIT, "# Train it.", "print(strategy)"),
        ("TFM799", FIT, "# Train it.", "model.load_weights('w')"),
        ("TFM799", FIT, "# Train it.", "tf.train.Checkpoint(model=model).restore('w')"),
        ("TFM799", FIT, "        metrics=", "        loss_weights=[1.0],\n        metrics="),
        ("TFM799", FIT, "def build_model", "class Own(tf.keras.losses.Loss):\n    pass\n\n\ndef build_model"),
        ("TFM799", OWN, "    def call", "    def train_step(self, data):\n        pass\n\n    def call"),
        ("TFM799", OWN, "model(features, training=True)", "model(2.0 * features, training=True)"),
        ("TFM799", OWN, "    model = Net(8)\n", "    model = Net(8)\n    model.build((None, 6))\n"),
        ("TFM791", OWN, "tf.nn.tanh(", "tf.tile("),
        ("TFM791", FIT, "tf.keras.layers.Dense(3)", "tf.keras.layers.BatchNormalization()"),
        ("TFM791", FIT, '"tanh"', '"softsign"'),
        ("TFM792", FIT, "optimizers.Adam(", "optimizers.Nadam("),
        ("TFM793", FIT, '["accuracy"]', "[tf.keras.metrics.MeanIoU(3)]"),
        ("TFM799", LOOP, "loss * strategy.num_replicas_in_sync", "loss"),
        (
            "TFM799",
            LOOP,
            "tf.nn.compute_average_loss(losses(labels, predictions), global_batch_size=BATCH)",
            "losses(1)",
        ),
        ("TFM799", LOOP, "ReduceOp.SUM", "ReduceOp.MEAN"),
        ("TFM799", LOOP, "zip(tape.gradient(loss, variables), variables)", "clipped(tape.gradient(loss, variables))"),
        ("TFM799", LOOP, "@tf.function\ndef distributed_train_step", "def distributed_train_step"),
        ("TFM799", LOOP, "    return loss\n", "    return loss, labels\n"),
        ("TFM799", LOOP, "experimental_distribute_dataset(data(16, 1))", "distribute_datasets_from_function(data)"),
        ("TFM799", LOOP, "    train_loss.update_state", "    model(features)\n    train_loss.update_state"),
        (
            "TFM791",
            LOOP,
            "features, labels = inputs\n    with",
            "features, labels = inputs\n    tf.tile(features, [2, 1])\n    with",
        ),
    ],
)
def test_what_is_irregular_is_refused_whole(code: str, text: str, old: str, new: str) -> None:
    assert old in text
    changed = text.replace(old, new)
    after, found = migrated(changed)
    assert "mesh" not in after and changed[changed.index("strategy =") :] in after  # other rules choose Keras 2
    [message] = [message for one, message in found if one == code]
    assert ": " in message  # what to do
    assert "TFM780" not in [one for one, _ in found]
