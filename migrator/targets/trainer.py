"""The class that stands for an Estimator which the program hands around: it makes its Keras model when it gets data."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.emit.layout import call
from migrator.targets.setup import rates_kept, saving


@dataclass(frozen=True)
class TrainerShape:
    """What the class has to do for a program.

    `takes_params` says that the model_fn has params, `tells` that input functions are told params or the mode,
    `labelled` that all datasets have labels, `of_dicts` that predictions are dicts, `of_batches` that they are taken
    batch by batch. A `mapped` model is made from a dataset (a `late` one gets its variables before each use) and
    predicts itself. `checkpoint_paths` says that evaluations or predictions name a checkpoint, `watched` are the
    methods that are given callbacks, `ends` says that one of these may end a prediction, `serves` are the names of the
    signatures of exports (None: no exports; empty: they differ). `asks_step` says that the step of the newest
    checkpoint is asked for, `saves` that the program says after how many steps a training writes checkpoints, `rates`
    whose learning rates a checkpoint leaves as they are (setup.rates_kept).
    """

    trains: bool
    evaluates: bool
    predicts: bool
    has_predictor: bool
    of_dicts: bool
    mapped: bool
    late: bool
    takes_params: bool
    has_params: bool
    tells: bool
    has_seed: bool
    has_model_dir: bool
    asks_checkpoint: bool
    asks_step: bool
    checkpoint_paths: bool
    eval_dir: bool
    watched: frozenset[str]
    ends: bool
    serves: tuple[str, ...] | None
    saves: bool = False
    of_batches: bool = False
    rates: str = ""


def trainer(name: str, make_inputs: str, counted: str, shape: TrainerShape, indent: str) -> str:
    """The class, as source text; `counted` is the name of the callback that keeps the number of steps."""
    keeps = ", with its checkpoints in `model_dir`" if shape.has_model_dir else ""
    parts = [f'class {name}:\n    """A Keras model that is made for the first data it gets{keeps}."""\n']
    parts.append(_init(shape))
    if shape.tells:
        parts.append(_DATASET)
    if shape.has_model_dir:
        parts.append(_LATEST)
    if shape.asks_step:
        parts.append(_LATEST_STEP)
    if shape.eval_dir:
        parts.append(_EVAL_DIR)
    parts.append(_prepare(shape, make_inputs))
    if shape.trains:
        parts.append(_train(shape, counted))
    if shape.evaluates:
        parts.append(_evaluate(shape))
    if shape.predicts:
        parts.append(_predict(shape))
    if shape.serves is not None:
        parts.append(_export(shape))
    return "\n".join(parts).replace("    ", indent)


def _init(shape: TrainerShape) -> str:
    parameters = ["self", "model_fn"]
    lines = ["self.model_fn = model_fn"]
    if shape.has_model_dir:
        parameters.append("model_dir=None")
        lines.append("self.model_dir = model_dir")
    if shape.has_params:
        parameters.append("params=None")
        lines.append("self.params = copy.deepcopy(params or {})  # what changes later does not change the model")
    if shape.has_seed:
        parameters.append("seed=None")
        lines.append("self.seed = seed")
    if shape.saves:
        parameters.append("save_every=None")
        lines.append("self.save_every = save_every")
    lines.append("self.model = None")
    body = "".join(f"        {line}\n" for line in lines)
    return f"    def __init__({', '.join(parameters)}):\n{body}"


_DATASET = '''\
    def dataset(self, input_fn, mode):
        """The dataset of an input function, which is told the params and the mode when it has parameters for them."""
        given = {"params": self.params, "mode": mode}
        asked = inspect.signature(input_fn).parameters
        return input_fn(**{name: value for name, value in given.items() if name in asked})
'''

_LATEST = """\
    def latest_checkpoint(self):
        path = tf.train.latest_checkpoint(self.model_dir) if self.model_dir else None
        return None if path and os.path.basename(path).startswith("model.ckpt") else path  # an Estimator's
"""

_LATEST_STEP = """\
    def latest_step(self):
        \"\"\"The step of the newest checkpoint; 0 when there is none.\"\"\"
        path = self.latest_checkpoint()
        return tf.train.load_variable(path, "optimizer/_iterations/.ATTRIBUTES/VARIABLE_VALUE") if path else 0
"""

_EVAL_DIR = """\
    def eval_dir(self, name=None):
        return os.path.join(self.model_dir, f"eval_{name}" if name else "eval")
"""


def _prepare(shape: TrainerShape, make_inputs: str) -> str:
    path = ", checkpoint_path=None" if shape.checkpoint_paths else ""
    what = "and goes on from the newest checkpoint" if shape.has_model_dir else "when there is none"
    mode = ", mode" if shape.late else ""
    made = "model and its variables" if shape.late else "model"
    head = f"    def prepare(self, dataset{mode}{path}):"
    lines = [head, f'        """Makes the {made} {what}; returns the dataset."""']
    lines.append("        if self.model is None:")
    if shape.has_seed:
        lines += ["            if self.seed is not None:", "                tf.random.set_seed(self.seed)"]
    target = "self.model, self.predictor" if shape.has_predictor and not shape.mapped else "self.model"
    arguments = [] if shape.late else ["dataset" if shape.mapped else f"{make_inputs}(dataset)"]
    if shape.takes_params:
        arguments.append("params=self.params")
    lines.append("            " + call(f"{target} = self.model_fn", arguments, "    ", 3))
    if shape.late:
        lines.append("        self.model.make_variables(dataset, mode)")
    if shape.has_model_dir or shape.checkpoint_paths:
        latest = "self.latest_checkpoint()" if shape.has_model_dir else None
        known = " or ".join(p for p in ("checkpoint_path" if shape.checkpoint_paths else None, latest) if p)
        before, after = rates_kept("self.model", shape.rates) if shape.rates and shape.trains else ([], [])
        loads = [*before, "self.model.load_weights(checkpoint)", *after]
        lines += [f"        checkpoint = {known}", "        if checkpoint:", *(f"            {line}" for line in loads)]
    lines.append("        return dataset")
    return "\n".join(lines) + "\n"


def _data(shape: TrainerShape, mode: str, path: bool = True) -> str:
    made = f'self.dataset(input_fn, "{mode}")' if shape.tells else "input_fn()"
    given = f', "{mode}"' if shape.late else ""
    return f"self.prepare({made}{given}{', checkpoint_path' if shape.checkpoint_paths and path else ''})"


def _train(shape: TrainerShape, counted: str) -> str:
    watched = "train" in shape.watched
    lines = [
        f"    def train(self, input_fn, steps=None, max_steps=None{', callbacks=()' if watched else ''}):",
        f"        dataset = {_data(shape, 'train', False)}",
        "        if max_steps is not None:",
        "            steps = max_steps - self.model.optimizer.iterations.numpy()",
        "            if steps <= 0:",
        "                return self",
    ]
    fed = ["dataset if steps is None else dataset.take(steps)"]
    if shape.has_model_dir:
        lines += [
            f"        callbacks = [{counted}(){', *callbacks' if watched else ''}]",
            "        if self.model_dir:",
            '            path = os.path.join(self.model_dir, "ckpt")',
            "            callbacks.append(tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True))",
        ]
        if shape.saves:
            arguments = ["path", "save_weights_only=True", "save_freq=self.save_every"]
            saver = call("saver = tf.keras.callbacks.ModelCheckpoint", arguments, "    ", 4)
            lines += ["            if self.save_every:", f"                {saver}"]
            lines.append("                callbacks.insert(0, saver)  # before a callback that may end the training")
        fed.append("callbacks=callbacks")
    else:
        fed.append(f"callbacks=[{counted}(){', *callbacks' if watched else ''}]")
    lines += ["        " + call("self.model.fit", fed, "    ", 2), "        return self"]
    return "\n".join(lines) + "\n"


def _evaluate(shape: TrainerShape) -> str:
    path = ", checkpoint_path=None" if shape.checkpoint_paths else ""
    watched = "evaluate" in shape.watched
    arguments = ["dataset if steps is None else dataset.take(steps)"]
    arguments += ["callbacks=[*callbacks]"] if watched else []
    arguments.append("return_dict=True")
    evaluate = call("results = self.model.evaluate", arguments, "    ", 2)
    return (
        f"    def evaluate(self, input_fn, steps=None{path}{', callbacks=()' if watched else ''}):\n"
        f"        dataset = {_data(shape, 'eval')}\n"
        f"        {evaluate}\n"
        "        return dict(results, global_step=self.model.optimizer.iterations.numpy())\n"
    )


def _export(shape: TrainerShape) -> str:
    model = "self.model" if shape.mapped else "self.predictor"
    return (
        "    def export_saved_model(self, folder, serving):\n"
        '        """Writes what `serving` makes of the predictions to a new folder in `folder`; returns its path."""\n'
        f"{saving(model, shape.serves or (), '    ', 2)}\n"
        "        return path.encode()\n"
    )


def _predict(shape: TrainerShape) -> str:
    path = ", checkpoint_path=None" if shape.checkpoint_paths else ""
    model = "self.model" if shape.mapped else "self.predictor"
    watched = "predict" in shape.watched
    lines = [
        f"    def predict(self, input_fn{path}{', callbacks=()' if watched else ''}):",
        '        """Yields the predictions for one example after the other."""',
        f"        for batch in {_data(shape, 'infer')}:",
        "            features = batch[0] if isinstance(batch, tuple) else batch",
        f"            predictions = {model}.predict_on_batch(features)",
    ]
    if watched:
        lines[2:3] = [
            f"        dataset = {_data(shape, 'infer')}",
            f"        callbacks = tf.keras.callbacks.CallbackList(callbacks, model={model})",
            "        callbacks.on_predict_begin()",
            "        for step, batch in enumerate(dataset):",
            "            callbacks.on_predict_batch_begin(step)",
        ]
        lines.append("            callbacks.on_predict_batch_end(step)")
    if shape.of_batches:
        lines[1] = '        """Yields the predictions for one batch after the other."""'
        lines.append("            yield predictions")
    elif shape.of_dicts:
        lines += [
            "            for values in zip(*predictions.values()):",
            "                yield dict(zip(predictions, values))",
        ]
    else:
        lines.append("            yield from predictions")
    if shape.ends:
        lines[4:4] = [f"        {model}.stop_training = False  # what a callback sets to end a prediction, too"]
        lines += [f"            if {model}.stop_training:", "                break"]
    if watched:
        lines.append("        callbacks.on_predict_end()")
    return "\n".join(lines) + "\n"
