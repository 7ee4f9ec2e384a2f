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
            for variable, value in zip(self.model.weights, np.load(initial).values(), strict=True):
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
    seen["layouts"] = [list(v.layout.sharding_specs) for v in model.weights]
    seen["parts"] = [[list(part.shape) for part in dtensor.unpack(v.read_value())] for v in model.weights]
    seen["slots"] = [list(v.layout.sharding_specs) for v in model.optimizer.variables]
    np.savez(seen_path + ".npz", *[whole(v) for v in model.weights])
    with open(seen_path, "w") as file:
        json.dump(seen, file)


if __name__ == "__main__":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * DEVICES)
    with open(sys.argv[1]) as file:
        for each in json.load(file):
            run(*each)
