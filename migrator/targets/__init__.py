"""Distribution strategies: how each is set up, scoped, fed and checkpointed, and the loops that train under them.

One module per strategy, each with a `TARGET`, and one per loop, each with a `LOOP`; `registry` knows them all. This
module names them for the command line, which must not load the rest.
"""

STRATEGIES = (
    "auto",
    "one-device",
    "mirrored",
    "multi-worker-mirrored",
    "parameter-server",
    "central-storage",
    "tpu",
    "dtensor",
)
LOOPS = ("fit", "custom")
EVALUATE_ON = ("evaluator", "coordinator")
