"""Rules about programs that use Horovod where there is one. The code is in program/without_horovod.py."""

from __future__ import annotations

from collections.abc import Iterable

from migrator.findings import Severity
from migrator.program.modern import Change, ModernFile
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM196",
        "Horovod as an optional package",
        Severity.REVIEW,
        """
A program that imports Horovod in a `try` and gives its names a value that says "none" in the handler

    try:
        import horovod.tensorflow as hvd
        hvd.init()
        workers = hvd.size()
    except ImportError:
        workers = 0

trains in one process where Horovod is not installed. That program is migrated: branches on `workers` are decided, also
where it is passed to functions that never get another value, and parameters that nothing reads any more go with the
arguments for them. It trains what one process of Horovod did: the mean of one gradient is that gradient. Started by
`horovodrun` the new processes would know nothing of each other: distribute the program with TF_CONFIG instead, and mind
the steps, the learning rate and the folders that went with `hvd.size()` and `hvd.rank()`. Where Horovod is needed after
all, in a function that none of this decides, say, the program is refused as before (TFM160).
""",
    ),
    Rule(
        "TFM186",
        "workers of TF_CONFIG instead of Horovod processes",
        Severity.REVIEW,
        """
A program that Horovod distributes keeps its code as a bridge (TFM155, or TFM199 with sessions), and what it asks of
Horovod comes from `keras_estimator.py`: `hvd.init()` becomes `start_worker()`, `hvd.rank()` `worker_rank()`,
`hvd.size()` `worker_count()`, and `DistributedOptimizer`, `all_reduce`, `all_gather`, `broadcast_from` and
`BroadcastVariablesHook` do what Horovod's did, by the collective operations of MultiWorkerMirroredStrategy. So learning
rates times the number of workers, steps divided by it, shards of data, and what only rank 0 does stay as they are.

Start the program once for each worker, with TF_CONFIG in the place of `horovodrun`: the chief, if there is one, is
rank 0, and the workers follow in their order. Without TF_CONFIG it trains alone. `start_worker()` takes TF_CONFIG out
of the environment: from then on each process has a model of its own, as with Horovod, and all that they share are the
values that are exchanged. With several GPUs on a machine each process uses one, as `visible_device_list` said.

Where the module itself is passed around (`create_optimizer(loss, hvd=hvd)`, `self.hvd = hvd`, `from utils import hvd`),
`keras_estimator.AllWorkers` is that value, which has all of this under Horovod's names: what reads it stays as it is.

Gradients are averaged before they are clipped or applied, as with Horovod; rows of sparse gradients are gathered. The
program's own sessions run on a `tf.distribute.Server` of the worker. At its end a process waits for the others.

Unsupported, and reported by TFM157: elastic training, Adasum, process sets, and `horovod.keras` and
`horovod.tensorflow.keras`, whose optimizers are Keras'; `backward_passes_per_step` other than 1 is an error where the
program runs.
""",
    ),
    Rule(
        "TFM274",
        "Horovod in a TensorFlow 2 program",
        Severity.REVIEW,
        """
The program is mended for TensorFlow 2.21 as any other, and Horovod stays in it: its `DistributedGradientTape`, its
optimizers for Keras and its callbacks are unsupported. Horovod has to be built for the version of TensorFlow that runs
the program. To do without it, make the model in the scope of a `tf.distribute.MultiWorkerMirroredStrategy`, which
averages gradients and gives all workers the same first weights, and start each worker with TF_CONFIG.
""",
    ),
)


def check_horovod(file: ModernFile) -> Iterable[Change]:
    """The first import of Horovod."""
    for name, origin in file.parsed.imports.names.items():
        node = file.parsed.imports.nodes.get(name)
        if origin.partition(".")[0] == "horovod" and node is not None:
            message = f"`{origin}` stays: build Horovod for TensorFlow 2.21, or use MultiWorkerMirroredStrategy"
            yield Change("TFM274", node, message, severity=Severity.REVIEW)
            return


CHECKS = (check_horovod,)
