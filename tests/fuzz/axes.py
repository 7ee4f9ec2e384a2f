"""What a program is put together from: independent axes, each with its values, the plainest one first."""

from __future__ import annotations

import random
from collections.abc import Mapping

#: A program: the axes on which it is not plain, each with its value there.
Values = Mapping[str, str]

#: Where a name of the model_fn may be bound anew, so that what comes after reads another value.
PLACES = (
    "nowhere",
    "loss after minimize",
    "loss before minimize",
    "rate after the optimizer",
    "labels before the loss",
    "logits after the loss",
    "net before the network",
    "training before the network",
    "train_op at the end",
    "optimizer before minimize",
)
#: How Python binds a name.
BINDINGS = (
    "assignment",
    "annotated",
    "augmented",
    "walrus",
    "tuple",
    "starred",
    "for",
    "while",
    "if",
    "try",
    "with",
    "match",
    "comprehension",
    "nonlocal",
    "deleted",
)
#: Words that a comment may say without meaning them.
WORDS = (
    "batch_norm",
    "gather",
    "repeat",
    "embedding",
    "CrossShardOptimizer",
    "horovod",
    "moving_average",
    "tf.distribute.MirroredStrategy",
    "UPDATE_OPS",
    "dropout",
    "tf.contrib",
    "GradientTape",
    "learning_phase",
    "shuffle",
    "global_step",
    "tower",
    "get_variable",
    "TF_CONFIG",
    "TPUEstimator",
    "iterator",
    "Session",
    "categorical_column",
    "cond(",
    "while_loop",
    "tf.placeholder",
    "summary",
    "hooks",
    "tf.keras",
    "LookupTable",
    "hparams",
    "export_savedmodel",
    "partitioner",
    "reuse",
    "tf.compat.v1",
    "batch_size = 32",
    "import horovod.tensorflow as hvd",
)

AXES: dict[str, tuple[str, ...]] = {
    "family": ("model_fn", "ready model"),
    "task": ("classes", "numbers"),
    "features": ("normal", "small"),
    "network": (
        "dense",
        "hidden of params",
        "towers",
        "unused layer",
        "variables",
        "layer objects",
        "shared layers",
        "convolution",
        "while loop",
        "static batch",
    ),
    "scope": ("none", "variable scopes", "names", "name scope"),
    "dropout": ("none", "layer", "by rate"),
    "normalization": ("none", "one", "two"),
    "updates": ("before", "after", "early list", "grouped", "scoped", "on the loss", "never"),
    "regularization": (
        "none",
        "layers",
        "all variables",
        "name in",
        "name starts",
        "name starts not",
        "name ends",
        "op name",
        "first part of the name",
        "by number",
        "of a scope",
    ),
    "optimizer": ("sgd", "momentum", "nesterov", "adam", "adagrad", "rmsprop", "ftrl"),
    "rate": ("constant", "params", "staircase", "piecewise", "formula", "polynomial", "chosen"),
    "gradients": ("minimize", "computed", "global norm", "each value", "each norm", "tf.gradients"),
    "loss": ("mean", "weighted", "sum over batch", "collected", "of two heads", "masked"),
    "metrics": ("accuracy", "none", "acc", "several", "mean of the loss"),
    "params": ("constant", "changed after", "changed before", "deleted"),
    "input": (
        "plain",
        "permuted",
        "counted",
        "generator",
        "file",
        "remainder dropped",
        "object",
        "lambda",
        "partial",
        "numpy_input_fn",
    ),
    "batches": ("even", "uneven"),
    "driver": (
        "once",
        "twice",
        "to a step",
        "resumed with another rate",
        "epochs",
        "train_and_evaluate",
        "train_and_evaluate until the data end",
        "two models",
        "two models alive",
        "no evaluation",
        "in an object",
    ),
    "folder": ("named", "temporary"),
    "predictions": ("none", "first", "all"),
    "export": ("none", "saved model", "final exporter"),
    "wording": (
        "plain",
        "annotated",
        "walrus",
        "match",
        "keywords",
        "second names",
        "optimizer function",
        "network function",
    ),
    "layout": ("script", "main", "app.run", "two files"),
    "rebound": PLACES,
    "binding": BINDINGS,
    "comment": ("none", *WORDS),
}

#: How often an axis is not plain in a program drawn by chance; the others are so in one program of three.
_SELDOM = {"family": 0.06, "export": 0.08, "comment": 0.15, "layout": 0.2, "rebound": 0.2, "wording": 0.25}


def value(values: Values, axis: str) -> str:
    """The value of a program on an axis."""
    return values.get(axis, AXES[axis][0])


def checked(values: Values) -> dict[str, str]:
    """The values that are not plain, in the order of the axes. ValueError for an axis or value that is not there."""
    for axis, name in values.items():
        if name not in AXES.get(axis, ()):
            raise ValueError(f"there is no {axis}: {name}")
    return {axis: values[axis] for axis in AXES if value(values, axis) != AXES[axis][0]}


def sensible(values: Values) -> dict[str, str]:
    """The program without the values that say nothing beside the others."""
    found = checked(values)
    if value(found, "normalization") == "none":
        found.pop("updates", None)
    if value(found, "network") == "static batch" and value(found, "input") in ("generator", "numpy_input_fn"):
        del found["input"]  # neither says how large a batch is
    if value(found, "rebound") == "nowhere":
        found.pop("binding", None)
    if value(found, "family") == "ready model":
        kept = (
            "family",
            "task",
            "features",
            "folder",
            "dropout",
            "optimizer",
            "metrics",
            "input",
            "batches",
            "driver",
            "predictions",
        )
        found = {axis: name for axis, name in found.items() if axis in (*kept, "layout", "comment")}
        if value(found, "driver") == "resumed with another rate":
            del found["driver"]
    return found


def draw(seed: int) -> dict[str, str]:
    """The program of a seed."""
    chance = random.Random(seed)
    found = {}
    for axis, names in AXES.items():
        if chance.random() < _SELDOM.get(axis, 0.33):
            found[axis] = chance.choice(names[1:])
    if "rebound" in found:
        found["binding"] = chance.choice(BINDINGS)
    return sensible(found)


def parse(text: str) -> dict[str, str]:
    """The program that `shown` prints. ValueError if it is none."""
    pairs = [part.split("=", 1) for part in text.split(";") if part.strip()]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"not a program: {text!r}; programs look like: {shown({'driver': 'twice'})}")
    return checked({axis.strip(): name.strip() for axis, name in pairs})


def shown(values: Values) -> str:
    """A program in one line, for people and for `--only`."""
    return "; ".join(f"{axis}={name}" for axis, name in values.items()) or "family=model_fn"
