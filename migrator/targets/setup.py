"""The functions that a migrated program gets beside its own: its inputs, its predictions, its exports."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Sequence

from migrator.emit.layout import call


def make_inputs(name: str, indent: str, labelled: bool = True, named: bool = False, static: bool = False) -> str:
    """The function that makes Keras inputs from a dataset's element_spec, as source text.

    A program that only predicts, or whose model_fn does not ask for them, may have datasets without labels (`labelled`
    is False). With `named`, the inputs of a dict of features bear the names of its keys; `static` ones have the size of
    the batches, which the network asks for while it is built.
    """
    size = ", batch_size=spec.shape[0]" if static else ""
    body = call(
        "return tf.nest.map_structure",
        [f"lambda spec: tf.keras.Input(spec.shape[1:]{size}, dtype=spec.dtype)", "features"],
        indent,
        1,
    )
    if named:
        lines = [
            "if isinstance(features, dict):",
            f"{indent}return {{",
            f"{indent * 2}name: tf.keras.Input(spec.shape[1:]{size}, dtype=spec.dtype, name=name)",
            f"{indent * 2}for name, spec in features.items()",
            f"{indent}}}",
            body,
        ]
        body = f"\n{indent}".join(lines)
    if not labelled:
        return (
            f"def {name}(dataset):\n"
            f'{indent}"""Returns Keras inputs for the features of a dataset of features or (features, labels)."""\n'
            f"{indent}spec = dataset.element_spec\n"
            f"{indent}features = spec[0] if isinstance(spec, tuple) else spec\n"
            f"{indent}{body}\n"
        )
    return (
        f"def {name}(dataset):\n"
        f'{indent}"""Returns Keras inputs for the features of a dataset of (features, labels) batches."""\n'
        f"{indent}features, _ = dataset.element_spec\n"
        f"{indent}{body}\n"
    )


def whole_rounds(made: str, sized: bool, depth: int) -> str:
    """The function that draws the batches of `made`, as many as there are whole rounds of for the replicas.

    Where the dataset knows how many batches it has (`sized`), the others are not drawn: windows would make a dataset
    of every round (measured on 2.21, two replicas of a network of eight variables: 1.63 milliseconds of CPU for a step,
    1.49 without). The size of an endless dataset is negative, and so it is taken whole.
    """
    if sized:
        text = f"""\
def whole_rounds(context):
    batches, replicas = {made}, context.num_replicas_in_sync
    return batches.take(batches.cardinality() // replicas * replicas)"""
    else:
        text = f"""\
def whole_rounds(context):
    rounds = {made}.window(context.num_replicas_in_sync, drop_remainder=True)
    return rounds.flat_map(lambda *parts: tf.data.Dataset.zip(parts))"""
    return textwrap.indent(text, "    " * depth)


def per_replica(name: str, indent: str, creates: bool = True, sized: bool = False) -> str:
    """The function that gives every replica of one process batches of its own, as source text.

    So an Estimator does (measured: two replicas with batches of 16 train as one device does with batches of 32); a
    dataset that fit is given is split instead. Measured on TensorFlow 1.15.5 and 2.15.1: of five batches, an Estimator
    with two replicas trains on four, where Keras would train on the fifth too, with nothing for the second replica.
    Keras 3 has no DatasetCreator (`creates` is False): it is given the datasets that the strategy distributes.
    `sized`: all datasets of the program know the number of their batches.
    """
    text = f'''\
def {name}(make_dataset):
    """Gives every replica batches of its own, as an Estimator does, until there is not one for each of them."""

{whole_rounds("make_dataset()", sized, 1)}

    return tf.keras.utils.experimental.DatasetCreator(whole_rounds)
'''
    if not creates:
        text = text.replace("(make_dataset):", "(strategy, make_dataset):", 1)
        made = "tf.keras.utils.experimental.DatasetCreator("
        text = text.replace(made, "strategy.distribute_datasets_from_function(")
    return text.replace("    ", indent)


def replica_averages(name: str, indent: str) -> str:
    """The callback that makes the moving averages of all replicas of one process equal, as source text.

    Each replica moves its own. An Estimator evaluates, predicts and goes on with what a checkpoint holds, which
    is their mean; Keras would go on with each replica's own. The mean moves on as it would have: it is linear.
    """
    text = f'''\
class {name}(tf.keras.callbacks.Callback):
    """Gives every replica the mean of their moving averages, with which an Estimator evaluated."""

    def on_train_end(self, logs=None):
        for weight in self.model.non_trainable_weights:
            weight.assign(weight.read_value())

    on_test_begin = on_train_end
'''
    return text.replace("    ", indent)


def replica_averages_on_keras3(name: str, indent: str) -> str:
    """The function that makes such a callback on Keras 3, as source text.

    There each replica moves its own averages as well, but the variables have no aggregation: who reads one, also for
    a checkpoint, gets the first replica's (TensorFlow 2.21). So the mean comes before a checkpoint is written.
    """
    text = f'''\
def {name}(model):
    """Returns a callback that gives every replica the mean of their moving averages, as an Estimator saved it."""

    def average(*_):
        for weight in model.non_trainable_weights:
            copies = model.distribute_strategy.experimental_local_results(weight.value)
            weight.assign(tf.add_n(copies) / len(copies))

    return tf.keras.callbacks.LambdaCallback(on_epoch_end=average, on_test_begin=average)
'''
    return text.replace("    ", indent)


def cluster_task(name: str, indent: str, properties: Collection[str]) -> str:
    """The class of what a RunConfig said of the task in TF_CONFIG, with some of its properties, as source text.

    An evaluator was told of no cluster; without one a process is the only worker, and the chief.
    """
    lines = {
        "task_type": 'self.task_type = task.get("type", "worker")',
        "task_id": 'self.task_id = int(task.get("index", 0))',
        "is_chief": 'self.is_chief = not cluster or task.get("type") in ("chief", "master")',
        "cluster_spec": "self.cluster_spec = tf.train.ClusterSpec({} if evaluates else cluster)",
        "num_ps_replicas": 'self.num_ps_replicas = 0 if evaluates else len(cluster.get("ps", ()))',
        "num_worker_replicas": "self.num_worker_replicas = 0 if evaluates else workers if cluster else 1",
    }
    made = [lines[one] for one in lines if one in properties]
    given = {
        "task": 'task = config.get("task", {})',
        "cluster": 'cluster = config.get("cluster", {})',
        "evaluates": 'evaluates = bool(cluster) and task.get("type") == "evaluator"',
        "workers": 'workers = sum(len(cluster.get(job, ())) for job in ("chief", "master", "worker"))',
    }
    text = " ".join(made)
    needed = {word for word in given if re.search(rf"\b{word}\b", text)}
    needed |= {"task", "cluster"} if "evaluates" in needed else set()
    body = [given[word] for word in given if word in needed] + made
    head = f'''\
class {name}:
    """What TF_CONFIG says of this process, under the names of a RunConfig."""

    def __init__(self):
        config = json.loads(os.environ.get("TF_CONFIG", "{{}}"))
'''
    return (head + "".join(f"        {line}\n" for line in body)).replace("    ", indent)


def counted_steps(name: str, indent: str) -> str:
    """The callback that keeps the number of steps right from one training to the next, as source text.

    Where a dataset does not know how many batches it has (records, lines, a filter, a generator), Keras 2 looks for one
    more than there is: that step fails, but `optimizer.iterations` has counted it (4, 8 and 12 after three trainings of
    3 batches, also with `take`, TensorFlow 2.21). An Estimator counts 3, 6 and 9.
    """
    text = f'''\
class {name}(tf.keras.callbacks.Callback):
    """Keeps the number of steps: `fit` counts one more when it looks for a batch behind the last."""

    def on_train_begin(self, logs=None):
        self.steps = self.model.optimizer.iterations.numpy()

    def on_train_batch_end(self, batch, logs=None):
        self.steps = self.model.optimizer.iterations.numpy()

    def on_epoch_end(self, epoch, logs=None):
        self.model.optimizer.iterations.assign(self.steps)
'''
    return text.replace("    ", indent)


#: Whose learning rates there are: those of the parts of an optimizer, or that of an optimizer of Keras 2 or 3.
RATES_OF_PARTS, RATE, RATE_ON_KERAS3 = "parts", "optimizer", "optimizer of Keras 3"


def rates_kept(model: str, rates: str) -> tuple[list[str], list[str]]:
    """Lines around those that restore a checkpoint, which leave the settings of optimizers as the program gives them.

    Keras saves the rate of an optimizer beside its slots, and restores it (a training that was resumed at a tenth of
    the rate went on at the old one); `tf.keras.optimizers.legacy` all of its numbers. An Estimator restores weights,
    slots and the step.
    """
    if rates == RATE_ON_KERAS3:
        before = [f"rate = {model}.optimizer.learning_rate", "given = rate.numpy()"]
        return before, ['if hasattr(rate, "assign"):', "    rate.assign(given)"]  # that of a schedule is a tensor
    before = [f"optimizer = {model}.optimizer"]
    before.append("settings = [getattr(optimizer, name, None) for name in optimizer.get_config()]")
    if rates == RATES_OF_PARTS:
        before = [f"parts = {model}.optimizer.parts"]
        before.append("settings = [getattr(part, name, None) for part in parts for name in part.get_config()]")
    before.append("given = [(setting, setting.numpy()) for setting in settings if isinstance(setting, tf.Variable)]")
    return before, ["for setting, value in given:", "    setting.assign(value)"]


def load_checkpoint(name: str, indent: str, rates: str) -> str:
    """The function that goes on from a checkpoint with the optimizer's settings that the program gives, as text.

    On Keras 3 it is given the manager of the checkpoints.
    """
    before, after = rates_kept("model", rates)
    given, load = ("checkpoint", "model.load_weights(checkpoint)")
    if rates == RATE_ON_KERAS3:
        given, load = ("checkpoints", "checkpoints.restore_or_initialize()")
    own = "the learning rate stays" if rates == RATE_ON_KERAS3 else "the optimizer's settings stay"
    lines = [
        f"def {name}(model, {given}):",
        f'    """Loads weights, slots and step, as an Estimator does; {own} this program\'s own."""',
        *(f"    {line}" for line in (*before, load, *after)),
    ]
    return "\n".join(lines).replace("    ", indent) + "\n"


def last_evaluation(name: str, indent: str) -> str:
    """The function that finds what train_and_evaluate answers in the history of a `fit`, as source text.

    An Estimator that has nothing left to train evaluates nothing, and answers None in place of the metrics.
    """
    text = f'''\
def {name}(model):
    """Returns the metrics of the last evaluation during `fit`, and no exports, as train_and_evaluate does."""
    history = model.history.history
    metrics = {{key[len("val_"):]: values[-1] for key, values in history.items() if key.startswith("val_")}}
    return dict(metrics, global_step=int(model.optimizer.iterations.numpy())) if metrics else None, []
'''
    return text.replace("    ", indent)


def local_copy(name: str, indent: str) -> str:
    """The class of a copy of a model that trains on a cluster, in the process that evaluates it, as source text.

    `Model.evaluate` under parameter servers lets each worker draw batches of its own, so that examples count several
    times or never, and under mirrored workers it divides batches, over whose parts some losses are no means.
    """
    text = f'''\
class {name}:
    """A model in this process, with the weights of one that trains on a cluster: it evaluates each example once."""

    def __init__(self, model, make_copy):
        self.model, self.make_copy, self.copy = model, make_copy, None

    def weights(self):
        """Returns the step and the weights of the model: all workers call it, since some are read from all of them."""
        return self.model.optimizer.iterations.numpy(), self.model.get_weights()

    def with_weights(self, step, weights):
        """Returns the copy at a step, with some weights."""
        self.copy = self.copy or self.make_copy()
        values = iter(weights)
        for weight in self.copy.weights:
            value = next(values)
            while value.shape != weight.shape:  # parameter servers hold pieces of it
                value = tf.concat([value, next(values)], axis=0)
            weight.assign(value)
        self.copy.optimizer.iterations.assign(step)
        return self.copy

    def current(self):
        """Returns the model as it is now; without a cluster it is not copied."""
        if self.model.distribute_strategy is tf.distribute.get_strategy():
            return self.model
        return self.with_weights(*self.weights())
'''
    return text.replace("    ", indent)


def coordinator_evaluation(name: str, indent: str) -> str:
    """The callback that evaluates while a cluster waits, as source text.

    `fit` is in the scope of its strategy, and so are its callbacks: in another thread no strategy is in force.
    """
    text = f'''\
class {name}(tf.keras.callbacks.Callback):
    """Evaluates a copy of the model on the coordinator, wherever an evaluator task would find a new checkpoint."""

    def __init__(self, local, evaluate):
        super().__init__()
        self.local, self.evaluate = local, evaluate
        self.thread = concurrent.futures.ThreadPoolExecutor(1)  # in the scope of no strategy

    def on_epoch_end(self, epoch, logs=None):
        if not tf.distribute.has_strategy():
            return  # one process trains and evaluates
        step, weights = self.local.weights()
        if self.model.distribute_strategy.extended.should_checkpoint:  # that is the coordinator
            self.thread.submit(lambda: self.evaluate(self.local.with_weights(step, weights))).result()
'''
    return text.replace("    ", indent)


def predict(
    name: str,
    of_dicts: bool,
    indent: str,
    callbacks: bool = False,
    stops: bool = False,
    batches: bool = False,
    named: bool = False,
    keys: bool = False,
    on_demand: bool = False,
) -> str:
    """The generator that answers example by example, as Estimator.predict does, as source text.

    With `keys` it takes the keys that are asked for, as `predict_keys`. `named` says that the model is one of the
    program's own, whose Estimator answered by the names of its outputs.
    With `callbacks` it takes some, and tells them of every batch; one may end it where `stops` says so. With `batches`
    it answers batch by batch, with `on_demand` it takes no example before it is asked for (see without_prefetch).
    """
    data = "dataset.with_options(options)" if on_demand else "dataset"
    lines = [
        f"def {name}(predictor, dataset):",
        f'{indent}"""Yields the predictions for one example after the other."""',
        f"{indent}for batch in {data}:",
        f"{indent * 2}features = batch[0] if isinstance(batch, tuple) else batch",
        f"{indent * 2}predictions = predictor.predict_on_batch(features)",
    ]
    if named:
        lines.append(f"{indent * 2}predictions = dict(zip(predictor.output_names, tf.nest.flatten(predictions)))")
    if keys:
        lines += [f"{indent * 2}{line}".replace("    ", indent) for line in of_keys()]
    more = f"{', callbacks=()' if callbacks else ''}{', predict_keys=None' if keys else ''}"
    lines[0] = f"def {name}(predictor, dataset{more}):"
    if callbacks:
        lines[2:3] = [
            f"{indent}callbacks = tf.keras.callbacks.CallbackList(callbacks, model=predictor)",
            f"{indent}callbacks.on_predict_begin()",
            f"{indent}for step, batch in enumerate({data}):",
            f"{indent * 2}callbacks.on_predict_batch_begin(step)",
        ]
        lines.append(f"{indent * 2}callbacks.on_predict_batch_end(step)")
    if batches:
        lines[1] = f'{indent}"""Yields the predictions for one batch after the other."""'
        lines.append(f"{indent * 2}yield predictions")
    else:
        lines += one_by_one(of_dicts, indent)
    if stops:
        lines[3:3] = [f"{indent}predictor.stop_training = False  # what a callback sets to end a prediction, too"]
        lines += [f"{indent * 2}if predictor.stop_training:", f"{indent * 3}break"]
    if callbacks:
        lines.append(f"{indent}callbacks.on_predict_end()")
    if on_demand:
        lines[2:2] = [f"{indent}{line}" for line in without_prefetch()]
    return "\n".join(lines) + "\n"


def without_prefetch() -> list[str]:
    """The lines that make the `options` of a dataset which takes no example before it is asked for.

    TensorFlow 2 reads ahead by itself, and makes maps parallel: a generator that gives what its caller sets in between
    would give the last.
    """
    return [
        "options = tf.data.Options()",
        "options.experimental_optimization.apply_default_optimizations = False  # these read examples ahead",
    ]


def of_keys() -> list[str]:
    """The lines that keep of the predictions of a batch what is asked for, as Estimator.predict does."""
    return [
        "if predict_keys:",
        "    predictions = {key: value for key, value in predictions.items() if key in predict_keys}",
        "    if not predictions:",
        '        raise ValueError(f"None of {predict_keys} is predicted.")',
    ]


def predict_on_mesh(name: str, of_dicts: bool, indent: str) -> str:
    """The generator that answers example by example, for a model whose weights are on a mesh; see `predict`."""
    text = _PREDICT_ON_MESH.format(name=name).replace("    ", indent)
    return text + "".join(f"{line}\n" for line in one_by_one(of_dicts, indent))


def one_by_one(of_dicts: bool, indent: str) -> list[str]:
    """The lines in the loop over batches that yield the predictions of each example."""
    if not of_dicts:
        return [f"{indent * 2}yield from predictions"]
    return [
        f"{indent * 2}for values in zip(*predictions.values()):",
        f"{indent * 3}yield dict(zip(predictions, values))",
    ]


_PREDICT_ON_MESH = '''\
def {name}(predictor, dataset):
    """Yields the predictions for one example after the other. Every device of the mesh has all examples."""
    dtensor = tf.experimental.dtensor
    mesh = predictor.weights[0].layout.mesh

    def whole(tensor):
        return dtensor.Layout.replicated(mesh, rank=tensor.shape.rank)

    @tf.function
    def predictions_of(features):
        return predictor(features, training=False)

    for batch in dataset:
        features = batch[0] if isinstance(batch, tuple) else batch
        features = tf.nest.map_structure(lambda tensor: dtensor.copy_to_mesh(tensor, whole(tensor)), features)
        predictions = tf.nest.map_structure(
            lambda tensor: dtensor.relayout(tensor, whole(tensor)).numpy(),
            predictions_of(features),
        )
'''


def export_model(name: str, signatures: Sequence[str], indent: str, named: bool = False) -> str:
    """The function that writes a SavedModel, as Estimator.export_saved_model does, as source text.

    What `serving` returns is served under these names, or is a dict of what is served where there are none. `named`
    says that the model is one of the program's own, whose Estimator served the names of its outputs.
    """
    lines = [
        f"def {name}({'model' if named else 'predictor'}, serving, folder):",
        f'{indent}"""Writes what `serving` makes of the {"model" if named else "predictor"} to a new folder in '
        '`folder`; returns its path."""',
        *(
            [
                f"{indent}predictor = tf.keras.Model(model.inputs, dict(zip(model.output_names, model.outputs)))",
                f"{indent}predictor.input_spec = None  # what is served may have one axis more, as for an Estimator",
            ]
            if named
            else []
        ),
        saving("predictor", signatures, indent, 1),
        f"{indent}return path",
    ]
    return "\n".join(lines) + "\n"


def weights_of(name: str, indent: str) -> str:
    """The function that finds weights of a linear model by the names that TensorFlow 1 gave them, as source text."""
    lines = (
        f"def {name}(model, name):",
        f'{indent}"""Returns the weights of a column, or the bias, by the name that their variable had."""',
        f'{indent}scope, variable = name.split("/")[-2:]',
        f'{indent}return model.get_layer(scope if variable == "weights" else variable).get_weights()[0]',
    )
    return "\n".join(lines) + "\n"


def saving(predictor: str, signatures: Sequence[str], indent: str, depth: int) -> str:
    """The lines that write what `serving` makes of a predictor to a new folder `path` in `folder`."""
    served = ", ".join(f'"{signature}": serve' for signature in signatures)
    given = f"signatures={{{served}}}" if signatures else f"signatures=serving({predictor})"
    lines = [f"serve = serving({predictor})"] if signatures else []
    lines.append("path = os.path.join(folder, str(int(time.time())))")
    lines.append(call("tf.saved_model.save", [predictor, "path", given], indent, depth))
    return "\n".join(indent * depth + line for line in lines)


def paragraphs(functions: Sequence[str]) -> str:
    """Functions one under the other, two blank lines between them."""
    return "\n\n".join(functions)
