"""`--strategy dtensor`: the mesh, the layouts of variables, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from migrator.cli.program import program as command
from migrator.findings import Severity
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, decode
from migrator.targets.dtensor import LayoutError, Layouts, check_layouts, parse
from tests.rules.programs import program

ADAM = "tf.train.AdamOptimizer(0.1)"
BY_HAND = """loss = tf.losses.mean_squared_error(labels, logits)
step = tf.to_float(tf.train.get_global_step())
rate = params["rate"] * {}"""
OUT = "tf.layers.dense(net, 1)"
CLIPPED = """gradients, variables = zip(*optimizer.compute_gradients(loss))
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=tf.train.get_global_step())
"""


def migrated(
    text: str, mesh: str = "", layouts: tuple[str, ...] = (), **options: str
) -> tuple[str, list[tuple[str, str]]]:
    """The new text of a program, and what blocks it."""
    source = decode(Path("train.py"), text.encode())
    assert isinstance(source, Source)
    [result] = migrate([source], Options("dtensor", "native", options.get("keras", "2"), mesh=mesh, layouts=layouts))
    return result.text, [(f.code, f.message) for f in result.findings if f.severity is Severity.MANUAL]


def test_a_program_gets_a_mesh_layouts_and_a_loop() -> None:
    new, blocked = migrated(program(optimizer=ADAM))
    assert not blocked
    assert 'return tf.experimental.dtensor.create_mesh([("batch", devices)], device_type=device_type)' in new
    assert "def model_fn(features, params, mesh):" in new
    assert "epsilon=1e-08, mesh=mesh)" in new
    assert (
        "mesh = make_mesh()\n"
        "layouts = tf.keras.dtensor.experimental.LayoutMap(mesh=mesh)\n"
        "with layouts.scope():\n"
        '    model = model_fn(make_inputs(input_fn()), {"rate": 0.1}, mesh=mesh)\n'
        "loop = TrainingLoop(model, mesh)\n"
        "loop.train(loop.batches(input_fn()), 3)\n"
    ) in new


def test_kernels_that_are_divided_over_the_batches_dimension_are_made_whole() -> None:
    new, blocked = migrated(program(), "", ("dense.*kernel=batch,unsharded",))
    assert not blocked
    assert 'layouts["dense.*kernel"] = tf.experimental.dtensor.Layout(["batch", "unsharded"], mesh)\n' in new
    assert "class Dense(tf.keras.layers.Dense):\n" in new and "    logits = Dense(1)(net)\n" in new
    assert "class Dense" not in migrated(program(), "", ("table.embeddings=batch,unsharded",))[0]


def test_variables_are_divided_as_the_command_line_says() -> None:
    layouts = ("dense.*kernel=unsharded,model", r"dense\.bias=model")
    new, blocked = migrated(program().replace(OUT, OUT.replace("1)", "2)")), "model=2", layouts)
    assert not blocked
    assert '        [("batch", devices // 2), ("model", 2)],\n        device_type=device_type,\n' in new
    assert (
        'layouts["dense.*kernel"] = tf.experimental.dtensor.Layout(["unsharded", "model"], mesh)\n'
        'layouts[r"dense\\.bias"] = tf.experimental.dtensor.Layout(["model"], mesh)\n'
    ) in new


def test_what_a_dimension_does_not_divide_evenly_is_refused_where_its_size_is_written_down() -> None:
    text = program().replace(OUT, "tf.layers.dense(tf.layers.dense(net, 7, name='hidden'), units, name='out')")
    text = text.replace("def model_fn", "units = 9\n\n\ndef model_fn")
    columns = migrated(text, "model=2", ("hidden.*kernel=unsharded,model",))[1]
    told = "the 7 columns of `hidden.kernel` are not divisible by the 2 parts of `model`"
    assert [(code, said.startswith(told)) for code, said in columns] == [("TFM790", True)]
    rows = migrated(text, "model=2", ("out.*kernel=model,unsharded",))[1]
    assert [said.partition(" are not")[0] for _, said in rows] == ["the 7 rows of `out.kernel`"]
    both = migrated(text, "model=3", ("hidden.*kernel=model,unsharded", "out.*kernel=unsharded,model"))[1]
    assert not both  # the columns of the features are not known here, and 3 divides the 9 of a constant
    assert len(migrated(text, "model=2", (".*kernel=unsharded,model",))[1]) == 2
    [one] = migrated(program(), "model=2", ("dense.*kernel=unsharded,model",))[1]
    assert one == (
        "TFM790",
        "`dense.kernel` has only one of its columns, which `model` cannot divide: use `unsharded` for that axis",
    )


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("TFM790", program(driver="print(list(estimator.predict(input_fn)))", spec=", predictions=logits")),
        ("TFM791", program(network="net = tf.nn.dropout(net, 0.5, noise_shape=[1, 1])")),
        ("TFM791", program(network="net = tf.layers.batch_normalization(net, 1)")),
        ("TFM791", program(network="net = tf.layers.batch_normalization(net, epsilon=1e-6)")),
        ("TFM791", program(network="net = tf.layers.average_pooling2d(net, 3, 2)")),
        ("TFM791", program(network="net = tf.layers.conv2d(net, 4, 3, dilation_rate=2)")),
        ("TFM791", program(network="net = tf.nn.softsign(net)")),
        ("TFM792", program(optimizer="tf.train.FtrlOptimizer(0.1, learning_rate_power=-0.4)")),
        ("TFM792", program(optimizer="tf.train.ProximalAdagradOptimizer(0.1)")),
        ("TFM792", program(loss=BY_HAND.format("tf.math.bessel_i0(step)"), optimizer="tf.train.AdamOptimizer(rate)")),
        ("TFM793", program(spec=', eval_metric_ops={"iou": tf.metrics.mean_iou(labels, tf.argmax(logits, 1), 3)}')),
    ],
)
def test_what_was_not_tried_on_a_mesh_is_refused(code: str, text: str) -> None:
    new, blocked = migrated(text)
    assert new == text
    assert code in [found for found, _ in blocked], blocked


STEP = "tf.train.get_global_step()"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (
            program(optimizer=f"tf.train.AdamOptimizer(tf.train.exponential_decay(0.1, {STEP}, 5, 0.9))"),
            "learning_rate=tf.keras.optimizers.schedules.ExponentialDecay(0.1, 5, 0.9), beta_1=0.9, beta_2=0.999, "
            "epsilon=1e-08, mesh=mesh)",
        ),
        (
            program(optimizer=f"tf.train.MomentumOptimizer(tf.train.natural_exp_decay(0.1, {STEP}, 5, 0.9), 0.9)"),
            "optimizer = MomentumOptimizer(learning_rate=tf.keras.optimizers.schedules.ExponentialDecay"
            "(0.1, 5, math.exp(-0.9)), momentum=0.9, mesh=mesh)",
        ),
        (
            program(optimizer=f"tf.train.GradientDescentOptimizer(tf.train.linear_cosine_decay(0.1, {STEP}, 5))"),
            "optimizer = tf.keras.optimizers.SGD(learning_rate=LinearCosineDecay(0.1, 5), mesh=mesh)",
        ),
        (
            program(loss=BY_HAND.format("tf.minimum(1.0, step / 10.0)"), optimizer="tf.train.AdamOptimizer(rate)"),
            "learning_rate=LearningRate(), beta_1=0.9, beta_2=0.999, epsilon=1e-08, mesh=mesh)",
        ),
        (
            program(optimizer="tf.train.RMSPropOptimizer(0.1)"),
            "optimizer = RMSPropOptimizer(learning_rate=0.1, rho=0.9, epsilon=1e-10, mesh=mesh)",
        ),
        (
            program().replace("train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())", CLIPPED),
            "optimizer = tf.keras.optimizers.SGD(learning_rate=0.1, global_clipnorm=1.0, mesh=mesh)",
        ),
    ],
)
def test_rates_and_clipping(text: str, made: str) -> None:
    new, blocked = migrated(text)
    assert not blocked and made in new


WEIGHTED = "loss = tf.losses.mean_squared_error(labels, logits, weights=features)"


def test_losses_of_whole_batches_and_metrics() -> None:
    """The model computes its loss and updates its metrics, whose variables are on the mesh."""
    metrics = ', eval_metric_ops={"area": tf.metrics.auc(labels, tf.sigmoid(logits), weights=features)}'
    new, blocked = migrated(program(loss=WEIGHTED, spec=metrics))
    assert not blocked
    assert 'self.loss_tracker = tf.keras.metrics.Mean(name="loss", mesh=mesh)' in new
    assert 'name="area",\n            mesh=mesh,' in new
    assert "loss = self.model.compute_loss(features, labels, self.model(features, training=True))" in new
    assert (
        "        self.model.compute_loss(features, labels, predictions)\n"
        "        self.model.compute_metrics(features, labels, predictions, None)\n"
    ) in new
    assert "in self.model.metrics}" in new and "mean_loss" not in new


def test_metrics_of_the_output_with_a_loss_of_whole_batches() -> None:
    new, blocked = migrated(program(loss=WEIGHTED, spec=', eval_metric_ops={"m": tf.metrics.mean(logits)}'))
    assert not blocked
    assert "        self.model.compiled_metrics.update_state(labels, predictions)\n" in new
    assert "        self.model.reset_metrics()\n        for batch in batches:\n" in new


def test_metrics_of_other_tensors_than_the_loss_reads_are_refused() -> None:
    text = program("net = tf.layers.dense(net, 4)", spec=', eval_metric_ops={"m": tf.metrics.mean(net)}')
    new, blocked = migrated(text)
    assert new == text and "TFM793" in [code for code, _ in blocked]


FUNCTIONS = """
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def block(net, units, training):
    LAYER
    return tf.nn.relu(tf.layers.dense(net, units))


def model_fn(features, labels, mode):
    logits = tf.layers.dense(block(features, 4, mode == tf.estimator.ModeKeys.TRAIN), 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn, steps=3)
"""
NORMALIZED = "net = tf.layers.batch_normalization(net, momentum=0.9, training=training)"


def test_functions_of_the_network_get_the_layers_of_a_mesh() -> None:
    new, blocked = migrated(FUNCTIONS.replace("LAYER", NORMALIZED))
    assert not blocked
    assert "def block(net, units):\n    net = BatchNormalization(momentum=0.9)(net)\n" in new
    assert new.count("class BatchNormalization(tf.keras.layers.BatchNormalization):") == 1
    assert "logits = tf.keras.layers.Dense(1)(block(features, 4))" in new
    assert "enable_tf_random_generator" not in new


def test_what_functions_of_the_network_have_no_layers_for_is_refused() -> None:
    text = FUNCTIONS.replace("LAYER", "net = tf.nn.softsign(net)")
    new, blocked = migrated(text)
    assert new == text and [code for code, _ in blocked] == ["TFM791"]


def test_a_function_of_the_name_of_an_operation_does_not_allow_that() -> None:
    text = FUNCTIONS.replace("LAYER", "net = tf.nn.softsign(net)").replace("block(", "softsign(")
    new, blocked = migrated(text)
    assert new == text and [code for code, _ in blocked] == ["TFM791"]


def test_predictions_are_put_together() -> None:
    driver = "estimator.train(input_fn, steps=3)\nprint(list(estimator.predict(input_fn)))"
    new, blocked = migrated(program(driver=driver, spec=", predictions=logits"))
    assert not blocked
    assert "print(list(predict(predictor, input_fn())))\n" in new
    assert "            predictions_of(features),\n        )\n        yield from predictions\n" in new


def test_the_layer_normalization_of_contrib_is_plain_operations() -> None:
    new, blocked = migrated(program(network="net = tf.contrib.layers.layer_norm(net)"))
    assert not blocked and "net = WholeLayerNormalization()(net)" in new


def test_dropout_draws_from_generators() -> None:
    drops = "net = tf.layers.dropout(net, 0.5, training=training)"
    source = decode(Path("train.py"), FUNCTIONS.replace("LAYER", drops).encode())
    assert isinstance(source, Source)
    [result] = migrate([source], Options("dtensor", "native"))
    assert (
        "tf.keras.backend.experimental.enable_tf_random_generator()  # for dropout on a mesh\nmesh = make_mesh()\n"
    ) in result.text
    assert [f.code for f in result.findings].count("TFM797") == 1


def mirrored_program(strategy: str = 'tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])', **parts: str) -> str:
    """A program whose RunConfig trains under a strategy."""
    config = "config=tf.estimator.RunConfig(train_distribute=strategy), "
    text = program(**parts).replace("Estimator(model_fn, ", f"Estimator(model_fn, {config}")
    return text.replace("estimator = ", f"strategy = {strategy}\nestimator = ", 1)


@pytest.mark.parametrize(
    ("strategy", "replicas"),
    [
        ('tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])', "2"),
        ("tf.distribute.MirroredStrategy()", "mesh.size"),
        ("tf.contrib.distribute.MirroredStrategy(num_gpus=4)", "4"),
        ("tf.distribute.MirroredStrategy(list(DEVICES))", "len(list(DEVICES))"),
    ],
)
def test_a_step_takes_the_batches_of_all_replicas(strategy: str, replicas: str) -> None:
    new, blocked = migrated(mirrored_program(strategy))
    assert not blocked and "MirroredStrategy" not in new
    assert f"loop.train(loop.rounds(input_fn(), {replicas}), 3)\n" in new


@pytest.mark.parametrize(
    ("parts", "part"),
    [
        ({"loss": "loss = tf.reduce_sum(tf.square(labels - logits))"}, "divided its loss"),
        ({"network": "net = net / tf.reduce_max(tf.abs(net))"}, "`tf.reduce_max(tf.abs(net))` is computed"),
        (
            {"network": NORMALIZED.replace("training=training", "training=mode == tf.estimator.ModeKeys.TRAIN")},
            "batches are normalized",
        ),
        ({"strategy": "tf.distribute.experimental.ParameterServerStrategy()"}, "only a MirroredStrategy"),
        ({"driver": "estimator.train(input_fn, steps=3)\nprint(strategy)"}, "`strategy` is used outside the RunConfig"),
    ],
)
def test_what_each_replica_computed_for_itself_is_refused(parts: dict[str, str], part: str) -> None:
    text = mirrored_program(**parts)
    new, blocked = migrated(text)
    assert new == text and any(code == "TFM790" and part in message for code, message in blocked), blocked
    assert not any("tf.distribute" in message and code == "TFM203" for code, message in blocked)


def test_clipped_gradients_of_replicas_are_refused() -> None:
    train = "train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())"
    text = mirrored_program().replace(train, CLIPPED)
    new, blocked = migrated(text)
    assert new == text and any("gradients are computed by each replica" in message for _, message in blocked)


def test_clipped_gradients_of_embeddings_are_refused() -> None:
    clipped = f"optimizer = {ADAM}\n    {CLIPPED}"
    text = embedded().replace(f"train_op = {ADAM}.minimize(loss, tf.train.get_global_step())\n", clipped)
    new, blocked = migrated(text)
    assert new == text and ("TFM792", True) in [
        (code, "before summing duplicate rows" in message) for code, message in blocked
    ]


def test_keras_3_has_no_mesh() -> None:
    text = program()
    new, blocked = migrated(text, keras="3")
    assert new == text and ("TFM790", "Keras 3 has no DTensor: leave `--keras 3` out") in blocked


def test_layouts_of_a_command_line() -> None:
    assert parse("model=2", ("a=b.*kernel=unsharded,model",)) == Layouts(
        (("model", 2),), (("a=b.*kernel", ("unsharded", "model")),)
    )


@pytest.mark.parametrize(
    ("mesh", "layout", "part"),
    [
        ("batch=2", "", "the remaining devices"),
        ("model=0", "", "not a mesh dimension"),
        ("model=2,model=4", "", "not a mesh dimension"),
        ("", "kernel", "is not a layout"),
        ("", "kernel=model", "the mesh has no dimension `model`"),
        ("model=2", "kernel=model,model", "shard only one axis"),
        ("model=2", "ker(nel=model", "not a regular expression"),
    ],
)
def test_layouts_that_make_no_sense(mesh: str, layout: str, part: str) -> None:
    with pytest.raises(LayoutError, match=part):
        parse(mesh, (layout,) if layout else ())


def test_the_command_line_says_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(program(), encoding="utf-8")
    found = CliRunner().invoke(command, [str(file), "--diff", "--mesh", "model=2"])
    assert found.exit_code == 2 and "require --strategy dtensor" in found.output
    found = CliRunner().invoke(command, [str(file), "--diff", "--strategy", "dtensor", "--layout", "kernel=model"])
    assert found.exit_code == 2 and "--mesh model=2" in found.output


def test_a_partitioner_is_left_out_and_told_of() -> None:
    network = "with tf.variable_scope('net', partitioner=tf.fixed_size_partitioner(2)):\n    net = tf.nn.relu(net)"
    source = decode(Path("train.py"), program(network=network).encode())
    assert isinstance(source, Source)
    [result] = migrate([source], Options("dtensor", "native", mesh="model=2", layouts=(".*kernel=model,unsharded",)))
    assert "TFM795" in [f.code for f in result.findings if f.severity is Severity.REVIEW]
    assert "artitioner" not in result.text
    assert 'layouts[".*kernel"] = tf.experimental.dtensor.Layout(["model", "unsharded"], mesh)' in result.text


EMBEDDED = """
import tensorflow as tf

ROWS = 12


def input_fn():
    return tf.data.Dataset.from_tensors(({"ids": [[1, 2]] * 8}, [0] * 8)).repeat(3)


def model_fn(features, labels, mode):
    with tf.variable_scope("net", partitioner=PARTITIONER):
        net = tf.keras.layers.Embedding(ROWS, 4)(features["ids"])
    net = tf.layers.dense(tf.layers.flatten(net), 8)
    logits = tf.layers.dense(net, 3)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = OPTIMIZER.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn)
"""
FIXED = "tf.fixed_size_partitioner(2)"
UNKNOWN = "tf.min_max_variable_partitioner(max_partitions=3, min_slice_size=8)"


def embedded(partitioner: str = FIXED, optimizer: str = ADAM) -> str:
    return EMBEDDED.replace("PARTITIONER", partitioner).replace("OPTIMIZER", optimizer)


@pytest.mark.parametrize(
    ("text", "mesh", "dimensions", "divided"),
    [
        (embedded(), "", '("model", 2)', [r'r"embedding\.embeddings"']),
        (embedded(), "rows=4", '("rows", 4)', [r'r"embedding\.embeddings"']),
        (embedded(), "rows=5", '("rows", 5)', []),  # which does not divide 12 rows
        (embedded(UNKNOWN), "", '("batch", devices)', []),
        (embedded(UNKNOWN), "model=4", '("model", 4)', [r'r"embedding\.embeddings"']),
        (EMBEDDED.replace(", partitioner=PARTITIONER", "").replace("OPTIMIZER", ADAM), "", '("batch", devices)', []),
    ],
)
def test_what_a_partitioner_split_is_divided(text: str, mesh: str, dimensions: str, divided: list[str]) -> None:
    new, blocked = migrated(text, mesh)
    assert not blocked and dimensions in new and "artitioner" not in new
    lines = [line.strip() for line in new.splitlines() if line.strip().startswith("layouts[")]
    axis = dimensions.split('"')[1]
    made = f'tf.experimental.dtensor.Layout(["{axis}", "unsharded"], mesh)'
    assert lines == [f"layouts[{name}] = {made}" for name in divided]
    assert ("check_layouts(model, layouts)" in new) == bool(divided)
    assert "net = Embedding(ROWS, 4)(features" in new


def test_a_partitioner_of_all_layers_divides_their_kernels() -> None:
    text = EMBEDDED.replace("    net = tf.layers.dense(tf", "        net = tf.layers.dense(tf")
    text = text.replace("    logits =", "        logits =").replace("PARTITIONER", FIXED).replace("OPTIMIZER", ADAM)
    # How many rows `dense.kernel` has is not known: the ids of an example are counted when the program runs.
    lines, told = layouts_of(text, "")
    assert lines == [r"embedding\.embeddings", r"dense_1\.kernel"]
    assert "`dense.kernel` of its scope stays unsharded: its rows may not divide by 2 (`--layout`)" in told


SCOPED = """
import tensorflow as tf

P = tf.fixed_size_partitioner(2)


def input_fn():
    return tf.data.Dataset.from_tensors(({"x": [[1.0, 2.0, 3.0]] * 8}, [[0.0]] * 8)).repeat(3)


def model_fn(features, labels, mode):
    NETWORK
    loss = tf.losses.mean_squared_error(labels, logits)
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn)
estimator.train(input_fn)
"""
UNEVEN = "stays unsharded: its rows may not divide by 2"
UNTOLD = "its variables are known only at run time; set `--layout`"
IN_SCOPE = """with tf.variable_scope("in", partitioner=P):
        """
FIRST = 'net = tf.layers.dense(features["x"], 4, activation=tf.nn.relu)\n    '
LOGITS = "logits = tf.layers.dense(net, 1)"


def layouts_of(text: str, mesh: str = "model=2") -> tuple[list[str], str]:
    """The variables that a migrated program divides, and what TFM795 says."""
    source = decode(Path("train.py"), text.encode())
    assert isinstance(source, Source)
    [result] = migrate([source], Options("dtensor", "native", mesh=mesh))
    assert not [f for f in result.findings if f.severity is Severity.MANUAL], result.findings
    told = [f.message for f in result.findings if f.code == "TFM795"]
    return re.findall(r'layouts\[r"(.*?)"\] =', result.text), "; ".join(told)


@pytest.mark.parametrize(
    ("network", "divided", "part"),
    [
        # Of three rows, in the scope: TensorFlow 1 made parts of two and one. The other layer is outside.
        (IN_SCOPE + 'net = tf.layers.dense(features["x"], 4)\n    ' + LOGITS, [], "no variable is known"),
        (FIRST + IN_SCOPE + "net = tf.layers.dense(net, 6)\n    " + LOGITS, [r"dense_1\.kernel"], "`dense_1.kernel`"),
        (FIRST + "net = tf.nn.relu(net)\n    " + IN_SCOPE + LOGITS, [r"dense_1\.kernel"], "`dense_1.kernel`"),
        (
            IN_SCOPE + 'net = tf.layers.dense(features["x"], 4)\n        ' + LOGITS,
            [r"dense_1\.kernel"],
            "`dense.kernel` of its scope " + UNEVEN,
        ),
        (FIRST.replace("4", "5") + IN_SCOPE + LOGITS, [], "no variable is known"),
        # What comes after the partitioner of the model's own scope has it.
        (
            FIRST + "tf.get_variable_scope().set_partitioner(P)\n    net = tf.layers.dense(net, 6)\n    " + LOGITS,
            [r"dense_1\.kernel", r"dense_2\.kernel"],
            "`dense_1.kernel`, `dense_2.kernel`",
        ),
        # The scope in which a layer is called counts, and not that in which it is made.
        (FIRST + "last = tf.layers.Dense(1)\n    " + IN_SCOPE + "logits = last(net)", [], UNTOLD),
        (
            FIRST
            + IN_SCOPE
            + "net = tf.layers.dense(net, 6)\n    "
            + IN_SCOPE.replace("=P", "=tf.fixed_size_partitioner(3)")
            + LOGITS,
            [],
            "a second, different one",
        ),
        (
            FIRST + IN_SCOPE.replace("=P", "=tf.fixed_size_partitioner(2, axis=1)") + LOGITS,
            [],
            "it splits another axis than the first",
        ),
    ],
)
def test_only_what_a_partitioner_has_and_divides_evenly_is_divided(network: str, divided: list[str], part: str) -> None:
    found, told = layouts_of(SCOPED.replace("NETWORK", network))
    assert found == divided
    assert part in told


@pytest.mark.parametrize(
    "optimizer",
    ["tf.train.MomentumOptimizer(0.1, 0.9)", "tf.train.RMSPropOptimizer(0.1)", "tf.train.FtrlOptimizer(0.1)"],
)
def test_optimizers_that_leave_unused_rows_alone_are_refused(optimizer: str) -> None:
    text = embedded(optimizer=optimizer)
    new, blocked = migrated(text)
    assert new == text and "TFM792" in [code for code, _ in blocked]


def test_an_embedding_that_masks_is_refused() -> None:
    text = embedded().replace("Embedding(ROWS, 4)", "Embedding(ROWS, 4, mask_zero=True)")
    new, blocked = migrated(text)
    assert new == text and "TFM791" in [code for code, _ in blocked]


def test_the_new_program_refuses_layouts_of_nothing() -> None:
    names: dict[str, Any] = {"re": re}
    exec(check_layouts("check", "    "), names)
    weights = [SimpleNamespace(name="words/table/embeddings:0")]
    model = SimpleNamespace(layers=[SimpleNamespace(name="table", weights=weights)])
    names["check"](model, {r"table\.embeddings": None, ".*embeddings": None})
    with pytest.raises(ValueError, match=r"no variable has the layout of 'embeddings': there are table\.embeddings"):
        names["check"](model, {".*embeddings": None, "embeddings": None})
