"""Records what a program predicts, example by example: of its own weights, and of those that the plan gives."""

import itertools

import numpy as np
import parts

#: So many examples of one call are kept, and so many batches of a data set read for other weights than its own.
EXAMPLES, BATCHES = 128, 4


def named(outputs, path=""):
    """{path: array} of what a model puts out: "" for one tensor, keys and positions of nested ones joined by "/"."""
    if isinstance(outputs, dict):
        pairs = [(str(key), value) for key, value in outputs.items()]
    elif isinstance(outputs, (list, tuple)):
        pairs = [(str(place), value) for place, value in enumerate(outputs)]
    else:
        return {path: np.asarray(outputs)}
    found = {}
    for key, value in pairs:
        found.update(named(value, path + "/" + key if path else key))
    return found


def together(batches):
    """{path: examples} of the outputs of several batches, those that every batch has; strings as bytes."""
    found = {}
    for path in batches[0] if batches else {}:
        values = [batch[path] for batch in batches if path in batch]
        alike = len({value.shape[1:] for value in values}) == 1 and all(value.ndim for value in values)
        if len(values) == len(batches) and alike:
            whole = np.concatenate(values)[:EXAMPLES]
            found[path] = whole.astype("S") if whole.dtype.kind in "OU" else whole
    return found


class Predictions(object):
    """Numbers the calls that predict in one process, and writes what each of them predicted."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def write(self, number, step, outputs, **more):
        """`outputs`: {"own", "same", "control", "nudged1" ...: batches of {path: array}}."""
        arrays = {
            "%s|%s" % (what, path): value
            for what, batches in outputs.items()
            for path, value in together(batches).items()
        }
        parts.write_arrays(self.folder.file("predictions", "%04d.npz" % number), arrays)
        self.folder.write_json("predictions/%04d.json" % number, dict(more, step=step))

    def watched(self, made, step, others, single):
        """The predictions of an Estimator's generator `made`, kept while the program takes them.

        `others(number, take, whole)` gives what is predicted with other weights, by name, and what is to be said of
        it; `take(generator)` is its first examples, also those that the program itself did not take: then it is not
        `whole`, and "own" may be among the others, too. `single`: each prediction is that of one example, not of a
        batch.
        """
        self.count += 1
        number, kept = self.count, []

        def batch_of(prediction):
            found = named(prediction)
            return {path: value[np.newaxis] for path, value in found.items()} if single else found

        def take(generator):
            most = EXAMPLES if single else max(BATCHES, len(kept))
            return [batch_of(prediction) for prediction in itertools.islice(generator, most)]

        whole = False
        try:
            for prediction in made:
                if len(kept) < EXAMPLES:
                    kept.append(batch_of(prediction))
                yield prediction
            whole = True
        finally:
            made.close()
            if kept:
                self.write(number, step, {"own": kept})
                outputs, notes = others(number, take, whole)
                outputs.setdefault("own", kept)
                self.write(number, step, outputs, **notes)

    def chosen(self, plan, number):
        """The entry of the plan's weights that a program's call with this number is to predict with; None for none."""
        given = plan.get("predict_weights") or []
        return given[min(number, len(given)) - 1] if given else None


class KerasPredictions(Predictions):
    """The calls of `Model.predict`, and those of `predict_on_batch` that follow each other on one model."""

    def __init__(self, recorder):
        super(KerasPredictions, self).__init__(recorder.folder)
        self.recorder = recorder
        self.depth = 0
        self.last = None  # (model, steps trained, outputs) of the call that further batches belong to

    def wanted(self, model):
        recorder = self.recorder
        busy = self.depth or recorder.training_depth or recorder.coordinated or not recorder.folder.leads()
        return recorder.plan.get("evaluate", True) and not busy and not recorder.is_unrecorded(model)

    def predict(self, original, signature, model, *args, **kwargs):
        if not self.wanted(model):
            return original(model, *args, **kwargs)
        bound = signature.bind(model, *args, **kwargs)
        self.last = None
        self.count += 1
        outputs, notes = self.others(model, lambda: original(model, **self.quiet(bound)), bound.arguments["x"])
        results = self.by_itself(lambda: original(model, *args, **kwargs))
        outputs["own"] = [named(results)]
        self.write(self.count, self.recorder.model_step(model), outputs, **notes)
        return results

    def predict_on_batch(self, original, model, x, *args, **kwargs):
        if not self.wanted(model):
            return original(model, x, *args, **kwargs)
        if self.last is None or self.last[0] is not model or self.last[1] != self.recorder.steps_done:
            self.count += 1
            self.last = (model, self.recorder.steps_done, {}, {})
        _, _, kept, notes = self.last
        if sum(len(next(iter(batch.values()))) for batch in kept.get("own", []) if batch) >= EXAMPLES:
            return original(model, x, *args, **kwargs)
        outputs, more = self.others(model, lambda: original(model, x), x)
        notes.update(more)
        results = self.by_itself(lambda: original(model, x, *args, **kwargs))
        outputs["own"] = [named(results)]
        for what, batches in outputs.items():
            kept.setdefault(what, []).extend(batches)
        self.write(self.count, self.recorder.model_step(model), kept, **notes)
        return results

    def by_itself(self, run):
        self.depth += 1
        try:
            return run()
        finally:
            self.depth -= 1

    def quiet(self, bound):
        """The arguments of a prediction that is not the program's own: a few examples, and nobody told."""
        tf = self.recorder.tf
        given = dict(bound.arguments)
        given.pop("self")
        given.update(given.pop("kwargs", {}), verbose=0, callbacks=None)
        x = given["x"]
        if isinstance(x, tf.data.Dataset):
            given.update(x=x.take(BATCHES), steps=None)
        elif given.get("steps") is None:
            given["x"] = tf.nest.map_structure(lambda one: one[:EXAMPLES], x)
        return given

    def others(self, model, run, x):
        """What the model predicts with other weights than its own, which it keeps: of the plan, and initial ones."""
        recorder = self.recorder
        chosen = self.chosen(recorder.plan, self.count)
        start = recorder.folder.initial_file() if recorder.plan.get("evaluation_control") else None
        if chosen is None and start is None:
            return {}, {}
        if hasattr(x, "__next__"):
            return {}, {"note": "its data can be read only once"}
        weights = recorder.weights_in(model)
        stored = [recorder.copies(part.variable) for part in weights]
        own = [[recorder.tf.convert_to_tensor(one).numpy() for one in several] for several in stored]
        outputs, notes = {}, {}
        try:
            for what, path in (("same", chosen and chosen["path"]), ("control", start)):
                if path is not None and recorder.take_weights(weights, path, notes):
                    outputs[what] = [named(self.by_itself(run))]
                    if what == "same":
                        notes["weights_step"] = chosen["step"]
        finally:
            for several, values in zip(stored, own):
                for one, value in zip(several, values):
                    one.assign(value)
        return outputs, notes
