"""Each kind of mutant makes its mistake in running Keras programs, and no other; where there is nothing to change it
says so.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator.harness.cluster import ClusterShape, ForkServer, Launch
from migrator.harness.mutants.killing import same_numbers
from migrator.harness.recording import Array, Recording, read, read_batch

pytestmark = pytest.mark.tensorflow

# Two epochs of batches of 8, 8 and 4; the table has rows that no batch names.
PROGRAM = """
import sys
import numpy as np
import tensorflow as tf

OPTIMIZERS = {
    "sgd": lambda: tf.keras.optimizers.SGD(0.1),
    "momentum": lambda: tf.keras.optimizers.SGD(0.1, momentum=0.9),
    "lazy": lambda: Lazy(0.1, momentum=0.9),
    "adam": lambda: tf.keras.optimizers.Adam(0.01, epsilon=1e-8),
    "adagrad": lambda: tf.keras.optimizers.Adagrad(0.1, initial_accumulator_value=0.1, epsilon=0.0),
    "clipped": lambda: tf.keras.optimizers.SGD(0.1, global_clipnorm=0.01),
    "decay": lambda: tf.keras.optimizers.SGD(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)),
}

class Lazy(tf.keras.optimizers.SGD):
    def update_step(self, gradient, variable):
        slot = self.momentums[self._index_dict[self._var_key(variable)]]
        momentum = tf.cast(self.momentum, variable.dtype)
        rate = tf.cast(self.learning_rate, variable.dtype)
        if isinstance(gradient, tf.IndexedSlices):
            moved = momentum * tf.gather(slot, gradient.indices) + gradient.values
            slot.scatter_update(tf.IndexedSlices(moved, gradient.indices))
            variable.scatter_sub(tf.IndexedSlices(rate * moved, gradient.indices))
        else:
            slot.assign(momentum * slot + gradient)
            variable.assign_sub(rate * slot)

def examples(count, seed):
    random = np.random.RandomState(seed)
    x = random.normal(size=(count, 4)).astype(np.float32)
    row = random.randint(0, 5, size=count).astype(np.int32)
    return {"x": x, "row": row}, (x[:, 0] > 0).astype(np.int32)

def data(how):
    source = tf.data.Dataset.from_tensor_slices(examples(20, 1))
    return {
        "batches": lambda: source.shuffle(20, seed=3).batch(8).repeat(2),
        "examples": lambda: source.repeat(2).batch(8),
        "generator": lambda: source.apply(tf.data.experimental.assert_cardinality(20)).filter(
            lambda x, y: True
        ).batch(8).repeat(2),
        "shard": lambda: source.shard(2, 1).batch(8).repeat(2),
    }[how]()

def build(optimizer):
    decay = tf.keras.regularizers.L2(0.05)
    x, row = tf.keras.Input((4,), name="x"), tf.keras.Input((), dtype=tf.int32, name="row")
    net = tf.keras.layers.Dense(6, kernel_regularizer=decay)(x)
    net = tf.keras.layers.BatchNormalization()(net)
    net = tf.keras.layers.Dropout(0.25)(tf.nn.relu(net))
    net = tf.concat([net, tf.keras.layers.Embedding(7, 2)(row)], axis=1)
    model = tf.keras.Model({"x": x, "row": row}, tf.keras.layers.Dense(2, kernel_regularizer=decay)(net))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(OPTIMIZERS[optimizer](), loss, metrics=["accuracy", "mae"])
    return model

tf.keras.utils.set_random_seed(5)
model = build(sys.argv[1])
model.fit(data(sys.argv[2]), verbose=0)
model.evaluate(tf.data.Dataset.from_tensor_slices(examples(20, 2)).batch(8), verbose=0)
"""

# Nothing of what most kinds change.
BARE = """
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(5)
x = np.random.RandomState(1).normal(size=(4, 3)).astype(np.float32)
model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD(0.1))
model.add_loss(tf.reduce_mean(model.output))
model.fit(tf.data.Dataset.from_tensors(x), verbose=0)
"""

WORKERS = """
import sys
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
x = np.random.RandomState(1).normal(size=(24, 3)).astype(np.float32)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit(tf.data.Dataset.from_tensor_slices((x, x[:, :1] ** 2)).batch(4), steps_per_epoch=2, verbose=0)
"""

SERVERS = """
import numpy as np
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id).join()
partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
x = np.random.RandomState(1).normal(size=(24, 6)).astype(np.float32)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.Input((6,)), tf.keras.layers.Dense(1, name="dense")])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")

def make(context):
    return tf.data.Dataset.from_tensor_slices((x, x[:, :1] ** 2)).batch(10).repeat()

model.fit(tf.keras.utils.experimental.DatasetCreator(make), steps_per_epoch=4, verbose=0)
"""

RATE = np.float32(0.1)
TABLE = "embedding/embeddings"
MOVING = ("batch_normalization/moving_mean", "batch_normalization/moving_variance")


class Bench:
    """Runs the programs in one fork server; the runs without a mutant only once."""

    def __init__(self, folder: Path, server: ForkServer) -> None:
        self.folder, self.server = folder, server
        self.count = 0
        self.known: dict[tuple[str, str, str], Recording] = {}
        self.last = folder

    def run(
        self,
        body: str,
        args: str = "",
        shape: str = "",
        trainers: str = "local:0",
        mutant: dict[str, Any] | None = None,
    ) -> Recording:
        key = body, args, shape
        if mutant is None and key in self.known:
            return self.known[key]
        self.count += 1
        run_dir = self.folder / f"run-{self.count}"
        run_dir.mkdir()
        script = run_dir / "program.py"
        script.write_text(body)
        launch = Launch(
            program="migrated",
            script=script,
            args=tuple(args.split()),
            shape=ClusterShape.parse(shape, coordinated=True),
            run_dir=run_dir,
            plan={
                "program": "migrated",
                "record": str(run_dir / "record"),
                "model_dir": str(run_dir / "model"),
                "trainers": trainers.split(),
                "state_steps": [1, 2, 3, 6],
                "evaluate": True,
                "mutant": mutant,
            },
            environment={"TF_CPP_MIN_LOG_LEVEL": "2"},
            total_timeout=120.0,
        )
        outcome = self.server.run(launch)
        assert outcome.failure is None, outcome.failure
        recording = read(run_dir / "record")
        self.last = run_dir / "record"
        if mutant is None:
            self.known[key] = recording
        return recording

    def pair(self, mutant: dict[str, Any], args: str = "sgd batches") -> tuple[Recording, Recording]:
        """The program as it is, and with a mutant that changed something."""
        good, bad = self.run(PROGRAM, args), self.run(PROGRAM, args, mutant={"id": "test", **mutant})
        assert good.mutation is None and bad.mutation is not None and bad.mutation > 0
        assert same_numbers(good.initial, bad.initial)
        return good, bad


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, servers: tuple[ForkServer, ForkServer]) -> Bench:
    return Bench(tmp_path_factory.mktemp("runs"), servers[1])


def losses(recording: Recording) -> list[float]:
    return [step.loss for step in recording.steps]


def rates(recording: Recording) -> list[float | None]:
    return [step.learning_rate for step in recording.steps]


def sizes(recording: Recording) -> list[int]:
    return [batch.size for batch in recording.batches]


def digests(recording: Recording) -> list[str]:
    return [batch.digest for batch in recording.batches]


def settings(recording: Recording) -> dict[str, Any]:
    assert recording.optimizer is not None
    return recording.optimizer.settings


def moved(recording: Recording, name: str, step: int = 1) -> Array:
    """How far a variable is from where it began."""
    return recording.states[step][name] - recording.initial[name]


def norm(recording: Recording, step: int = 1) -> float:
    return float(np.sqrt(sum(float(np.square(value).sum()) for value in recording.gradients[step].values())))


def penalty(recording: Recording, step: int) -> float:
    """The regularisation after a step."""
    weights = recording.states[step]
    return 0.05 * sum(float(np.square(weights[f"{name}/kernel"]).sum()) for name in ("dense", "dense_1"))


def same_training(one: Recording, other: Recording) -> bool:
    """Whether all but settings and evaluations is the same."""
    return same_numbers(one, replace(other, optimizer=one.optimizer, evaluations=one.evaluations))


def results(recording: Recording) -> dict[str, float]:
    (evaluation,) = recording.evaluations
    return evaluation.results


class TestOptimizers:
    def test_learning_rate(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "learning_rate", "factor": 1.5})
        assert settings(bad)["learning_rate"] == pytest.approx(0.15)
        assert rates(bad) == pytest.approx([0.15] * 6)
        np.testing.assert_allclose(moved(bad, "dense/kernel"), 1.5 * moved(good, "dense/kernel"), rtol=1e-4)

    def test_learning_rate_of_a_schedule(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "learning_rate", "factor": 1.5}, "decay batches")
        assert rates(good) == pytest.approx([0.1 / 2**step for step in range(6)])
        assert rates(bad) == pytest.approx([0.15 / 2**step for step in range(6)])

    def test_a_rate_that_reads_right(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "learning_rate", "factor": 1.5, "unseen": True})
        assert settings(bad) == settings(good) and rates(bad) == rates(good)
        np.testing.assert_allclose(moved(bad, "dense/kernel"), 1.5 * moved(good, "dense/kernel"), rtol=1e-4)

    @pytest.mark.parametrize(
        ("args", "setting", "value"),
        [
            ("adam batches", "epsilon", 1e-3),
            ("adam batches", "beta_2", 0.5),
            ("momentum batches", "momentum", 0.5),
        ],
    )
    def test_settings_seen_and_unseen(self, bench: Bench, args: str, setting: str, value: float) -> None:
        change = {"kind": "optimizer_setting", "setting": setting, "value": value}
        good, bad = bench.pair(change, args)
        assert settings(bad) == settings(good) | {setting: pytest.approx(value)}
        _, unseen = bench.pair(change | {"unseen": True}, args)
        assert settings(unseen) == settings(good)
        assert same_training(bad, unseen) and not same_training(good, bad)

    def test_accumulator(self, bench: Bench) -> None:
        change = {"kind": "optimizer_setting", "setting": "initial_accumulator_value", "value": 0.11, "unseen": True}
        good, bad = bench.pair(change, "adagrad batches")
        slot = ("dense/kernel", "accumulator")
        np.testing.assert_allclose(bad.slots[1][slot] - good.slots[1][slot], 0.01, rtol=1e-4)
        assert settings(bad) == settings(good)

    def test_a_setting_only_where_it_was_another(self, bench: Bench) -> None:
        change = {"id": "test", "kind": "optimizer_setting", "setting": "momentum", "value": 0.5, "only_from": 0.0}
        _, bad = bench.pair(change)
        assert settings(bad)["momentum"] == 0.5
        assert bench.run(PROGRAM, "momentum batches", mutant=change).mutation == 0

    def test_nesterov(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "nesterov"}, "momentum batches")
        assert (settings(good)["nesterov"], settings(bad)["nesterov"]) == (False, True)
        # The first step of the one is rate * g, of the other rate * g + momentum * rate * g.
        np.testing.assert_allclose(moved(bad, "dense/kernel"), 1.9 * moved(good, "dense/kernel"), rtol=1e-4)

    def test_clipping(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "clipping", "norm": 0.01})
        # Clipped as it comes: a row that several examples name is added up afterwards.
        assert norm(good) > 0.02 and norm(bad) == pytest.approx(0.01, rel=5e-3)
        assert settings(bad)["global_clipnorm"] == pytest.approx(0.01)
        _, unseen = bench.pair({"kind": "clipping", "norm": 0.01, "unseen": True})
        assert norm(unseen) == pytest.approx(norm(bad), rel=1e-5) and settings(unseen) == settings(good)

    def test_clipping_that_never_clips(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "clipping", "norm": 1000.0, "unseen": True})
        assert same_numbers(good, bad)

    def test_no_clipping(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "clipping", "norm": None}, "clipped batches")
        assert norm(good) == pytest.approx(0.01, rel=5e-3) and norm(bad) > 0.02
        assert settings(bad)["global_clipnorm"] is None
        _, unseen = bench.pair({"kind": "clipping", "norm": None, "unseen": True}, "clipped batches")
        assert norm(unseen) == norm(bad) and settings(unseen) == settings(good)

    def test_rows_that_no_batch_names(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "sparse_rows", "rows": "untouched"}, "adam batches")
        rows = [set(np.unique(read_batch(bench.last, batch)["features/row"])) for batch in bad.batches[:3]]
        left = sorted((rows[0] | rows[1]) - rows[2])
        assert left, "a row has to be named before the third batch and not in it"
        for recording, stays in ((good, False), (bad, True)):
            before, after = recording.states[2][TABLE][left], recording.states[3][TABLE][left]
            assert np.array_equal(before, after) is stays
            slots = [recording.slots[step][TABLE, "first_moment"][left] for step in (2, 3)]
            assert np.array_equal(*slots) is stays

    def test_rows_that_move_by_momentum(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "sparse_rows", "rows": "dense"}, "lazy batches")
        rows = [set(np.unique(read_batch(bench.last, batch)["features/row"])) for batch in bad.batches[:3]]
        left = sorted((rows[0] | rows[1]) - rows[2])
        for recording, stays in ((good, True), (bad, False)):
            before, after = recording.states[2][TABLE][left], recording.states[3][TABLE][left]
            assert np.array_equal(before, after) is stays
        stock = bench.run(PROGRAM, "momentum batches", mutant={"id": "test", "kind": "sparse_rows", "rows": "dense"})
        assert stock.mutation == 0


class TestLosses:
    def test_sum_for_mean(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "loss_reduction"})
        fixed = good.regularization
        assert fixed is not None and fixed > 0.0
        assert losses(bad)[0] - fixed == pytest.approx(8 * (losses(good)[0] - fixed), rel=1e-5)

    def test_partial_batch(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "partial_batch"}, "sgd batches")
        assert sizes(bad) == [8, 8, 4, 8, 8, 4]
        assert losses(bad)[:2] == losses(good)[:2]
        fixed = penalty(good, 2)
        assert losses(bad)[2] - fixed == pytest.approx((losses(good)[2] - fixed) / 2, rel=1e-4)

    def test_regularizers(self, bench: Bench) -> None:
        good, dropped = bench.pair({"kind": "regularizers", "change": "dropped"})
        assert (good.regularizers, dropped.regularizers) == (2, 0)
        assert losses(dropped)[0] == pytest.approx(losses(good)[0] - (good.regularization or 0.0), rel=1e-5)
        _, first = bench.pair({"kind": "regularizers", "change": "first_dropped"})
        kernel = 0.05 * float(np.square(good.initial["dense/kernel"]).sum())
        assert first.regularization == pytest.approx((good.regularization or 0.0) - kernel, rel=1e-5)
        _, doubled = bench.pair({"kind": "regularizers", "change": "doubled"})
        assert doubled.regularization == pytest.approx(2 * (good.regularization or 0.0), rel=1e-6)
        assert losses(doubled)[0] == pytest.approx(losses(good)[0] + (good.regularization or 0.0), rel=1e-5)


class TestData:
    @pytest.mark.parametrize(
        ("how", "whole", "left"),
        [
            ("batches", [8, 8, 4, 8, 8, 4], [8, 8, 8, 8]),
            ("examples", [8, 8, 8, 8, 8], [8, 8, 8]),
            ("generator", [8, 8, 4, 8, 8, 4], [8, 8, 8, 8]),
        ],
    )
    def test_the_last_batch_of_an_epoch(self, bench: Bench, how: str, whole: list[int], left: list[int]) -> None:
        good, bad = bench.pair({"kind": "dropped_batch", "side": "train"}, f"sgd {how}")
        assert (sizes(good), sizes(bad)) == (whole, left)
        assert digests(bad)[0] == digests(good)[0]
        assert [len(recording.evaluations) for recording in (good, bad)] == [1, 1]

    def test_batch_sizes(self, bench: Bench) -> None:
        _, half = bench.pair({"kind": "batch_size", "change": "half"})
        assert sizes(half) == [4] * 10
        _, short = bench.pair({"kind": "batch_size", "change": "minus_one"})
        assert sizes(short) == [7, 7, 6] * 2

    def test_shuffles(self, bench: Bench) -> None:
        good, other = bench.pair({"kind": "shuffle", "change": "seed"})
        assert sizes(other) == sizes(good) and not set(digests(other)) & set(digests(good))
        _, none = bench.pair({"kind": "shuffle", "change": "none"})
        plain = bench.run(PROGRAM, "sgd generator")
        assert digests(none) == digests(plain)
        assert (
            bench.run(PROGRAM, "sgd generator", mutant={"id": "x", "kind": "shuffle", "change": "seed"}).mutation == 0
        )

    def test_the_first_shard(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "same_shard"}, "sgd shard")
        assert sizes(good) == sizes(bad) == [8, 2, 8, 2]
        assert not set(digests(good)) & set(digests(bad))


class TestLayers:
    def test_batch_normalization_settings(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "batch_norm_setting", "setting": "momentum", "value": 0.9})
        np.testing.assert_allclose(moved(bad, MOVING[0]), 10 * moved(good, MOVING[0]), rtol=1e-4)
        assert losses(bad)[0] == losses(good)[0]
        _, bad = bench.pair({"kind": "batch_norm_setting", "setting": "epsilon", "value": 0.5})
        assert losses(bad)[0] != losses(good)[0]

    def test_no_updates(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "batch_norm_updates"})
        for name in MOVING:
            assert np.any(moved(good, name, 6)) and not np.any(moved(bad, name, 6))
        assert losses(bad) == losses(good)

    def test_inference_mode_in_training(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "batch_norm_mode", "phase": "train"})
        assert losses(bad)[0] != losses(good)[0]
        assert not any(np.any(moved(bad, name, 6)) for name in MOVING)

    def test_dropout(self, bench: Bench) -> None:
        good, off = bench.pair({"kind": "dropout", "change": "off"})
        assert (good.dropout_rates, off.dropout_rates) == ((0.25,), ())
        _, keep = bench.pair({"kind": "dropout", "change": "keep_prob"})
        assert keep.dropout_rates == (0.75,)
        _, more = bench.pair({"kind": "dropout", "change": "more"})
        assert more.dropout_rates == pytest.approx((0.275,))


class TestEvaluation:
    def test_stale_weights(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "stale_evaluation"})
        assert same_training(good, bad) and results(bad) != results(good)
        # A training that moves neither weights nor statistics evaluates what it began with.
        body = PROGRAM.replace("BatchNormalization()", "BatchNormalization(momentum=1.0)")
        assert body != PROGRAM
        still = bench.run(body, "sgd batches", mutant={"id": "x", "kind": "learning_rate", "factor": 0.0})
        assert results(bad) == pytest.approx(results(still), rel=1e-6)

    def test_the_last_batch(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "dropped_batch", "side": "evaluate"})
        assert same_training(good, bad)
        assert results(bad)["accuracy"] * 16 == pytest.approx(round(results(bad)["accuracy"] * 16))
        assert results(bad)["mae"] != results(good)["mae"]

    def test_metrics(self, bench: Bench) -> None:
        good, higher = bench.pair({"kind": "metrics", "change": "threshold"})
        assert same_training(good, higher)
        assert results(higher)["loss"] == results(good)["loss"] and results(higher)["mae"] != results(good)["mae"]
        _, shifted = bench.pair({"kind": "metrics", "change": "labels"})
        assert same_training(good, shifted) and results(shifted)["loss"] == results(good)["loss"]
        assert results(shifted)["accuracy"] != results(good)["accuracy"]

    def test_batch_normalization_in_training_mode(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "batch_norm_mode", "phase": "evaluate"})
        assert same_training(good, bad) and results(bad)["loss"] != results(good)["loss"]

    def test_no_regularization(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "evaluation_loss"})
        assert same_training(good, bad)
        assert results(good)["loss"] - results(bad)["loss"] == pytest.approx(penalty(good, 6), rel=1e-4)

    def test_changed_weights(self, bench: Bench) -> None:
        good, bad = bench.pair({"kind": "changed_weights", "factor": 1.5})
        assert same_training(good, bad) and results(bad) != results(good)


class TestDistribution:
    def test_gradients_of_two_workers(self, bench: Bench) -> None:
        both = {"shape": "worker=2", "trainers": "worker:0 worker:1"}
        good = bench.run(WORKERS, **both)
        gradient = good.gradients[1]["dense/kernel"]
        for change, factor in (("averaged", 0.5), ("summed", 2.0)):
            bad = bench.run(WORKERS, **both, mutant={"id": "x", "kind": "replica_gradients", "change": change})
            np.testing.assert_allclose(bad.gradients[1]["dense/kernel"], factor * gradient, rtol=1e-5)
            assert bad.mutation == 1
        lost = bench.run(WORKERS, **both, mutant={"id": "x", "kind": "replica_gradients", "change": "last_lost"})
        batch = next(batch for batch in lost.batches if (batch.task, batch.step) == ("worker:0", 1))
        values = read_batch(bench.last, batch)
        x, y = values["features"], values["labels"]
        alone = 2 * x.T @ (x @ np.ones((3, 1), np.float32) - y) / len(x) / 2
        np.testing.assert_allclose(lost.gradients[1]["dense/kernel"], alone, rtol=1e-4)

    def test_automatic_shards(self, bench: Bench) -> None:
        both = {"shape": "worker=2", "trainers": "worker:0 worker:1"}
        good = bench.run(WORKERS, **both)
        bad = bench.run(WORKERS, **both, mutant={"id": "x", "kind": "same_shard"})

        def first(recording: Recording) -> list[str]:
            return [batch.digest for batch in recording.batches if batch.step == 1]

        assert len(set(first(good))) == 2 and bad.mutation == 1
        assert first(bad) != first(good)

    def test_shards_of_parameter_servers(self, bench: Bench) -> None:
        cluster = {"shape": "chief=1,worker=1,ps=2", "trainers": "worker:0"}

        def kernel(recording: Recording) -> int:
            return next(one.shards for one in recording.variables if one.name == "dense/kernel")

        more = bench.run(SERVERS, **cluster, mutant={"id": "x", "kind": "partitioner", "change": "more"})
        assert (kernel(more), more.mutation) == (3, 1)
        none = bench.run(SERVERS, **cluster, mutant={"id": "x", "kind": "partitioner", "change": "none"})
        assert (kernel(none), none.mutation) == (1, 1)

    def test_the_data_of_a_coordinator(self, bench: Bench) -> None:
        cluster = {"shape": "chief=1,worker=1,ps=2", "trainers": "worker:0"}
        bad = bench.run(SERVERS, **cluster, mutant={"id": "x", "kind": "dropped_batch", "side": "train"})
        assert sizes(bad) == [10, 10, 10, 10] and (bad.mutation or 0) > 0


@pytest.mark.parametrize(
    "mutant",
    [
        {"kind": "nesterov"},
        {"kind": "sparse_rows", "rows": "untouched"},
        {"kind": "loss_reduction"},
        {"kind": "dropped_batch", "side": "train"},
        {"kind": "batch_norm_updates"},
        {"kind": "replica_gradients", "change": "summed"},
        {"kind": "stale_evaluation"},
    ],
    ids=lambda mutant: str(mutant["kind"]),
)
def test_nothing_to_change(bench: Bench, mutant: dict[str, Any]) -> None:
    bad = bench.run(BARE, mutant={"id": "test", **mutant})
    assert bad.mutation == 0
    assert same_numbers(bench.run(BARE), bad)


def test_a_kind_that_there_is_not_ends_the_run(bench: Bench) -> None:
    with pytest.raises(AssertionError, match="no such mutant"):
        bench.run(BARE, mutant={"id": "test", "kind": "nothing"})
