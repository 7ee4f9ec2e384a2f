"""`--strategy dtensor` of TensorFlow 2 programs that train on a MirroredStrategy (TFM780, TFM799)."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.findings import Severity
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, decode

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


@pytest.mark.parametrize(
    ("code", "text", "old", "new"),
    [
        ("TFM799", FIT, "MirroredStrategy()", 'MirroredStrategy(["/gpu:0"])'),
        ("TFM799", FIT, "MirroredStrategy()", "MultiWorkerMirroredStrategy()"),
        ("TFM799", FIT, "model.fit(", "history = model.fit(data(8, 0))\nprint(history.history)\nmodel.fit("),
        ("TFM799", FIT, ", input_shape=(6,)", ""),
        ("TFM799", FIT, "verbose=0)\nloss", "callbacks=[])\nloss"),
        ("TFM799", FIT, "data(40, 0), epochs", "np.zeros([8, 6]), np.zeros([8]), epochs"),
        ("TFM799", FIT, "# Train it.", "model.predict(data(8, 0))"),
        ("TFM799", FIT, "# Train it.", "print(strategy)"),
        ("TFM799", FIT, "# Train it.", "model.load_weights('w')"),
        ("TFM799", FIT, "# Train it.", "tf.train.Checkpoint(model=model).restore('w')"),
        ("TFM799", FIT, "        metrics=", "        loss_weights=[1.0],\n        metrics="),
        ("TFM799", FIT, "def build_model", "class Own(tf.keras.layers.Layer):\n    pass\n\n\ndef build_model"),
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
