"""The targets: one shape for all, and the strategy that a program gets."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

import migrator.targets
from migrator.findings import Finding, Severity
from migrator.targets import LOOPS, STRATEGIES, registry
from tests.rules.programs import program, run

FED = "model.fit(per_replica(lambda: input_fn()), steps_per_epoch="
BOTH = (
    "tf.estimator.train_and_evaluate(estimator, tf.estimator.TrainSpec(input_fn, max_steps=5), "
    "tf.estimator.EvalSpec(input_fn, steps=2))"
)


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


def migrated(text: str) -> str:
    new, findings = run(text)
    assert manual(findings) == []
    return new


def configured(strategy: str, driver: str = "estimator.train(input_fn, steps=3)") -> str:
    """The program with this train_distribute."""
    config = f"tf.estimator.RunConfig(train_distribute={strategy})"
    return program(driver=driver).replace(', params={"rate": 0.1})', f", config={config}, params=dict(rate=0.1))")


def test_the_command_line_knows_every_target_and_loop() -> None:
    modules = [import_module(f"migrator.targets.{m.name}") for m in pkgutil.iter_modules(migrator.targets.__path__)]
    targets = {module.TARGET.word for module in modules if hasattr(module, "TARGET")}
    loops = {module.LOOP.word for module in modules if hasattr(module, "LOOP")}
    assert targets == set(STRATEGIES) == set(registry.TARGETS)
    assert loops == set(LOOPS) == set(registry.LOOPS)


@pytest.mark.parametrize("target", registry.TARGETS.values(), ids=lambda target: target.word)
def test_a_class_asks_for_one_target(target: registry.Target) -> None:
    assert [registry.target_of(f"tf.distribute.{name}") for name in target.classes] == [target] * len(target.classes)


def test_devices_of_the_run_config_are_kept_and_each_gets_batches_of_its_own() -> None:
    new = migrated(configured('tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])'))
    assert 'strategy = tf.distribute.MirroredStrategy(devices=["/gpu:0", "/gpu:1"])\nwith strategy.scope():\n' in new
    assert FED + "3, callbacks=[CountedSteps()])" in new


@pytest.mark.parametrize(
    "word, made",
    [
        ("mirrored", "tf.distribute.MirroredStrategy()"),
        ("central-storage", "tf.distribute.experimental.CentralStorageStrategy()"),
    ],
)
def test_a_strategy_may_be_asked_for(word: str, made: str) -> None:
    new, findings = run(program(driver="estimator.train(input_fn)"), word)
    assert manual(findings) == []
    assert "TFM724" in [f.code for f in findings]
    assert f"strategy = {made}\n" in new and FED + "steps)" in new
    assert "steps = sum(1 for _ in input_fn()) // strategy.num_replicas_in_sync\n" in new


def test_one_device_that_is_asked_for_counts_more_than_the_run_config() -> None:
    new, findings = run(configured("tf.distribute.MirroredStrategy()"), "one-device")
    assert manual(findings) == [] and "Strategy" not in new and "model.fit(input_fn().take(3))" in new


def test_a_strategy_with_a_name_is_left_out_for_one_device() -> None:
    text = configured("strategy").replace(
        "estimator = ", "strategy = tf.distribute.MirroredStrategy()\nestimator = ", 1
    )
    new, findings = run(text, "one-device")
    assert manual(findings) == [] and "trategy" not in new and "model.fit(input_fn().take(3))" in new
    assert "TFM406" in [f.code for f in findings]
    text += "print(strategy.num_replicas_in_sync)\n"
    new, findings = run(text, "one-device")
    assert new == text and "TFM704" in manual(findings)


@pytest.mark.parametrize("word", ["central-storage", "multi-worker-mirrored", "parameter-server"])
def test_no_strategy_is_claimed_on_keras_3_untried(word: str) -> None:
    text = program()
    new, findings = run(text, word, keras="3")
    assert new == text and set(manual(findings)) <= {"TFM872", "TFM704"} and manual(findings)


def test_a_strategy_from_elsewhere_is_blocked() -> None:
    text = configured("pick()").replace("def model_fn", "def pick():\n    return None\n\n\ndef model_fn")
    new, findings = run(text)
    assert new == text and "TFM704" in manual(findings)


@pytest.mark.parametrize(
    "strategy, told",
    [
        ("tf.distribute.experimental.MultiWorkerMirroredStrategy()", True),
        ("tf.contrib.distribute.CollectiveAllReduceStrategy(num_gpus_per_worker=2)", True),
        ("tf.contrib.distribute.CollectiveAllReduceStrategy(count)", True),
        ("tf.contrib.distribute.CollectiveAllReduceStrategy(num_gpus_per_worker=1)", False),
        ("tf.contrib.distribute.CollectiveAllReduceStrategy()", False),
        ("own", True),
    ],
)
def test_mirrored_workers_without_a_cluster_had_all_gpus(strategy: str, told: bool) -> None:
    text = configured(strategy, BOTH).replace("estimator = ", "count = 2\nestimator = ", 1)
    if strategy == "own":
        text = named("tf.distribute.experimental.MultiWorkerMirroredStrategy()")
    new, findings = run(text)
    assert manual(findings) == [] and "return tf.distribute.get_strategy()" in new
    assert ("TFM759" in [f.code for f in findings]) is told


def test_mirrored_workers_that_are_asked_for_had_one_device() -> None:
    _, findings = run(program(driver=BOTH), "multi-worker-mirrored")
    assert manual(findings) == [] and "TFM759" not in [f.code for f in findings]


@pytest.mark.parametrize(
    "given, code, told",
    [
        (
            "experimental_distribute=tf.contrib.distribute.DistributeConfig("
            "train_distribute=tf.distribute.MirroredStrategy(), remote_cluster={'worker': ['a:1']})",
            "TFM108",
            ("`remote_cluster` is driven by one client", "remove it", "give each process its TF_CONFIG"),
        ),
        ("experimental_distribute=config_of()", "TFM108", ("use the RunConfig's `train_distribute`",)),
        (
            "device_fn=lambda op: '/gpu:1'",
            "TFM108",
            ("remove it", "strategies place variables", "`--strategy central-storage`"),
        ),
        ("**settings", "TFM108", ("write its arguments in the call",)),
        (
            "train_distribute=tf.contrib.distribute.TPUStrategy(resolver, steps_per_run=10)",
            "TFM704",
            ("remove it with its resolver", "`--strategy tpu`", "TPUEstimator"),
        ),
        ("train_distribute=on_tpu", "TFM704", ("`--strategy tpu`",)),
        (
            "train_distribute=tf.contrib.distribute.MirroredStrategy(num_gpus=2, prefetch_on_device=False)",
            "TFM704",
            ("leave `prefetch_on_device` out",),
        ),
    ],
)
def test_what_is_refused_is_told_with_what_to_do(given: str, code: str, told: tuple[str, ...]) -> None:
    lines = "settings = {'model_dir': '/tmp/m'}\nsettings[name()] = 3\n"
    lines += "on_tpu = tf.distribute.experimental.TPUStrategy(resolver)\n"
    text = program(driver=BOTH).replace(
        ', params={"rate": 0.1})', f", config=tf.estimator.RunConfig({given}), params=dict(rate=0.1))"
    )
    text = text.replace("estimator = ", f"{lines}estimator = ", 1)
    new, findings = run(text)
    assert new == text
    message = next(f.message for f in findings if f.code == code)
    assert all(part in message for part in told)


@pytest.mark.parametrize("name", ["tf.contrib.estimator.replicate_model_fn", "replicate_model_fn"])
def test_the_towers_of_a_model_fn(name: str) -> None:
    text = program().replace("Estimator(model_fn", f"Estimator({name}(model_fn)")
    text = text.replace("import tensorflow as tf\n", f"import tensorflow as tf\nfrom {IMPORTED}\n", 1)
    new, findings = run(text)
    message = next(f.message for f in findings if f.code == "TFM104")
    assert new == text and "remove TowerOptimizer" in message and "`--strategy mirrored --loop custom`" in message


IMPORTED = "tensorflow.contrib.estimator import replicate_model_fn"


@pytest.mark.parametrize(
    "master, remote", [("'grpc://a:1'", True), ("place", True), ("''", False), ("'local'", False), ("None", False)]
)
def test_a_server_that_ran_the_program(master: str, remote: bool) -> None:
    config = f"tf.contrib.learn.RunConfig(master={master}, model_dir='/tmp/m')"
    text = program(driver=BOTH).replace(', params={"rate": 0.1})', f", config={config}, params=dict(rate=0.1))")
    _, findings = run(text.replace("estimator = ", "place = 'grpc://a:1'\nestimator = ", 1))
    assert manual(findings) == []
    told = [f.message for f in findings if f.code == "TFM140"]
    assert any("runs in this process now" in message for message in told) is remote


TWO = 'tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])'


@pytest.mark.parametrize("driver", [BOTH, "estimator.train(input_fn, steps=3)\nestimator.evaluate(input_fn, steps=2)"])
@pytest.mark.parametrize(
    "train, evaluate",
    [
        (TWO, 'tf.distribute.MirroredStrategy(["/gpu:0"])'),
        (TWO, "tf.distribute.MirroredStrategy()"),
        (TWO, 'tf.distribute.OneDeviceStrategy("/gpu:0")'),
        (TWO, "other"),
        ('tf.distribute.OneDeviceStrategy("/gpu:0")', TWO),
        ("tf.distribute.experimental.CentralStorageStrategy()", "tf.distribute.MirroredStrategy()"),
        ("tf.distribute.MirroredStrategy(devices)", "other"),
    ],
)
@pytest.mark.parametrize("asked", ["auto", "mirrored"])
def test_evaluations_on_other_devices_are_refused(train: str, evaluate: str, driver: str, asked: str) -> None:
    if asked == "mirrored" and "Mirrored" not in train:
        asked = "auto"
    lines = 'devices = ["/gpu:0", "/gpu:1"]\nown = tf.distribute.MirroredStrategy(devices)\ndevices = devices[:1]\n'
    lines += "other = tf.distribute.MirroredStrategy(devices)\n"
    text = configured(f"{train}, eval_distribute={evaluate}", driver).replace("estimator = ", f"{lines}estimator = ", 1)
    new, findings = run(text, asked)
    assert new == text and "TFM704" in manual(findings)


@pytest.mark.parametrize("train, evaluate", [(TWO, TWO), ("own", "own"), ("own", TWO), (TWO, "own")])
def test_evaluations_on_the_same_devices_are_carried_over(train: str, evaluate: str) -> None:
    text = configured(f"{train}, eval_distribute={evaluate}", BOTH)
    if "own" in (train, evaluate):
        text = text.replace("estimator = ", f"own = {TWO}\nestimator = ")
    new, findings = run(text)
    assert manual(findings) == [] and "steps=2" in new and "TFM173" not in [f.code for f in findings]


def test_evaluations_of_a_cluster_run_on_one_device() -> None:
    workers = "tf.distribute.experimental.MultiWorkerMirroredStrategy()"
    new, findings = run(configured(f"{workers}, eval_distribute=tf.distribute.MirroredStrategy()", BOTH))
    assert manual(findings) == [] and "MirroredStrategy()" not in new
    assert "one device in a cluster's evaluator" in next(f.message for f in findings if f.code == "TFM173")


@pytest.mark.parametrize("asked", [False, True])
def test_servers_of_a_strategy_need_a_chief(asked: bool) -> None:
    own = "tf.distribute.experimental.ParameterServerStrategy()"
    text = program(driver=BOTH) if asked else configured(own, BOTH)
    new, findings = run(text, "parameter-server" if asked else "auto")
    assert manual(findings) == []
    check = '    if "chief" not in cluster.jobs:\n        raise ValueError(\'TF_CONFIG names no "chief", which'
    assert check in new and new.index('== "evaluator":') < new.index(check) < new.index(".join()")
    assert "must name a chief" in next(f.message for f in findings if f.code == "TFM706")


def test_servers_or_mirrored_workers_of_a_run_config_have_a_chief() -> None:
    new, findings = run(program(driver=BOTH))
    assert '"chief" not in' not in new and "chief (" not in next(f.message for f in findings if f.code == "TFM706")


def named(value: str, driver: str = BOTH, given: str = "own") -> str:
    """The program with a strategy behind a name."""
    return configured(given, driver).replace("estimator = ", f"own = {value}\nestimator = ")


MADE = {
    "tf.contrib.distribute.MirroredStrategy(num_gpus=2)": 'MirroredStrategy(devices=["/gpu:0", "/gpu:1"])',
    "tf.contrib.distribute.MirroredStrategy(num_gpus=0)": 'MirroredStrategy(devices=["/cpu:0"])',
    "tf.contrib.distribute.MirroredStrategy(num_gpus=count)": (
        'MirroredStrategy(devices=[f"/gpu:{i}" for i in range(count)] or ["/cpu:0"])'
    ),
    "tf.distribute.MirroredStrategy(None, tf.distribute.ReductionToOneDevice())": (
        "MirroredStrategy(cross_device_ops=tf.distribute.ReductionToOneDevice())"
    ),
    'tf.distribute.experimental.CentralStorageStrategy(["/gpu:0"])': (
        'experimental.CentralStorageStrategy(compute_devices=["/gpu:0"])'
    ),
    'tf.contrib.distribute.OneDeviceStrategy("/gpu:1")': 'OneDeviceStrategy(device="/gpu:1")',
}


@pytest.mark.parametrize("given", MADE)
def test_a_strategy_behind_a_name_is_made_where_the_estimator_was(given: str) -> None:
    text = named(given).replace("def model_fn", "count = 3\n\n\ndef model_fn")
    new = migrated(text)
    assert f"own = tf.distribute.{MADE[given]}\nwith own.scope():\n" in new and new.count("own = ") == 1


def test_a_strategy_that_is_read_elsewhere_stays_where_it_is() -> None:
    driver = "print(1)\n" + BOTH + "\nprint(own.num_replicas_in_sync)"
    new = migrated(named("tf.contrib.distribute.MirroredStrategy(num_gpus=1)", driver))
    assert 'own = tf.distribute.MirroredStrategy(devices=["/gpu:0"])\nwith own.scope():' in new
    text = named("tf.distribute.experimental.MultiWorkerMirroredStrategy()", driver)
    assert run(text)[0] == text and "TFM704" in manual(run(text)[1])


@pytest.mark.parametrize("name", ["CollectiveAllReduceStrategy", "ParameterServerStrategy"])
def test_strategies_of_a_cluster_come_from_tf_config(name: str) -> None:
    new, findings = run(named(f"tf.contrib.distribute.{name}(num_gpus_per_worker=2)"))
    assert manual(findings) == [] and "TFM720" in [f.code for f in findings]
    assert "own = make_strategy(resolver)\nwith own.scope():" in new


def test_an_evaluation_of_its_own_strategy_gets_whole_batches_too() -> None:
    new = migrated(named("tf.distribute.MirroredStrategy()", given="own, eval_distribute=own"))
    assert "model.evaluate(per_replica(lambda: input_fn()), steps=2)" in new
    new, findings = run(named("tf.distribute.MirroredStrategy()"))
    assert "model.evaluate(input_fn().take(2))" in new and "TFM709" in [f.code for f in findings]
    text = program().replace(
        ', params={"rate": 0.1})',
        ", config=tf.estimator.RunConfig(eval_distribute=tf.distribute.MirroredStrategy()), params=dict(rate=0.1))",
    )
    assert run(text)[0] == text and "TFM704" in manual(run(text)[1])


REFUSED = {
    "TFM707": (
        "logits = tf.layers.dense(net, 1, kernel_regularizer=tf.keras.regularizers.l2(0.1))",
        "loss = tf.losses.mean_squared_error(labels, logits) + tf.losses.get_regularization_loss()",
    ),
    "TFM708": (
        "net = tf.nn.relu(net)",
        "loss = tf.losses.mean_squared_error(labels, logits)\ngradients = tf.gradients(loss, tf.trainable_variables())",
    ),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_replicas_compute_in_another_way_is_refused(code: str) -> None:
    network, loss = REFUSED[code]
    plain = program(network=network, loss=loss)
    given = "config=tf.estimator.RunConfig(train_distribute=tf.distribute.MirroredStrategy())"
    text = plain.replace(', params={"rate": 0.1})', f", {given}, params=dict(rate=0.1))")
    new, findings = run(text)
    assert new == text and code in manual(findings), findings
    assert code not in manual(run(plain, "mirrored")[1])


def test_virtual_cpus_of_a_session_are_those_of_the_replicas() -> None:
    settings = 'session_config=tf.ConfigProto(device_count={"CPU": 2})'
    given = f'tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]), {settings}'
    assert "[tf.config.LogicalDeviceConfiguration()] * 2,\n" in migrated(configured(given))
    assert "tf.config" not in run(configured(given), "one-device")[0]


def sharded(value: str, driver: str = BOTH) -> str:
    """A program whose input function takes a share of its data by the `input_context`."""
    shard = "    if input_context:\n        data = data.shard(input_context.num_input_pipelines, 0)\n    return data\n"
    text = named(value, driver).replace(
        "def input_fn():\n    return ", "def input_fn(input_context=None):\n    data = "
    )
    return text.replace(".batch(1)\n", ".batch(1)\n" + shard, 1)


def test_input_functions_get_the_context_of_the_strategy() -> None:
    new = migrated(sharded("tf.distribute.MirroredStrategy()"))
    context = "tf.distribute.InputContext(num_replicas_in_sync=own.num_replicas_in_sync)"
    assert f"per_replica(lambda: input_fn({context}))" in new and "make_inputs(input_fn())" in new
    new = migrated(sharded("tf.distribute.experimental.MultiWorkerMirroredStrategy()"))
    assert "DatasetCreator(lambda context: input_fn(context))" in new
    text = sharded("tf.distribute.experimental.MultiWorkerMirroredStrategy()", BOTH.replace(", max_steps=5", ""))
    assert run(text)[0] == text and "TFM602" in manual(run(text)[1])


def test_batches_that_replicas_divide_are_made_without_a_context() -> None:
    """An Estimator without a strategy has none to give; the input function may divide its batches by it."""
    new, findings = run(sharded("None").replace("train_distribute=own", ""), "mirrored", loop="custom")
    assert manual(findings) == []
    assert "loop.batches(input_fn())" in new and "InputContext" not in new, new


def test_keras_losses_of_every_example_may_be_added_up() -> None:
    loss = (
        "loss = tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.NONE)(labels, logits)\n"
        "loss = tf.reduce_sum(loss) * (1.0 / 4)"
    )
    new, findings = run(program(loss=loss), "mirrored")
    assert manual(findings) == []
    assert "return loss / self.distribute_strategy.num_replicas_in_sync" in new
    text = program(loss=loss.replace("NONE", "SUM"))
    assert run(text)[0] == text and "TFM311" in manual(run(text)[1])


@pytest.mark.parametrize("summed_last", [True, False])
def test_the_loss_that_is_computed_last_says_whether_replicas_are_averaged(summed_last: bool) -> None:
    """Run under TensorFlow 1.15.5 on two devices: each order gives the weights that it gives here."""
    losses = [
        "each = tf.keras.losses.Huber(reduction='none')(labels, logits)\n",
        "summed = tf.losses.mean_squared_error(labels, logits, reduction=tf.losses.Reduction.SUM)\n",
    ]
    loss = "".join(losses if summed_last else losses[::-1]) + "loss = 0.1 * summed + tf.reduce_sum(each) * (1.0 / 4)"
    new, findings = run(program(loss=loss), "mirrored")
    assert manual(findings) == []
    assert ("return loss / self.distribute_strategy.num_replicas_in_sync" in new) is not summed_last, new


def test_a_function_of_keras_behind_a_summed_loss_may_be_an_object_that_decides() -> None:
    loss = (
        "summed = tf.losses.mean_squared_error(labels, logits, reduction=tf.losses.Reduction.SUM)\n"
        "loss = 0.1 * summed + tf.keras.losses.MeanSquaredError()(labels, logits)"
    )
    text = program(loss=loss)
    new, findings = run(text, "mirrored")
    assert new == text and "TFM312" in manual(findings)
    assert manual(run(text)[1]) == []


def test_a_loss_inside_another_is_computed_before_it() -> None:
    each = "tf.keras.losses.Huber(reduction='none')(labels, logits)"
    loss = f"loss = tf.losses.compute_weighted_loss({each}, reduction=tf.losses.Reduction.SUM)"
    new, findings = run(program(loss=loss), "mirrored")
    assert manual(findings) == []
    assert "num_replicas_in_sync" not in new.partition("def compute_loss")[2].partition("model = Model")[0], new


def test_moving_averages_of_replicas_become_their_mean_after_a_training() -> None:
    network = "net = tf.layers.batch_normalization(features, training=mode == tf.estimator.ModeKeys.TRAIN)"
    given = "config=tf.estimator.RunConfig(train_distribute=tf.distribute.MirroredStrategy())"
    text = program(network=network).replace(', params={"rate": 0.1})', f", {given}, params=dict(rate=0.1))")
    new = migrated(text)
    assert "class ReplicaAverages(tf.keras.callbacks.Callback):" in new
    assert "callbacks=[CountedSteps(), ReplicaAverages()]" in new
    assert "ReplicaAverages" not in run(text, "one-device")[0]
    assert "ReplicaAverages" not in migrated(configured("tf.distribute.MirroredStrategy()"))


def test_an_evaluation_that_would_divide_a_sum_is_refused() -> None:
    driver = "estimator.train(input_fn)\nestimator.evaluate(input_fn)"
    given = "config=tf.estimator.RunConfig(train_distribute=tf.distribute.MirroredStrategy())"
    text = program(driver=driver, loss="loss = tf.reduce_sum(tf.square(labels - logits))")
    text = text.replace(', params={"rate": 0.1})', f", {given}, params=dict(rate=0.1))")
    new, findings = run(text)
    assert new == text and "TFM721" in manual(findings) and "TFM203" not in manual(findings)
    apart = text.replace("MirroredStrategy())", "MirroredStrategy(), eval_distribute=tf.distribute.MirroredStrategy())")
    assert manual(run(apart)[1]) == []
    assert manual(run(text.replace("estimator.evaluate(input_fn)", ""))[1]) == []


def test_data_that_may_end_before_the_steps_do_not_count_one_more() -> None:
    text = configured("tf.distribute.MirroredStrategy()")
    endless = text.replace(".batch(1)", ".batch(1).repeat()")
    assert "callbacks=[CountedSteps()]" in run(text)[0]
    assert "CountedSteps" not in run(endless)[0]
    assert "TFM723" in [f.code for f in run(text, keras="3")[1]]
    assert "TFM723" not in [f.code for f in [*run(text)[1], *run(endless, keras="3")[1]]]


def test_one_strategy_for_two_estimators_is_made_once() -> None:
    config = "config = tf.estimator.RunConfig(train_distribute=own)\n"
    text = named("tf.distribute.MirroredStrategy()", driver="estimator.train(input_fn)")
    text += f"{config}other = tf.estimator.Estimator(model_fn, config=config, params={{'rate': 0.1}})\n"
    new, findings = run(text + "other.train(input_fn)\n")
    assert manual(findings) == []
    assert new.count("own = tf.distribute.MirroredStrategy()\n") == 1 and new.count("with own.scope():\n") == 2
    assert "RunConfig" not in new


TOWERS = """
def average(towers):
    return [(tf.add_n([g for g, _ in pairs]) / len(pairs), pairs[0][1]) for pairs in zip(*towers)]


def model_fn(features, labels, mode, params):
    optimizer = tf.train.GradientDescentOptimizer(params["rate"])
    towers = []
    for i in range(2):
        with tf.device("/%s:%d" % ("gpu", i)), tf.variable_scope("net", reuse=i > 0):
            net = tf.layers.dense(tf.split(features, 2)[i], 1)
            loss = tf.losses.mean_squared_error(tf.split(labels, 2)[i], net)
            towers.append(optimizer.compute_gradients(loss))
    train_op = optimizer.apply_gradients(average(towers), tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


"""


@pytest.mark.parametrize("index", ["i", "0"])
def test_towers_inside_a_model_fn_are_known_by_their_devices(index: str) -> None:
    text = program(driver="estimator.train(input_fn)")
    start, end = text.index("def model_fn"), text.index("estimator = ")
    text = text[:start] + TOWERS.lstrip("\n").replace('("gpu", i)', f'("gpu", {index})') + text[end:]
    new, findings = run(text)
    assert ("class TrainingLoop" in new) == (index == "i") and "TFM743" not in [f.code for f in findings]
