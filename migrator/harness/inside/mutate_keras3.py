"""mutate.py on Keras 3: the known-bad versions that every verification runs. The others exist for Keras 2 only."""

import importlib

import parts
from mutate import Mutation


class Keras3Mutation(Mutation):
    def __init__(self, tf, mutant, folder):
        self.tf = tf
        self.mutant = mutant
        self.folder = folder
        self.model = importlib.import_module("keras.src.backend.tensorflow.trainer").TensorFlowTrainer
        self.changed = 0
        self.phases = []
        self.seen = []
        self.write()


def loss_reduction(mutation):
    """The mean over the batch becomes a sum."""

    def call(original, loss, *args, **kwargs):
        if loss.reduction == "sum_over_batch_size":
            loss.reduction = "sum"
            mutation.change(loss)
        return original(loss, *args, **kwargs)

    parts.wrap(importlib.import_module("keras.src.losses.loss").Loss, "__call__", call)


def batch_norm_updates(mutation):
    """The moving statistics stay as they are."""

    def normalize(original, layer, *args, **kwargs):
        if mutation.phase != "train":
            return original(layer, *args, **kwargs)
        mutation.change(layer)
        momentum, layer.momentum = layer.momentum, 1.0
        try:
            return original(layer, *args, **kwargs)
        finally:
            layer.momentum = momentum

    parts.wrap(importlib.import_module("keras.src.layers").BatchNormalization, "call", normalize)


KINDS = {"loss_reduction": loss_reduction, "batch_norm_updates": batch_norm_updates}


def install(tf, plan, folder):
    """As mutate.install."""
    mutant = plan["mutant"]
    if mutant.get("kind") not in KINDS:
        raise RuntimeError("no such mutant on Keras 3: %r" % (mutant,))
    mutation = Keras3Mutation(tf, mutant, folder)
    KINDS[mutant["kind"]](mutation)
    mutation.watch_phases()
