"""The object that takes the place of an Estimator which goes from one function to another, as source text."""

from __future__ import annotations

import textwrap

from migrator.targets import setup

_CLASS = '''\
class {name}:
    """A Keras model and its folder of checkpoints: all that is done with it begins with the newest of these."""

    def __init__(self, make_model, *, model_dir=None, params=None, save_steps=None, seed=None):
        self.make_model = make_model
        self.model_dir = model_dir or tempfile.mkdtemp()
        self.params = copy.deepcopy(params or {{}})
        self.save_steps = save_steps
        self.seed = seed

    def train(self, input_fn, *, steps=None, max_steps=None, callbacks=()):
        """Trains for `steps` batches, or until there were `max_steps` in all; else on all that `input_fn` gives."""
        dataset, {made} = self._begin(input_fn)
        if max_steps is not None:
            steps = max_steps - int(model.optimizer.iterations.numpy())
        if steps is None or steps > 0:
            path = os.path.join(self.model_dir, "ckpt")
            saves = [tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True)]
            if dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY:
                saves.insert(0, {counted}())
            if self.save_steps:
                saves.append(
                    tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True, save_freq=self.save_steps)
                )
            dataset, steps = self._first(dataset, steps)
            model.fit(dataset, steps_per_epoch=steps, callbacks=[*saves, *callbacks])
        return self

    def evaluate(self, input_fn, *, steps=None):
        """Returns the loss, the metrics and the step of the newest checkpoint."""
        dataset, {made} = self._begin(input_fn)
        dataset, steps = self._first(dataset, steps)
        results = model.evaluate(dataset, steps=steps, return_dict=True)
        return dict(results, global_step=int(model.optimizer.iterations.numpy()))
{both}{predict}
    def _begin(self, input_fn):
        """Returns the data, and what `make_model` makes for them, in the state of the newest checkpoint."""
        if self.seed is not None:
            tf.random.set_seed(self.seed)
        dataset = input_fn({given})
        spec = dataset.element_spec
        inputs = tf.nest.map_structure(
            lambda one: tf.keras.Input(one.shape[1:], dtype=one.dtype),
            spec[0] if isinstance(spec, tuple) else spec,
        )
        {made} = self.make_model({arguments})
        checkpoint = tf.train.latest_checkpoint(self.model_dir)
        if checkpoint and not os.path.basename(checkpoint).startswith("model.ckpt"):  # an Estimator's
{load}
        return dataset, {made}

{asked}    @staticmethod
    def _first(dataset, steps):
        """Returns so many batches of a dataset, and what `fit` is told; data without an end stay whole."""
        steps = None if steps is None else math.ceil(steps)
        if steps is None or dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            return dataset, steps
        return dataset.take(steps), None
'''
_BOTH = '''
    def train_and_evaluate(self, train_spec, eval_spec):
        """Trains, and evaluates after every `save_steps` steps and at the end; the specs are arguments for both."""
        results, evaluated = None, False

        def evaluate():
            nonlocal results, evaluated
            results, evaluated = self.evaluate(**{"steps": 100, **eval_spec}), True

        def on_batch(batch, logs):
            nonlocal evaluated
            evaluated = False
            if self.save_steps and (batch + 1) % self.save_steps == 0:
                evaluate()

        callback = tf.keras.callbacks.LambdaCallback(
            on_train_batch_end=on_batch,
            on_train_end=lambda logs: evaluated or evaluate(),
        )
        self.train(**{**train_spec, "callbacks": [callback, *train_spec.get("callbacks", ())]})
        return results, [] if evaluated else None
'''
_ASKED = '''\
    def _asked(self, input_fn):
        """Returns the `params` for an input function that takes some."""
        takes = "params" in inspect.signature(input_fn).parameters
        return {"params": copy.deepcopy(self.params)} if takes else {}

'''
_PREDICT = '''
    def predict(self, input_fn):
        """Yields the predictions for one example after the other."""
        dataset, _, predictor = self._begin(input_fn)
        for batch in dataset:
            features = batch[0] if isinstance(batch, tuple) else batch
            predictions = predictor.predict_on_batch(features)
{each}
'''


def keras_estimator(
    name: str,
    counted: str,
    indent: str,
    predicts: bool,
    of_dicts: bool,
    takes_params: bool,
    rates: str,
    both: bool,
    passes_params: bool,
) -> str:
    """The class that trains, evaluates and predicts with a Keras model as an Estimator does, in one process.

    Each call makes the model anew and restores the newest checkpoint of the folder, as an Estimator does: several
    objects may have one folder, and what the model is made of may change in between. What follows the data is named:
    arguments that an Estimator had and this class has not are errors. `counted` is the name of setup.counted_steps.
    """
    before, after = setup.rates_kept("model", rates) if rates else ([], [])
    load = "\n".join([*before, "model.load_weights(checkpoint).expect_partial()", *after])
    each = "\n".join(line[4:] for line in setup.one_by_one(of_dicts, "    "))
    text = _CLASS.format(
        name=name,
        counted=counted,
        made="model, predictor" if predicts else "model",
        both=_BOTH if both else "",
        predict=_PREDICT.format(each=textwrap.indent(each, "    " * 2)) if predicts else "",
        arguments="inputs, params=copy.deepcopy(self.params)" if takes_params else "inputs",
        given="**self._asked(input_fn)" if passes_params else "",
        asked=_ASKED if passes_params else "",
        load=textwrap.indent(load, "    " * 3),
    )
    return text.replace("    ", indent)
