"""The Keras model that runs a model_fn of TensorFlow 1 code, as source text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """What the class has to do for one program.

    `trains_itself`: the train_op of the model_fn trains, no Keras optimizer. `late`: the driver makes the variables,
    before each use of the model. `restores`: the model_fn calls `tf.train.init_from_checkpoint`. `predicts`: the
    program does nothing else. `answers_batches`: it predicts, too, and `fit` makes several steps in one execution.
    `in_both`: a program that stays TensorFlow 1 imports the file. `shows_once`: the tasks of a cluster may make several
    steps in one execution, and compute what `fit` shows once for it (targets/many_steps.py).
    """

    trains_itself: bool = False
    late: bool = False
    restores: bool = False
    predicts: bool = False
    answers_batches: bool = False
    in_both: bool = False
    shows_once: bool = False


_HEAD = """\
class {name}(tf.keras.Model):
    \"\"\"Runs {code}; its variables become weights, under their TensorFlow 1 names.\"\"\"

"""
_INIT = """\
    def __init__(self, forward):
        super().__init__()
        self.forward = forward
"""
_INIT_RESULTS = """\
        self.mean_loss = tf.keras.metrics.Mean(name="loss")
        self.metrics_by_name = {}
"""
_METRICS = """\
    @property
    def metrics(self):
        return [self.mean_loss, *self.metrics_by_name.values()]

"""
_LOAD = """\
        for variable in self.variables:
            if variable.name in self.initial_values:
                reader, saved = self.initial_values[variable.name]
                variable.assign(reader.get_tensor(saved))
"""
_INIT_FROM_CHECKPOINT = """\
    def init_from_checkpoint(self, checkpoint, assignment_map):
        \"\"\"Notes for `make_variables` which values of a checkpoint the variables made so far begin with.

        The map is from names there to names here, or to variables; names that end with a slash are scopes.
        \"\"\"
        reader = tf.train.load_checkpoint(checkpoint)
        for variable in self.variables:
            name = variable.name.partition(":")[0]
            for saved, own in assignment_map.items():
                own = getattr(own, "name", own).partition(":")[0]
                if name == own or (own.endswith("/") and name.startswith(own.lstrip("/"))):
                    rest = name[len(own.lstrip("/")) :]
                    self.initial_values[variable.name] = reader, saved.lstrip("/") + rest

"""
_RUN = """\
    @tf.compat.v1.keras.utils.track_tf1_style_variables
    def run(self, features, labels, mode):
"""
# A decorator runs when the file is imported, and TensorFlow 1.15 has not got this one.
_RUN_IN_BOTH = """\
    def run(self, features, labels, mode):
        tracked = tf.compat.v1.keras.utils.track_tf1_style_variables({name}.run_tracked)
        return tracked(self, features, labels, mode)

    def run_tracked(self, features, labels, mode):
"""
_FILL_COLLECTIONS = """\
        keys = tf.compat.v1.GraphKeys
        tf.compat.v1.get_collection_ref(keys.TRAINABLE_VARIABLES).clear()
        tf.compat.v1.get_collection_ref(keys.GLOBAL_STEP)[:] = [self.optimizer.iterations]
"""
_FORWARD = """\
        # Entered anew, a scope counts anew: layers without a name get the same name in every call.
        with tf.compat.v1.variable_scope(tf.compat.v1.get_variable_scope(){}):
            {} self.forward(features, labels, mode)
"""
_METRICS_MADE = """\
        metrics = spec.get("metrics") or {}
        for name, (make, *_) in metrics.items():
            if name not in self.metrics_by_name:
                with tf.init_scope():
                    self.metrics_by_name[name] = make()
        return {**spec, "metrics": {name: values for name, (_, *values) in metrics.items()}}

"""
_COLLECTED = """\
    def collected(self, getter, *args, **kwargs):
        \"\"\"Makes or finds a variable, and has `tf.compat.v1.trainable_variables` know it.\"\"\"
        variable = getter(*args, **kwargs)
        known = tf.compat.v1.get_collection_ref(tf.compat.v1.GraphKeys.TRAINABLE_VARIABLES)
        if variable.trainable and not any(variable is other for other in known):
            known.append(variable)
        return variable

"""
_CALL = """\
    def call(self, features):
        return self.run(features, None, "infer")["predictions"]

"""
_TRAIN_STEP = """\
    def train_step(self, data):
        features, labels, _ = tf.keras.utils.unpack_x_y_sample_weight(data)
        with tf.GradientTape() as tape:
            loss = self.run(features, labels, "train")["loss"]
            share = loss / self.distribute_strategy.num_replicas_in_sync
        self.optimizer.minimize(share, self.trainable_variables, tape=tape)
        self.mean_loss.update_state(loss)
        return {"loss": self.mean_loss.result()}

"""
_OWN_TRAIN_STEP = """\
    def train_step(self, data):
        features, labels, _ = tf.keras.utils.unpack_x_y_sample_weight(data)
        spec = self.run(features, labels, "train")
        with tf.control_dependencies([spec["train_op"]]):
            self.mean_loss.update_state(spec["loss"])
        return {"loss": self.mean_loss.result()}

"""
_SHOWN = '        return {"loss": self.mean_loss.result()}\n'
_SHOWN_ONCE = """\
        return self.get_metrics_result()

    def get_metrics_result(self):
        return {"loss": self.mean_loss.result()}
"""
_TEST_STEP = """\
    def test_step(self, data):
        features, labels, _ = tf.keras.utils.unpack_x_y_sample_weight(data)
        spec = self.run(features, labels, "eval")
        self.mean_loss.update_state(spec["loss"])
        results = {"loss": self.mean_loss.result()}
        for name, values in spec["metrics"].items():
            self.metrics_by_name[name].update_state(*values)
            results[name] = self.metrics_by_name[name].result()
        return results

"""
_PREDICT_STEP = """\
    def predict_step(self, data):
        features, _, _ = tf.keras.utils.unpack_x_y_sample_weight(data)
        return self.call(features)
"""
_ANSWER = """
    @tf.function(autograph=False, reduce_retracing=True)
    def answer(self, features):
        return self.call(features)

    def predict_on_batch(self, x):
        \"\"\"Answers for one batch: the method of Keras would want one for each step of an execution.\"\"\"
        return tf.nest.map_structure(lambda value: value.numpy(), self.answer(x))
"""


def _make_variables(form: Form) -> str:
    """The method that makes the variables, by a trace of the model_fn that is not run."""
    if form.late:
        lines = [
            "def make_variables(self, dataset, mode):",
            '    """Makes the variables that the model has not got yet, for batches like those of a dataset."""',
            '    if "train" in self.made_for or mode in self.made_for:',
            "        return",
            "    self.made_for.add(mode)",
        ]
    else:
        lines = [
            f'def make_variables(self, dataset, modes=("{"infer" if form.predicts else "train"}",)):',
            '    """Makes the variables, for batches like those of a dataset, so that they can be trained or restored."""',  # noqa: E501
        ]
    lines.append("    features, labels, _ = tf.keras.utils.unpack_x_y_sample_weight(dataset.element_spec)")
    if form.late or form.trains_itself:
        lines += [
            "",
            "    def trace(features, labels, mode):",
            "        self.run(features, labels, mode)",
            "",
        ]
    traced = "trace" if form.late or form.trains_itself else "self.run"
    call = f"tf.function({traced}, autograph=False).get_concrete_function(features, labels, mode)"
    lines += [f"    {call}"] if form.late else ["    for mode in modes:", f"        {call}"]
    text = "".join(f"    {line}\n" if line else "\n" for line in lines)
    return text + (_LOAD if form.restores else "") + "\n"


def model_class(name: str, indent: str, form: Form) -> str:
    """The class, with the methods that a form needs."""
    code = "a model_fn and train_op of TensorFlow 1 code" if form.trains_itself else "a model_fn of TensorFlow 1 code"
    parts = [_HEAD.format(name=name, code=code), _INIT]
    parts += [] if form.predicts else [_INIT_RESULTS]
    if form.restores:
        parts.append("        self.initial_values = {}\n")
    if form.late:
        parts.append("        self.made_for = set()\n")
    parts += ["\n", *([] if form.predicts else [_METRICS]), _make_variables(form)]
    if form.restores:
        parts.append(_INIT_FROM_CHECKPOINT)
    parts.append(_RUN_IN_BOTH.format(name=name) if form.in_both else _RUN)
    getter = ", custom_getter=self.collected" if form.trains_itself else ""
    parts += [_FILL_COLLECTIONS] if form.trains_itself else []
    if form.predicts:
        parts += [_FORWARD.format(getter, "return"), "\n"]
    else:
        parts += [_FORWARD.format(getter, "spec ="), _METRICS_MADE]
    parts += [_COLLECTED] if form.trains_itself else []
    parts.append(_CALL)
    if not form.predicts:
        train_step = _OWN_TRAIN_STEP if form.trains_itself else _TRAIN_STEP
        parts += [train_step.replace(_SHOWN, _SHOWN_ONCE) if form.shows_once else train_step, _TEST_STEP]
    parts.append(_PREDICT_STEP)
    if form.answers_batches:
        parts.append(_ANSWER)
    return "".join(parts).replace("    ", indent)
