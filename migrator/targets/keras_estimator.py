"""The object that takes the place of an Estimator which goes from one function to another, as source text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrator.targets import setup
from migrator.targets.plan import OF_ESTIMATORS


@dataclass(frozen=True)
class ObjectShape:
    """What the class has to do for the Estimators of a file.

    - `counted`: the name of setup.counted_steps
    - `predicts`: the function that makes the model also makes one that predicts, `of_dicts` that this answers dicts
    - `takes_params`, `passes_params`: that function, and input functions, take the params
    - `rates`: whose learning rates a checkpoint leaves as they are, see setup.rates_kept
    - `both`: it trains and evaluates
    - `make_strategy`: the name of the function that makes the strategy of the cluster in TF_CONFIG ("": one device)
    - `exports`, `signatures`: it writes SavedModels, with these signatures, see setup.saving
    - `exporters`: those of train_and_evaluate do
    - `asks_checkpoint`: the path of the newest checkpoint is asked for
    - `chooses`: evaluations or predictions are of a checkpoint that is named
    - `of_keys`, `whole`: predictions may be some only, and those of whole batches
    - `trains`: it is trained; else a checkpoint of an Estimator in its folder is an error
    - `on_demand`: Python code may make the examples that are predicted from, see setup.without_prefetch
    """

    counted: str
    predicts: bool
    of_dicts: bool
    takes_params: bool
    rates: str
    both: bool
    passes_params: bool
    make_strategy: str = ""
    exports: bool = False
    signatures: Sequence[str] = ()
    exporters: bool = False
    asks_checkpoint: bool = False
    chooses: bool = False
    of_keys: bool = False
    whole: bool = False
    on_demand: bool = False
    trains: bool = True

    @property
    def numbered(self) -> bool:
        """Whether somebody may have the paths of checkpoints: each then has the name of its step."""
        return self.asks_checkpoint or self.chooses


def keras_estimator(name: str, indent: str, shape: ObjectShape) -> str:
    """The class that trains, evaluates and predicts with a Keras model as an Estimator does.

    Each call makes the model anew and restores the newest checkpoint of the folder, as an Estimator does: several
    objects may have one folder, and what the model is made of may change in between. What follows the data is named:
    arguments that an Estimator had and this class has not are errors. A cluster trains in train_and_evaluate alone.
    """
    parts = [_head(name, shape), _train(shape), _evaluate(shape)]
    parts += [_both(shape)] if shape.both else []
    parts += [_predict(shape)] if shape.predicts else []
    parts += [_export(shape)] if shape.exports else []
    parts += [_ASKS_CHECKPOINT] if shape.asks_checkpoint else []
    parts += [_begin(shape), _make(shape)]
    parts += [_ASKED] if shape.passes_params else []
    return "\n".join([*parts, _FIRST]).replace("    ", indent)


_DOC = "A Keras model and its folder of checkpoints: all that is done with it begins with the newest of these."
_ESTIMATORS = f"{{checkpoint}} {OF_ESTIMATORS}"


def _head(name: str, shape: ObjectShape) -> str:
    lines = [
        f"class {name}:",
        f'    """{_DOC}"""',
        "",
        "    def __init__(self, make_model, *, model_dir=None, params=None, save_steps=None, seed=None):",
        "        self.make_model = make_model",
        "        self.model_dir = model_dir or tempfile.mkdtemp()",
        "        self.params = copy.deepcopy(params or {})",
        "        self.save_steps = save_steps",
        "        self.seed = seed",
    ]
    if shape.make_strategy:
        lines += [
            "        self.resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()",
            f"        self.strategy = {shape.make_strategy}(self.resolver)",
        ]
    return "\n".join(lines) + "\n"


def _given(shape: ObjectShape) -> str:
    return "**self._asked(input_fn)" if shape.passes_params else ""


def _made(shape: ObjectShape) -> str:
    return "model, predictor" if shape.predicts else "model"


def _train(shape: ObjectShape) -> str:
    begun = [f"dataset, {_made(shape)} = self._begin(input_fn)"]
    if shape.make_strategy:
        begun = ["with self.strategy.scope():", f"    {begun[0]}"]
    counts = [
        "if dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY:",
        f"    saves.insert(0, {shape.counted}())",
    ]
    local = [
        'path = os.path.join(self.model_dir, "ckpt")',
        "saves = [tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True)]",
        *counts,
        "if self.save_steps:",
        "    saves.append(",
        "        tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True, save_freq=self.save_steps)",
        "    )",
    ]
    if shape.numbered:  # who has the path of a checkpoint finds there what was saved then
        local = [
            "",
            "def save(*_):",
            '    path = os.path.join(self.model_dir, f"ckpt-{int(model.optimizer.iterations.numpy())}")',
            "    model.save_weights(path)",
            "",
            "def on_batch(batch, logs):",
            "    if self.save_steps and (batch + 1) % self.save_steps == 0:",
            "        save()",
            "",
            "saves = [tf.keras.callbacks.LambdaCallback(on_train_batch_end=on_batch, on_epoch_end=save)]",
            *counts,
        ]
    local += [
        "dataset, steps = self._first(dataset, steps)",
        "model.fit(dataset, steps_per_epoch=steps, callbacks=[*saves, *callbacks])",
    ]
    condition = "steps is None or steps > 0"
    trained = [f"if {condition}:", *_deeper(local)]
    if shape.make_strategy:
        trained = [
            f"if self.resolver.cluster_spec().jobs and ({condition}):",
            "    self._fit_on_cluster(input_fn, dataset, model, steps, callbacks)",
            f"elif {condition}:",
            *_deeper(local),
        ]
    body = [
        '"""Trains for `steps` batches, or until there were `max_steps` in all; else on all that `input_fn` gives."""',
        *begun,
        "if max_steps is not None:",
        "    steps = max_steps - int(model.optimizer.iterations.numpy())",
        *trained,
        "return self",
    ]
    text = _method("def train(self, input_fn, *, steps=None, max_steps=None, callbacks=()):", body)
    if not shape.make_strategy:
        return text
    names = ('f"ckpt-{done + steps}"', '"ckpt-period-{epoch}"') if shape.numbered else ('"ckpt"', '"ckpt-{epoch}"')
    return f"{text}\n{_FIT_ON_CLUSTER.format(given=_given(shape), whole=names[0], of_period=names[1])}"


def _deeper(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _method(head: str, body: Sequence[str]) -> str:
    return "".join(f"    {line}".rstrip() + "\n" for line in (head, *_deeper(body)))


_FIT_ON_CLUSTER = """\
    def _fit_on_cluster(self, input_fn, dataset, model, steps, callbacks):
        jobs = self.resolver.cluster_spec().as_dict()
        repeats = steps is None
        if repeats:
            # Each worker of parameter servers passes over the data once.
            steps = sum(1 for _ in dataset) * (len(jobs["worker"]) if "ps" in jobs else 1)
        done = int(model.optimizer.iterations.numpy())
        period, name = steps, {whole}
        if self.save_steps and done % self.save_steps == 0 and steps % self.save_steps == 0:
            period, name = self.save_steps, {of_period}
        path = os.path.join(self.model_dir, name)
        saves = [tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True)]

        def own_batches(context):
            batches = input_fn({given})
            return batches.repeat() if repeats else batches

        model.fit(
            # Every worker draws batches of its own: the batch size is per replica, as an Estimator's is.
            tf.keras.utils.experimental.DatasetCreator(own_batches),
            steps_per_epoch=period,
            initial_epoch=done // period,
            epochs=done // period + steps // period,
            callbacks=[*saves, *([] if "ps" in jobs else callbacks)],
        )
"""


def _evaluate(shape: ObjectShape) -> str:
    more, passed = (", checkpoint_path=None", ", checkpoint_path") if shape.chooses else ("", "")
    what = "a checkpoint (the newest, where none is named)" if shape.chooses else "the newest checkpoint"
    body = [
        f'"""Returns the loss, the metrics and the step of {what}."""',
        f"dataset, {_made(shape)} = self._begin(input_fn{passed})",
        "dataset, steps = self._first(dataset, steps)",
        "results = model.evaluate(dataset, steps=steps, return_dict=True)",
        "return dict(results, global_step=int(model.optimizer.iterations.numpy()))",
    ]
    return _method(f"def evaluate(self, input_fn, *, steps=None{more}):", body)


def _both(shape: ObjectShape) -> str:
    """The method that does what train_and_evaluate does; every task of a cluster calls it."""
    doc = '"""Trains, and evaluates after every `save_steps` steps and at the end; the specs are arguments for both."""'
    tasks: list[str] = []
    exports: list[str] = []
    if shape.exporters:
        tasks = ["eval_spec = dict(eval_spec)", 'exporters = eval_spec.pop("exporters", ())']
        exports = [
            "exports = [",
            '    self.export_saved_model(os.path.join(self.model_dir, "export", name), serving)',
            "    for name, serving in exporters",
            "]",
        ]
    if shape.make_strategy:
        tasks += [
            'if self.resolver.task_type == "evaluator":',
            "    for checkpoint in tf.train.checkpoints_iterator(self.model_dir):",
            '        results = self.evaluate(**{"steps": 100, **eval_spec})',
            '        if results["global_step"] >= (train_spec.get("max_steps") or math.inf):',
            "            break",
            *_deeper(exports),
            "    return None",
            "if self.resolver.cluster_spec().jobs:",
            "    self.train(**train_spec)",
            "    return None",
        ]
    body = [
        doc,
        *tasks,
        "results, evaluated = None, False",
        "",
        "def evaluate():",
        "    nonlocal results, evaluated",
        '    results, evaluated = self.evaluate(**{"steps": 100, **eval_spec}), True',
        "",
        "def on_batch(batch, logs):",
        "    nonlocal evaluated",
        "    evaluated = False",
        "    if self.save_steps and (batch + 1) % self.save_steps == 0:",
        "        evaluate()",
        "",
        "callback = tf.keras.callbacks.LambdaCallback(",
        "    on_train_batch_end=on_batch,",
        "    on_train_end=lambda logs: evaluated or evaluate(),",
        ")",
        'self.train(**{**train_spec, "callbacks": [callback, *train_spec.get("callbacks", ())]})',
        *(["exports = None", "if evaluated:", *_deeper(exports)] if exports else []),
        f"return results, {'exports' if exports else '[] if evaluated else None'}",
    ]
    return _method("def train_and_evaluate(self, train_spec, eval_spec):", body)


def _predict(shape: ObjectShape) -> str:
    parameters, passed = "", ""
    if shape.of_keys:
        parameters += ", predict_keys=None"
    if shape.chooses:
        parameters, passed = f"{parameters}, checkpoint_path=None", ", checkpoint_path"
    if shape.whole:
        parameters += ", yield_single_examples=True"
    each = [line.replace("        ", "", 1) for line in setup.one_by_one(shape.of_dicts, "    ")]
    whole = ["if not yield_single_examples:", "    yield predictions", "    continue"]
    body = [
        '"""Yields the predictions for one example after the other."""',
        f"dataset, _, predictor = self._begin(input_fn{passed})",
        *(setup.without_prefetch() if shape.on_demand else []),
        f"for batch in {'dataset.with_options(options)' if shape.on_demand else 'dataset'}:",
        "    features = batch[0] if isinstance(batch, tuple) else batch",
        "    predictions = predictor.predict_on_batch(features)",
        *_deeper([*(setup.of_keys() if shape.of_keys else []), *(whole if shape.whole else []), *each]),
    ]
    comma = ", *" if parameters else ""
    return _method(f"def predict(self, input_fn{comma}{parameters}):", body)


def _export(shape: ObjectShape) -> str:
    """The method that writes a SavedModel: its serving function tells the shapes of the features, as an Estimator's."""
    first = "serve" if shape.signatures else "next(iter(served.values()))"
    body = [
        '"""Writes what `serving` makes of the newest checkpoint to a new folder in `folder`; returns its path."""',
        "made = []",
        "",
        "@tf.autograph.experimental.do_not_convert",
        "def predictor(features):",
        "    if not made:",
        "        with tf.init_scope():",
        "            spec = tf.nest.map_structure(tf.type_spec_from_value, features)",
        "            made.append(self._make(spec)[1])",
        "    return made[0](features)",
        "",
        f"{'serve' if shape.signatures else 'served'} = serving(predictor)",
        f"{first}.get_concrete_function()",
        "path = os.path.join(folder, str(int(time.time())))",
        f"tf.saved_model.save(made[0], path, signatures={_served(shape.signatures)})",
        "return path.encode()",
    ]
    return _method("def export_saved_model(self, folder, serving):", body)


def _served(signatures: Sequence[str]) -> str:
    return "{" + ", ".join(f'"{one}": serve' for one in signatures) + "}" if signatures else "served"


_ASKS_CHECKPOINT = """\
    def latest_checkpoint(self):
        \"\"\"Returns the path of the newest checkpoint, or None.\"\"\"
        return tf.train.latest_checkpoint(self.model_dir)
"""


def _begin(shape: ObjectShape) -> str:
    more = ", checkpoint=None" if shape.chooses else ""
    passed = ", checkpoint" if shape.chooses else ""
    spec = ["spec = dataset.element_spec", "spec = spec[0] if isinstance(spec, tuple) else spec"]
    made = [f"return dataset, {'*' if shape.predicts else ''}self._make(spec{passed})"]
    body = [
        '"""Returns the data, and what `make_model` makes for them, in the state of the newest checkpoint."""',
        "if self.seed is not None:",
        "    tf.random.set_seed(self.seed)",
        f"dataset = input_fn({_given(shape)})",
        *spec,
        *made,
    ]
    return _method(f"def _begin(self, input_fn{more}):", body)


def _make(shape: ObjectShape) -> str:
    before, after = setup.rates_kept("model", shape.rates) if shape.rates else ([], [])
    load = [*before, "model.load_weights(checkpoint).expect_partial()", *after]
    arguments = "inputs, params=copy.deepcopy(self.params)" if shape.takes_params else "inputs"
    chosen = ["checkpoint = tf.train.latest_checkpoint(self.model_dir)"]
    if shape.chooses:
        chosen = [
            'names = [name for name, _ in tf.train.list_variables(checkpoint)] if checkpoint else ["_CHECKPOINTABLE"]',
            'if not any(name.startswith("_CHECKPOINTABLE") for name in names):',
            f'    raise ValueError(f"{_ESTIMATORS}")',
            "checkpoint = checkpoint or tf.train.latest_checkpoint(self.model_dir)",
        ]
    of_estimator = 'os.path.basename(checkpoint).startswith("model.ckpt")'
    loads = [f"if checkpoint and not {of_estimator}:  # an Estimator's"]
    if not shape.trains:
        loads = [f"if checkpoint and {of_estimator}:", f'    raise ValueError(f"{_ESTIMATORS}")', "if checkpoint:"]
    body = [
        "inputs = tf.nest.map_structure(lambda one: tf.keras.Input(one.shape[1:], dtype=one.dtype), spec)",
        f"{_made(shape)} = self.make_model({arguments})",
        *chosen,
        *loads,
        *_deeper(load),
        f"return {_made(shape)}",
    ]
    return _method(f"def _make(self, spec{', checkpoint=None' if shape.chooses else ''}):", body)


_ASKED = """\
    def _asked(self, input_fn):
        \"\"\"Returns the `params` for an input function that takes some.\"\"\"
        takes = "params" in inspect.signature(input_fn).parameters
        return {"params": copy.deepcopy(self.params)} if takes else {}
"""
_FIRST = """\
    @staticmethod
    def _first(dataset, steps):
        \"\"\"Returns so many batches of a dataset, and what `fit` is told; data without an end stay whole.\"\"\"
        steps = None if steps is None else math.ceil(steps)
        if steps is None or dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            return dataset, steps
        return dataset.take(steps), None
"""


__all__ = ["ObjectShape", "keras_estimator"]
