"""What earlier trainings of a script have left behind, and which weights of a later one begin with it.

Weights are known by digests of their values: nothing of a model is kept, however large it is. Two that were drawn
alike, from one seed, have a value in common that no training has made; so only what a training has changed, and what
is no constant, tells where other weights come from.
"""

import hashlib

import numpy as np
from capture import whole_name


def _digest(value):
    """The digest of an array of floats; None of what many others might hold, too."""
    value = np.ascontiguousarray(value).reshape(-1)
    if value.dtype.kind != "f" or not value.size:
        return None
    telling = (value != value[0]).any() if value.size > 1 else value[0] != np.round(value[0])
    return hashlib.sha1(value.view(np.uint8)).hexdigest() if telling else None


class Origins(object):
    """What earlier trainings of this process left, by their places among its trainings."""

    def __init__(self):
        self.begun = {}  # place -> {name: digest} of what a training began with
        self.ended = {}  # place -> {name: digest} of what its last call left
        self.later = {}  # place -> what tells the values that it left, where its calls are single steps

    def begins(self, place, values):
        """A call that trains, of the training at this place, begins with these values."""
        self.begun.setdefault(place, {name: _digest(value) for name, value in values.items()})

    def ends(self, place, values):
        """Such a call has left these values."""
        self.ended[place] = {name: _digest(value) for name, value in values.items()}

    def found(self, values):
        """The weights among ``values`` that an earlier training left: {"known": [[place, names]], "of": {name: [[place,
        name there]]}}; None where no earlier one is known.
        """
        for place, left in self.later.items():
            self.ends(place, left())
        self.later = {}
        if not self.ended:
            return None
        places = {}
        known = []
        for place, left in sorted(self.ended.items()):
            begun = self.begun.get(place, {})
            changed = {name: one for name, one in left.items() if one is not None and begun.get(name) != one}
            known.append([place, sorted(changed)])
            for name, digest in changed.items():
                places.setdefault(digest, []).append([place, name])
        digests = {name: _digest(value) for name, value in values.items()}
        return {"known": known, "of": {name: places[one] for name, one in digests.items() if one in places}}

    def hook(self, tf, place):
        """The session hook of a training that is not recorded."""
        origins = self

        class Ends(tf.train.SessionRunHook):
            def begin(self):
                self.variables = [one for one in tf.global_variables() if one.dtype.is_floating]

            def values(self, session):
                found = {}
                for variable, value in zip(self.variables, session.run(self.variables)):
                    found.setdefault(whole_name(variable), []).append(value.reshape(-1))
                return {name: np.concatenate(pieces) for name, pieces in found.items()}

            def after_create_session(self, session, coord):
                origins.begins(place, self.values(session))

            def end(self, session):
                origins.ends(place, self.values(session))

        return Ends()
