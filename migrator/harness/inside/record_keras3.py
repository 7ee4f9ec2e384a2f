"""Records a Keras 3 program by patches on Keras' own classes: record_keras.py, where Keras 3 is another program.

Every Keras 3 variable holds a TensorFlow variable, which is what is read, written and compared here. One process, or
the replicas of a MirroredStrategy: Keras 3 fits on no cluster.
"""

import functools
import importlib
import inspect

import even
import parts
import shuffles
import sources
from keras_patches import patch_batches, patch_places
from keras_variables import creation_order
from record_keras import KerasRecorder, patch_predictions, patch_train_on_batch
from tracing import watch_clipping

SLOTS = {
    "SGD": {"momentum": "momentum"},
    "Adagrad": {"accumulator": "accumulator"},
    "Adam": {"momentum": "first_moment", "velocity": "second_moment"},
    "Adamax": {"momentum": "first_moment", "norm": "second_moment"},
    "Adadelta": {"accumulated_grad": "accumulator", "accumulated_delta_var": "accum_update"},
    "RMSprop": {"velocity": "second_moment", "momentum": "momentum", "average_gradient": "first_moment"},
}
SLOTS["AdamW"] = SLOTS["Adam"]


def stored(variable):
    """The TensorFlow variable in a Keras variable; a TensorFlow variable as it is."""
    return variable._value if hasattr(variable, "path") else variable


class Keras3Recorder(KerasRecorder):
    """State of the recorder in one process that runs Keras 3."""

    slot_names = SLOTS

    def model_parts(self, model):
        """Parts of the model's weights in creation order, named by their paths."""
        trainable = {id(variable) for variable in model.trainable_variables}
        found, names = [], {}
        for variable in sorted(model.weights, key=lambda one: creation_order(stored(one))):
            name = variable.path
            names[name] = names.get(name, 0) + 1
            if names[name] > 1:
                name = "%s#%d" % (name, names[name])
            inner = stored(variable)
            shape = inner.shape.as_list()
            dtype = inner.dtype.base_dtype.name
            found.append(parts.Part(name, inner, [0] * len(shape), shape, shape, dtype, id(variable) in trainable))
        return found

    def part_of(self, variable):
        return super(Keras3Recorder, self).part_of(stored(variable))

    def saw_update(self, optimizer, pairs, rate=None):
        pairs = [(gradient, stored(variable)) for gradient, variable in pairs if gradient is not None]
        if getattr(self.tracing, "step", None) is not None:
            pairs = self.summed(pairs)
        super(Keras3Recorder, self).saw_update(optimizer, pairs, rate)

    def summed(self, pairs):
        """The gradients of all replicas: Keras 2 has added them up when it comes here, Keras 3 does so behind it."""
        context = self.tf.distribute.get_replica_context()
        if not pairs or context is None or context.num_replicas_in_sync == 1:
            return pairs
        gradients = context.all_reduce("SUM", [gradient for gradient, _ in pairs])
        return [(gradient, variable) for gradient, (_, variable) in zip(gradients, pairs)]

    def saw_normalization(self, layer, training):
        """A batch normalization at work in training moves two averages."""
        step = getattr(self.tracing, "step", None)
        if step is not None and training and layer.trainable:
            step.updates += 2

    def make_train_function(self, original, model, *args, **kwargs):
        original(model, *args, **kwargs)
        function = model.train_function
        if getattr(function, "counted", False) or not self.training_depth:
            return

        def counted(iterator):
            self.take_point(self.steps_done, model.optimizer if self.updating is None else self.updating)
            result = function(iterator)
            self.after_step(model)
            return result

        counted.counted = True
        model.train_function = counted

    def evaluate(self, original, signature, model, *args, **kwargs):
        """Keras 3 names its results only where it is asked for a dict of them."""
        bound = signature.bind(model, *args, **kwargs)
        wanted = bound.arguments.get("return_dict", False)
        bound.arguments["return_dict"] = True
        results = super(Keras3Recorder, self).evaluate(original, signature, *bound.args, **bound.kwargs)
        return results if wanted else model._flatten_metrics_in_order(results)

    def evaluate_others(self, original, bound, model, batches_of=None):
        bound.arguments.pop("kwargs", None)  # an iterator that fit keeps for its own evaluations
        return super(Keras3Recorder, self).evaluate_others(original, bound, model, batches_of)

    def is_creator(self, data):
        return False


def install(plan, folder):
    tf = importlib.import_module("tensorflow")
    recorder = Keras3Recorder(tf, plan, folder)
    model = importlib.import_module("keras.src.models.model").Model
    trainer = importlib.import_module("keras.src.backend.tensorflow.trainer").TensorFlowTrainer
    callbacks = importlib.import_module("keras.src.callbacks")
    recorder.dropout = importlib.import_module("keras.src.layers").Dropout
    recorder.callback_list = callbacks.CallbackList
    recorder.keras_version = importlib.import_module("keras").__version__

    signature = inspect.signature(trainer.fit)
    parts.wrap(
        trainer,
        "fit",
        lambda original, self, *args, **kwargs: recorder.fit(original, signature, self, *args, **kwargs),
    )
    patch_train_on_batch(trainer, recorder)
    parts.wrap(trainer, "make_train_function", recorder.make_train_function)
    if plan.get("evaluate", True):
        evaluation = inspect.signature(trainer.evaluate)
        parts.wrap(
            trainer,
            "evaluate",
            lambda original, self, *args, **kwargs: recorder.evaluate(original, evaluation, self, *args, **kwargs),
        )
    shuffles.install(tf)
    patch_predictions(trainer, recorder)
    _patch_compile(recorder)
    _patch_layers(recorder)
    _patch_sources(tf, recorder)
    watch_clipping(recorder.clipping)
    _patch_gradients(tf, recorder)
    _patch_random(tf, plan, recorder)
    patch_places(tf, model, callbacks, recorder)
    return recorder


def _patch_random(tf, plan, recorder):
    """Masks and noise: what every layer asks Keras' backend for where it trains, and what programs draw themselves."""
    drawn = importlib.import_module("keras.src.backend.tensorflow.random")

    def dropout(original, inputs, rate, noise_shape=None, seed=None):
        return recorder.dropout_function(lambda: original(inputs, rate, noise_shape, seed), inputs, rate, noise_shape)

    parts.wrap(drawn, "dropout", dropout)
    even.watch_dropouts(recorder.dropout_function)
    if not plan.get("pin_dropout", True):
        return

    def at_work():
        return getattr(recorder.tracing, "step", None) is not None

    even.install(tf, at_work, recorder.saw_draw, recorder.place, alone=plan["task"]["type"] == "local")


def _patch_compile(recorder):
    """Which line compiles; and one call of the train function is one step."""

    def compile_model(original, self, *args, **kwargs):
        recorder.compiled[id(self)] = sources.user_line(self, "compile")
        kwargs.pop("steps_per_execution", None)
        return original(self, *args, **kwargs)

    parts.wrap(importlib.import_module("keras.src.trainers.trainer").Trainer, "compile", compile_model)


def _patch_layers(recorder):
    """The call of every layer, and the batch normalizations that move their averages."""
    layers = importlib.import_module("keras.src.layers")
    parts.wrap(layers.Layer, "__call__", recorder.call_layer)

    def normalize(original, self, inputs, training=None, *args, **kwargs):
        recorder.saw_normalization(self, training)
        return original(self, inputs, training, *args, **kwargs)

    parts.wrap(layers.BatchNormalization, "call", normalize)


def _patch_sources(tf, recorder):
    """The user's lines that make layers, optimizers and batches."""
    layer = importlib.import_module("keras.src.layers").Layer
    make = layer.__new__

    @functools.wraps(make)
    def make_layer(cls, *args, **kwargs):
        made = make(cls, *args, **kwargs)
        object.__setattr__(made, sources.MARK, sources.user_line())
        return made

    layer.__new__ = staticmethod(make_layer)
    optimizer = importlib.import_module("keras.src.optimizers.base_optimizer").BaseOptimizer

    def make_optimizer(original, self, *args, **kwargs):
        object.__setattr__(self, sources.MARK, sources.user_line(self, "__init__"))
        return original(self, *args, **kwargs)

    parts.wrap(optimizer, "__init__", make_optimizer)

    patch_batches(tf)


def _patch_gradients(tf, recorder):
    optimizer = importlib.import_module("keras.src.backend.tensorflow.optimizer").TFOptimizer

    def gradient(original, self, target, *args, **kwargs):
        recorder.saw_gradient_call(target)
        return original(self, target, *args, **kwargs)

    parts.wrap(tf.GradientTape, "gradient", gradient)

    def remember_slot(original, self, reference_variable, name=None, *args, **kwargs):
        variable = original(self, reference_variable, name, *args, **kwargs)
        recorder.slots.setdefault(id(self), []).append((stored(reference_variable), name, stored(variable)))
        return variable

    parts.wrap(optimizer, "add_variable_from_reference", remember_slot)

    def update(original, self, gradients, variables, learning_rate):
        rate = learning_rate
        if recorder.factor != 1.0:
            rate = tf.convert_to_tensor(learning_rate) * recorder.factor
        recorder.saw_update(self, list(zip(gradients, variables)), rate)
        return original(self, gradients, variables, rate)

    parts.wrap(optimizer, "_backend_update_step", update)
