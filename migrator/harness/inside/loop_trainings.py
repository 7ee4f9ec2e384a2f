"""The trainings of a program that trains one model after another in loops of its own, as the folds of a
cross-validation: one of them is recorded in a run, and the plan's ``training`` says which.

What a step trains tells which training it is of. Where two networks are trained in turns, as those of a GAN, this would
take them apart; so it counts only where the plan says that the original trains several models (``apart``).
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

    def is_other(self, variables, goes_on):
        """Whether a step that trains these variables is of another training than the recorded one; if it ``goes_on``
        with the batch of the step before it, it is of the same.
        """
        if not self.apart or not variables:
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
