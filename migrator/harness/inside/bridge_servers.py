"""Steps of a support file's Estimator that workers of parameter servers take.

The coordinator hands a worker what its hooks ask for together with the step. So what is to be recorded of a step is
written by operations of its graph, into the folder of the worker that takes it, as it is for ``Model.fit``. What lies
between steps is read by the coordinator, which stops there.
"""

import importlib

import parts
import step_hook


def make_hook(recorder, hooks, keras):
    """The hook that records one training; ``keras`` is the recorder of Keras programs, which knows how to write."""
    tf = recorder.tf

    class Hook(step_hook.hook_class(recorder, hooks)):
        def begin(self):
            super(Hook, self).begin()
            self.writes = {}  # number of a step -> what writes its gradients
            if recorder.workers is None:
                return
            stamp = keras.stamp()
            self.every = {"step": keras.append("steps", stamp, self.every["step"])}
            if self.kept:
                iteration = tf.train.get_global_step(self.capture.graph).read_value()
                data = (self.capture.features, self.capture.labels)
                self.kept = {"batch": keras.keep_batch(stamp, data, iteration)}
            gradients = list(zip(self.gradient_parts, self.some["gradients"]))
            for number in recorder.state_steps if gradients else ():
                self.writes[number] = keras.write_gradients(gradients, tf.constant(number))
            if "activations" in self.first:
                target = keras.target("activations") + "%08d" % 1
                self.first["activations"] = tf.io.write_file(target, self.first["activations"])

        def before_run(self, run_context):
            if recorder.workers is None:
                return super(Hook, self).before_run(run_context)
            number = recorder.steps_done + 1
            fetches = dict(self.every, **self.kept)
            if number in self.writes:
                fetches["gradients"] = self.writes[number]
            if number == 1:
                fetches.update(self.first)
            return tf.train.SessionRunArgs(fetches)

        def after_run(self, run_context, run_values):
            if recorder.workers is None:
                super(Hook, self).after_run(run_context, run_values)
                return
            recorder.steps_done = recorder.taken_before + recorder.workers.taken
            self.saw_regular(run_values.results)
            if recorder.steps_done in recorder.state_steps:
                self.record_state(run_context.session, recorder.steps_done)

    return Hook()


def install(recorder, keras):
    """The steps of a support file that a coordinator hands out are in turns where a plan asks for it."""

    def schedule(original, coordinator, *args, **kwargs):
        if not recorder.handing_out:
            return original(coordinator, *args, **kwargs)
        with keras.turn(coordinator):
            return original(coordinator, *args, **kwargs)

    module = importlib.import_module("tensorflow.python.distribute.coordinator.cluster_coordinator")
    parts.wrap(module.ClusterCoordinator, "schedule", schedule)
