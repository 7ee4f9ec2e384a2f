"""The trainings of a program that trains one model after another in loops of its own, as the folds of a
cross-validation: one of them is recorded in a run, and the plan's ``training`` says which.

What a step trains tells which training it is of. Where two networks are trained in turns, as those of a GAN, this would
take them apart; so it counts only where the plan says that the original trains several models (``apart``), or where
``fit`` has trained the recorded one: what a loop trains then, and is no part of that, is another.
"""

from keras_variables import copies


class LoopTrainings(object):
    """Those of one program; ``recorder`` is that of its Keras, which counts models that ``fit`` trains, too."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.apart = bool(recorder.plan.get("apart"))
        self.own = {}  # id -> variable, of what the recorded training trains
        self.others = []  # the same of each other training
        self.elsewhere = False  # whether another training than the recorded one went on last

    def told(self):
        """Whether what is trained tells one training from another."""
        recorder = self.recorder
        fitted = recorder.started and recorder.model is not None and not recorder.by_batch
        if fitted and not self.own:
            self.own.update({id(copy): copy for variable in _variables(recorder.model) for copy in copies(variable)})
        return self.apart or fitted

    def lies_elsewhere(self, models):
        """Whether models (or layers) are those of another training than the recorded one; None where they are of none
        that is known, or of several.
        """
        held = {id(copy) for model in models for variable in _variables(model) for copy in copies(variable)}
        if not held or not self.told():
            return None
        own = not self.own.keys().isdisjoint(held)
        others = any(not known.keys().isdisjoint(held) for known in self.others)
        return None if own == others else others

    def is_other(self, variables, goes_on):
        """Whether a step that trains these variables is of another training than the recorded one; if it ``goes_on``
        with the batch of the step before it, it is of the same.
        """
        if not variables or not self.told():
            return False
        trained = {id(copy): copy for variable in variables for copy in copies(variable)}
        for known in self.others:
            if not known.keys().isdisjoint(trained):
                known.update(trained)
                return True
        recorder = self.recorder
        begins = not self.own and not recorder.started and len(recorder.others) >= recorder.training
        if begins or goes_on or not self.own.keys().isdisjoint(trained):
            self.own.update(trained)
            return False
        recorder.folder.another_training(len(recorder.others))
        recorder.others.append(trained)
        self.others.append(trained)
        return True


def _variables(model):
    """The TensorFlow variables of a model or layer; none of one that was not built yet."""
    try:
        return [getattr(one, "_value", one) for one in model.variables]
    except ValueError:
        return []
