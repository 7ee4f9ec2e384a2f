"""Runs programs that were written for a mesh of devices, and tells what they computed. It runs in TensorFlow 2.21.

Its argument is a file of runs: a list of the program, its folder, the dimensions of its mesh (None: its own), the
weights to begin with (None: its own), and where to write what was seen.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np
import tensorflow as tf

DEVICES = 8
dtensor = tf.experimental.dtensor


def whole(variable):
    """The value of a variable, wherever its parts are."""
    layout = dtensor.Layout.replicated(variable.layout.mesh, rank=variable.shape.rank)
    return dtensor.relayout(variable.read_value(), layout).numpy()


def weights_of(model):
    """The weights of a model's layers: without those of the metrics that it holds. A tf.Module has its own by name."""
    if not isinstance(model, tf.keras.Model):
        return sorted(
            model.trainable_variables,
            key=lambda one: (one.name.rpartition("/")[0], one.name.endswith("bias:0")),
        )
    counted = {id(variable) for metric in model.metrics for variable in metric.variables}
    return [weight for weight in model.weights if id(weight) not in counted]


def drops(model, loop):
    """What the first dropout of a model makes of ones, twice: the part of every device."""
    layers = model.layers if isinstance(model, tf.keras.Model) else []
    layer = next((layer for layer in layers if isinstance(layer, tf.keras.layers.Dropout)), None)
    if layer is None:
        return []
    drop = tf.function(lambda values: layer(values, training=True))
    values = loop.placed(tf.ones([800, 8]))
    return [[part.numpy().tolist() for part in dtensor.unpack(drop(values))] for _ in range(2)]


def run(program, mesh, initial, seen_path):
    """Runs `main` of a program and writes losses, results, weights, layouts and the shapes of parts."""
    tf.keras.backend.clear_session()
    spec = importlib.util.spec_from_file_location("program", program)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if mesh is not None:
        devices = [f"CPU:{i}" for i in range(int(np.prod([size for _, size in mesh])))]
        module.make_mesh = lambda: dtensor.create_mesh([tuple(pair) for pair in mesh], devices=devices)
    seen = {"losses": [], "results": []}
    init, evaluate, loops = module.TrainingLoop.__init__, module.TrainingLoop.evaluate, []

    def recorded_init(self, *args):
        init(self, *args)
        loops.append(self)
        if initial is not None:
            for variable, value in zip(weights_of(self.model), np.load(initial).values(), strict=True):
                # A copy for each device: TensorFlow may take the memory of an array for that of a variable, and devices
                # that share it would each add their update to the same numbers.
                copies = [tf.constant(value.copy()) for _ in self.mesh.local_devices()]
                layout = dtensor.Layout.replicated(self.mesh, rank=value.ndim)
                variable.assign(dtensor.relayout(dtensor.pack(copies, layout), variable.layout))
        step = self.train_step

        def recorded_step(batch):
            loss = step(batch)
            seen["losses"].append(float(loss.numpy()))
            return loss

        self.train_step = recorded_step

    def recorded_evaluate(self, batches):
        results = evaluate(self, batches)
        seen["results"].append({name: float(value) for name, value in results.items()})
        return results

    module.TrainingLoop.__init__, module.TrainingLoop.evaluate = recorded_init, recorded_evaluate
    module.main()
    model = loops[-1].model
    seen["layouts"] = [list(v.layout.sharding_specs) for v in weights_of(model)]
    seen["parts"] = [[list(part.shape) for part in dtensor.unpack(v.read_value())] for v in weights_of(model)]
    seen["slots"] = [list(v.layout.sharding_specs) for v in model.optimizer.variables]
    kept = [v for v in model.optimizer.variables if v.shape.rank]  # slots, not the counter
    seen["held"] = sum(dtensor.unpack(v.read_value())[0].numpy().nbytes for v in [*weights_of(model), *kept])
    seen["drops"] = drops(model, loops[-1])
    np.savez(seen_path + ".npz", *[whole(v) for v in weights_of(model)])
    with open(seen_path, "w") as file:
        json.dump(seen, file)


if __name__ == "__main__":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * DEVICES)
    with open(sys.argv[1]) as file:
        for each in json.load(file):
            run(*each)
