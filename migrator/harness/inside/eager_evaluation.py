"""Evaluations that a loop of the program's own makes eagerly: it asks a data set for batches, calls its model and
updates metrics.

What stands between the model and the metrics is the program's code, and only the program can run it. To have other
weights evaluated by it, the iterator begins once more at its end, as often as there are other weights: the program
goes through its loop again and never learns of it. Metrics begin each time with what they held before the loop, so that
one that was never reset shows, and end as the program's own weights leave them.
"""

import importlib

import record_mesh
from keras_variables import copies

BROKEN_OFF = "not evaluated with other weights: the loop of the evaluation does not go to the end of its data set"


def held(metric):
    """[(variable, value)] of what a metric has added up."""
    return [(variable, [one.numpy() for one in copies(variable)]) for variable in metric.variables]


def give(values):
    for variable, several in values:
        for one, value in zip(copies(variable), several):
            one.assign(value)


class EagerEvaluations(object):
    """The eager evaluations in the program of ``loop``, a LoopRecorder; ``plain`` knows what its iterators are for."""

    def __init__(self, loop, plain):
        self.loop = loop
        self.tf = loop.tf
        self.recorder = loop.recorder
        self.plain = plain
        self.running = None  # the iterator of an evaluation that is made with other weights now
        self.wanted = []  # [(what its results are called, file of the weights, their step)] that are still to come
        self.found = {}
        self.own = []  # what model and metrics held after the evaluation of the program's own weights
        self.weights = []

    def updating(self, metric):
        """Before a metric is updated outside of every function: is it part of an evaluation?"""
        plain, loop = self.plain, self.loop
        source = plain.source
        if self.running is not None or source is None or plain.step is not None or plain.trains_on(source):
            return
        if loop.dirty:
            loop.settle()
        evaluation = loop.evaluation
        if evaluation.line is not None and evaluation.source is not source:
            loop.write_evaluation()
            loop.evaluation = evaluation = loop.new_evaluation()
        evaluation.source = source
        evaluation.note = evaluation.note or BROKEN_OFF
        evaluation.add_metric(metric, held(metric))

    def begins_again(self, iterator):
        """At the end of a data set: whether the program is to go through it once more, with other weights."""
        if self.running is None:
            if not self._asked(iterator):
                return False
        elif self.running is not iterator:
            return False  # of another one, inside the loop
        else:
            key = self.wanted.pop(0)[0]
            self.found[key] = self.loop.results_of(self.loop.evaluation)
        evaluation = self.loop.evaluation
        while self.wanted:
            _, path, step = self.wanted[0]
            if self.recorder.take_weights(self.weights, path, self.found):
                if step is not None:
                    self.found["weights_step"] = step
                self.running = iterator
                evaluation.reset()
                generated = importlib.import_module("tensorflow.python.ops.gen_dataset_ops")
                generated.make_iterator(iterator._dataset._variant_tensor, iterator._iterator_resource)
                return True
            self.wanted.pop(0)
        self._end(evaluation)
        return False

    def _asked(self, iterator):
        """Whether this is the end of an evaluation that other weights are wanted for."""
        loop, recorder = self.loop, self.recorder
        evaluation = loop.evaluation
        if evaluation.source is not iterator or getattr(iterator, "_dataset", None) is None:
            return False
        evaluation.note = ""
        if not (recorder.plan.get("evaluate_weights") or recorder.plan.get("evaluation_control")):
            return False
        self.weights = recorder.parts
        if not self.weights:
            evaluation.note = "not evaluated with other weights: nothing was trained before"
            return False
        step = loop.step_of_optimizer()
        chosen = recorder.weights_for(step)
        self.wanted = [] if chosen is None else [("same_weights", chosen["path"], chosen["step"])]
        if recorder.plan.get("evaluation_control"):
            self.wanted.append(("control", loop.folder.initial_file(), None))
        self.found = {}
        variables = [part.variable for part in self.weights]
        variables += [variable for metric in evaluation.metrics for variable in metric.variables]
        self.own = [(one, [record_mesh.whole(self.tf, copy) for copy in copies(one)]) for one in variables]
        return bool(self.wanted)

    def _end(self, evaluation):
        for variable, several in self.own:
            for one, value in zip(copies(variable), several):
                one.assign(record_mesh.placed(self.tf, value, one))
        self.running, self.own = None, []
        evaluation.others.update(self.found)
        if evaluation.line is not None:
            evaluation.line.pop("note", None)
            evaluation.line.update(evaluation.others)
