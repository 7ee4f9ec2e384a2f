"""Rules about programs that use Horovod where there is one. The code is in program/without_horovod.py."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM196",
        "Horovod that a program does without where it is not installed",
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
where it is handed to functions that never get another value, and parameters that nothing reads any more go with the
arguments for them. It trains what one process of Horovod did: the mean of one gradient is that gradient. Started by
`horovodrun` the new processes would know nothing of each other: distribute the program with TF_CONFIG instead, and mind
the steps, the learning rate and the folders that went with `hvd.size()` and `hvd.rank()`. Where Horovod is needed after
all, in a function that none of this decides, say, the program is refused as before (TFM160).
""",
    ),
)
