"""SavedModels: what a model serves, how it is written, and the exporters of an EvalSpec."""

import collections
import inspect
import os
import time

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from .specs import ModeKeys


class ExportOutput:
    """What a model serves under one name of `export_outputs`."""

    def as_signature_def(self, receiver_tensors):
        """The signature from the tensors that are fed; a ValueError where they do not fit."""
        raise NotImplementedError


class PredictOutput(ExportOutput):
    """Any named tensors; a single one is named "output"."""

    def __init__(self, outputs):
        self.outputs = _named_outputs(outputs, "output")

    def as_signature_def(self, receiver_tensors):
        """The signature from the tensors that are fed."""
        return tf1.saved_model.predict_signature_def(receiver_tensors, self.outputs)


class ClassificationOutput(ExportOutput):
    """Scores (floating point), class names (strings), or both, row by row."""

    def __init__(self, scores=None, classes=None):
        if scores is not None and not (tf.is_tensor(scores) and scores.dtype.is_floating):
            raise ValueError(f"scores must be a tensor of floating point; got {scores}")
        if classes is not None and not (tf.is_tensor(classes) and classes.dtype == tf.string):
            raise ValueError(f"classes must be a tensor of strings; got {classes}")
        if scores is None and classes is None:
            raise ValueError("scores, classes or both must be given")
        self.scores, self.classes = scores, classes

    def as_signature_def(self, receiver_tensors):
        """The signature, from one tensor of strings (serialized examples)."""
        examples = _only_examples(receiver_tensors)
        return tf1.saved_model.classification_signature_def(examples, self.classes, self.scores)


class RegressionOutput(ExportOutput):
    """One tensor of floating point."""

    def __init__(self, value):
        if not (tf.is_tensor(value) and value.dtype.is_floating):
            raise ValueError(f"the value must be a tensor of floating point; got {value}")
        self.value = value

    def as_signature_def(self, receiver_tensors):
        """The signature, from one tensor of strings (serialized examples)."""
        return tf1.saved_model.regression_signature_def(_only_examples(receiver_tensors), self.value)


class EvalOutput(ExportOutput):
    """Loss, predictions and metrics of an evaluation."""

    method_name = "tensorflow/supervised/eval"

    def __init__(self, loss=None, predictions=None, metrics=None):
        self.loss = None if loss is None else _prefixed("loss", loss)
        self.predictions = None if predictions is None else _prefixed("predictions", predictions)
        self.metrics = None if metrics is None else _metric_tensors(metrics)

    def as_signature_def(self, receiver_tensors):
        """The signature from the tensors that are fed."""
        outputs = {**(self.loss or {}), **(self.predictions or {}), **(self.metrics or {})}
        signature = tf1.saved_model.predict_signature_def(receiver_tensors, outputs)
        signature.method_name = self.method_name
        return signature


class TrainOutput(EvalOutput):
    """Loss, predictions and metrics of a training."""

    method_name = "tensorflow/supervised/training"


def _named_outputs(outputs, name):
    """Outputs as a dictionary with strings for keys; those of several heads are ("head", "name") pairs."""
    outputs = outputs if isinstance(outputs, dict) else {name: outputs}
    named = {"/".join(key) if isinstance(key, tuple) else key: value for key, value in outputs.items()}
    for key, value in named.items():
        if not isinstance(key, str):
            raise ValueError(f"an output's key must be a string; got {key}")
        if not tf.is_tensor(value):
            raise ValueError(f"the output {key} must be a tensor; got {value}")
    return named


def _prefixed(name, outputs):
    named = _named_outputs(outputs, name)
    return {key if key.startswith(name) else f"{name}/{key}": value for key, value in named.items()}


def _metric_tensors(metrics):
    """Each metric's value and update, as two tensors."""
    tensors = {}
    for name, (value, update) in (metrics if isinstance(metrics, dict) else {"metrics": metrics}).items():
        key = "/".join(name) if isinstance(name, tuple) else name
        key = key if key.startswith("metrics") else f"metrics/{key}"
        if isinstance(update, tf.Operation):
            with tf.control_dependencies([update]):
                update = tf.constant([])
        tensors[f"{key}/value"], tensors[f"{key}/update_op"] = value, update
    return tensors


def _only_examples(receiver_tensors):
    if len(receiver_tensors) == 1:
        (examples,) = receiver_tensors.values()
        if examples.dtype == tf.string:
            return examples
    raise ValueError(f"the input must be a single tensor of strings; got {receiver_tensors}")


_Receiver = collections.namedtuple("_Receiver", "features receiver_tensors receiver_tensors_alternatives")


class ServingInputReceiver(_Receiver):
    """What a serving function returns: what is fed, and the features made of it.

    Args:
        features: the model's features. A lone tensor comes to the model as {"feature": tensor}.
        receiver_tensors: what is fed: a placeholder, or a dictionary of them.
        receiver_tensors_alternatives: other places to feed, by name; each makes a signature more.
    """

    def __new__(cls, features, receiver_tensors, receiver_tensors_alternatives=None):
        """Checks what is given, and names lone tensors."""
        alternatives = receiver_tensors_alternatives
        if alternatives is not None:
            if not isinstance(alternatives, dict):
                raise ValueError(f"receiver_tensors_alternatives must be a dictionary; got {alternatives}")
            alternatives = {name: _named_tensors(fed, "input") for name, fed in alternatives.items()}
        return super().__new__(
            cls, _named_tensors(features, "feature"), _named_tensors(receiver_tensors, "input"), alternatives
        )


class TensorServingInputReceiver(_Receiver):
    """As ServingInputReceiver, for a model whose features are one tensor: it comes to the model as it is."""

    def __new__(cls, features, receiver_tensors, receiver_tensors_alternatives=None):
        """Checks what is given, and names lone tensors."""
        receiver = ServingInputReceiver({"feature": features}, receiver_tensors, receiver_tensors_alternatives)
        return super().__new__(cls, features, receiver.receiver_tensors, receiver.receiver_tensors_alternatives)


class UnsupervisedInputReceiver(ServingInputReceiver):
    """What is fed and the features made of it, for a training or evaluation without labels."""

    def __new__(cls, features, receiver_tensors):
        """Checks what is given, and names lone tensors."""
        return super().__new__(cls, features, receiver_tensors)


class SupervisedInputReceiver(collections.namedtuple("SupervisedInputReceiver", "features labels receiver_tensors")):
    """What is fed, and the features and labels made of it, for a training or evaluation that is exported."""

    def __new__(cls, features, labels, receiver_tensors):
        """Checks what is given, and names a lone fed tensor."""
        _named_tensors(features, "feature")
        _named_tensors(labels, "label")
        return super().__new__(cls, features, labels, _named_tensors(receiver_tensors, "input"))


def _named_tensors(tensors, name):
    if tensors is None:
        raise ValueError(f"the {name} tensors must be given")
    tensors = tensors if isinstance(tensors, dict) else {name: tensors}
    for key, tensor in tensors.items():
        if not isinstance(key, (str, int) if name in ("feature", "label") else str):
            raise ValueError(f"keys of {name} tensors must be strings; got {key}")
        if not (tf.is_tensor(tensor) or isinstance(tensor, tf.SparseTensor)):
            raise ValueError(f"the {name} {key} must be a tensor; got {tensor}")
    return tensors


def build_parsing_serving_input_receiver_fn(feature_spec, default_batch_size=None):
    """A serving function that is fed serialized examples and parses them by `feature_spec`."""

    def serving_input_receiver_fn():
        examples = tf1.placeholder(tf.string, [default_batch_size], name="input_example_tensor")
        return ServingInputReceiver(tf1.parse_example(examples, feature_spec), {"examples": examples})

    return serving_input_receiver_fn


def build_raw_serving_input_receiver_fn(features, default_batch_size=None):
    """A serving function that is fed the features themselves, of the types and shapes of those given here."""

    def serving_input_receiver_fn():
        fed = _placeholders_like(features, default_batch_size)
        return ServingInputReceiver(fed, fed)

    return serving_input_receiver_fn


def build_supervised_input_receiver_fn_from_input_fn(input_fn, **input_fn_args):
    """A receiver function that is fed features and labels like those of `input_fn`, for a training or evaluation."""
    with tf1.Graph().as_default():
        batch = input_fn(**input_fn_args)
        if isinstance(batch, tf.data.Dataset):
            batch = tf1.data.make_initializable_iterator(batch).get_next()
        features, labels = batch
        specs = tf.nest.map_structure(lambda t: tf.TensorSpec(t.shape, t.dtype, t.op.name), (features, labels))
    return build_raw_supervised_input_receiver_fn(*specs)


def build_raw_supervised_input_receiver_fn(features, labels, default_batch_size=None):
    """A receiver function that is fed features and labels, for a training or evaluation that is exported."""
    if isinstance(features, dict) and isinstance(labels, dict) and features.keys() & labels.keys():
        raise ValueError(f"keys found in both features and labels: {sorted(features.keys() & labels.keys())}")

    def supervised_input_receiver_fn():
        inputs = features if isinstance(features, dict) else {"input": features}
        targets = labels if isinstance(labels, dict) else {"label": labels}
        inputs = _placeholders_like(inputs, default_batch_size)
        targets = _placeholders_like(targets, default_batch_size)
        return SupervisedInputReceiver(
            inputs if isinstance(features, dict) else inputs["input"],
            targets if isinstance(labels, dict) else targets["label"],
            {**inputs, **targets},
        )

    return supervised_input_receiver_fn


def _placeholders_like(tensors, batch_size):
    """A placeholder for each tensor, its first dimension `batch_size`."""
    placeholders = {}
    for key, tensor in tensors.items():
        shape = tf.TensorShape([batch_size]).concatenate(tensor.shape[1:])
        name = getattr(tensor, "name", None)  # an eager tensor has none
        placeholders[key] = tf1.placeholder(tensor.dtype, shape, name=name and name.split(":")[0])
    return placeholders


def export_saved_model(
    estimator,
    export_dir_base,
    serving_input_receiver_fn,
    assets_extra=None,
    as_text=False,
    checkpoint_path=None,
    experimental_mode=ModeKeys.PREDICT,
):
    """Writes a SavedModel into a new folder of `export_dir_base`, named by the time; returns its path (bytes)."""
    if not serving_input_receiver_fn:
        raise ValueError("a serving_input_receiver_fn must be given")
    receivers = {experimental_mode: serving_input_receiver_fn}
    return export_all_saved_models(estimator, export_dir_base, receivers, assets_extra, as_text, checkpoint_path)


def export_all_saved_models(
    estimator, export_dir_base, input_receiver_fn_map, assets_extra=None, as_text=False, checkpoint_path=None
):
    """Writes one SavedModel with a graph for each mode of `input_receiver_fn_map`; returns its path (bytes).

    The graph is built by the model_fn itself, so that the SavedModel holds TensorFlow 1's names, as it always did.
    """
    checkpoint_path = checkpoint_path or _checkpoint_to_export(estimator)
    modes = [m for m in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT) if input_receiver_fn_map.get(m)]
    if not modes:
        raise ValueError(f"no mode that can be exported: {list(input_receiver_fn_map)}")
    export_dir = _timestamped_dir(export_dir_base)
    temporary = os.path.join(os.path.dirname(export_dir), b"temp-" + os.path.basename(export_dir))
    builder = tf1.saved_model.Builder(temporary.decode())
    for number, mode in enumerate(modes):
        _add_graph(estimator, builder, mode, input_receiver_fn_map[mode], checkpoint_path, with_variables=number == 0)
    builder.save(as_text)
    for destination, source in (assets_extra or {}).items():
        target = os.path.join(temporary.decode(), "assets.extra", destination)
        tf.io.gfile.makedirs(os.path.dirname(target))
        tf.io.gfile.copy(source, target)
    tf.io.gfile.rename(temporary, export_dir)
    return export_dir


def _checkpoint_to_export(estimator):
    """The newest checkpoint of the model's folder, or what the model starts from."""
    newest = tf.train.latest_checkpoint(estimator.model_dir)
    if newest:
        return newest
    start = getattr(estimator, "_warm_start_settings", None)
    if start is None:
        raise ValueError(f"Couldn't find trained model at {estimator.model_dir}.")
    path = getattr(start, "ckpt_to_initialize_from", start)
    return tf.train.latest_checkpoint(path) if tf.io.gfile.isdir(path) else path


def _timestamped_dir(base):
    """A path in `base` that is not there yet, named by the seconds of the time."""
    for _ in range(10):
        path = os.path.join(tf.compat.as_bytes(base), str(int(time.time())).encode())
        if not tf.io.gfile.exists(path):
            return path
        time.sleep(1)
    raise RuntimeError(f"no free name for an export in {base} after 10 attempts")


def _add_graph(estimator, builder, mode, receiver_fn, checkpoint_path, with_variables):
    """Adds the model's graph in `mode`, with the checkpoint's values if it is the first."""
    with tf1.Graph().as_default():
        tf1.train.create_global_step()
        tf1.set_random_seed(estimator.config.tf_random_seed)
        receiver = receiver_fn()
        labels = getattr(receiver, "labels", None)
        spec = estimator._call_model_fn(receiver.features, labels, mode, estimator.config)
        signatures = _signatures(spec, mode, receiver)
        scaffold = spec.scaffold or tf1.train.Scaffold()
        local_init = scaffold.local_init_op
        if local_init is None:
            local_init = tf.group(tf1.local_variables_initializer(), tf1.tables_initializer())
        saver = scaffold.saver or tf1.train.Saver(sharded=True)
        with tf1.Session(config=estimator.config.session_config) as session:
            saver.restore(session, checkpoint_path)
            if mode == ModeKeys.TRAIN:
                tf1.add_to_collection("saved_model_train_op", spec.train_op)
            tags = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "eval", ModeKeys.PREDICT: "serve"}
            arguments = {
                "tags": [tags[mode]],
                "signature_def_map": signatures,
                "assets_collection": tf1.get_collection(tf1.GraphKeys.ASSET_FILEPATHS),
                "main_op": local_init,
                "strip_default_attrs": True,
                "saver": saver,
            }
            if with_variables:
                builder.add_meta_graph_and_variables(session, **arguments)
            else:
                builder.add_meta_graph(**arguments)


def _signatures(spec, mode, receiver):
    """The signatures of the model in `mode`; those that do not fit what is fed are left out, as TensorFlow 1 did."""
    if mode == ModeKeys.PREDICT:
        outputs = serving_outputs(spec.export_outputs, spec.predictions)
    elif mode == ModeKeys.EVAL:
        outputs = {"eval": EvalOutput(spec.loss, spec.predictions, spec.eval_metric_ops)}
    else:
        outputs = {"train": TrainOutput(spec.loss, spec.predictions, spec.eval_metric_ops)}
    fed = {"": receiver.receiver_tensors, **(getattr(receiver, "receiver_tensors_alternatives", None) or {})}
    signatures = {}
    for place, tensors in fed.items():
        for name, output in outputs.items():
            key = f"{place}:{name}" if place else name
            try:
                signature = output.as_signature_def(tensors)
            except ValueError as error:
                tf1.logging.info("Signature %r is not exported: %s", key, error)
                continue
            if mode != ModeKeys.PREDICT or tf1.saved_model.is_valid_signature(signature):
                signatures[key] = signature
    return signatures


def serving_outputs(export_outputs, predictions):
    """What is served: `export_outputs`, or the predictions; a lone output is the default one as well."""
    default = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    if export_outputs is None:
        return {default: PredictOutput(predictions)}
    if not isinstance(export_outputs, dict):
        raise TypeError(f"export_outputs must be a dictionary; got {export_outputs}")
    for output in export_outputs.values():
        if not isinstance(output, ExportOutput):
            raise TypeError(f"the values of export_outputs must be ExportOutput objects; got {output}")
    if default in export_outputs:
        return export_outputs
    if len(export_outputs) == 1:
        return {**export_outputs, default: next(iter(export_outputs.values()))}
    raise ValueError(f"of several export_outputs one must be named {default!r}; got {list(export_outputs)}")


class Exporter:
    """Writes the model after evaluations. Its `name` is the folder below `export`."""

    name = None

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        """Exports, or does not; returns the path, or None."""
        raise NotImplementedError


class _SavedModelExporter(Exporter):
    """The exporters below: a name, and what `export_saved_model` is called with."""

    def __init__(self, name, serving_input_receiver_fn, assets_extra=None, as_text=False):
        self.name = name
        self._serving_input_receiver_fn = serving_input_receiver_fn
        self._assets_extra = assets_extra
        self._as_text = as_text

    def _save(self, estimator, export_path, checkpoint_path):
        return estimator.export_saved_model(
            export_path,
            self._serving_input_receiver_fn,
            assets_extra=self._assets_extra,
            as_text=self._as_text,
            checkpoint_path=checkpoint_path,
        )


class FinalExporter(_SavedModelExporter):
    """Exports once, when the training has ended."""

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        """Exports if the training has ended; returns the path, or None."""
        return self._save(estimator, export_path, checkpoint_path) if is_the_final_export else None


class LatestExporter(_SavedModelExporter):
    """Exports after each evaluation, and keeps the newest `exports_to_keep` (None: all)."""

    def __init__(self, name, serving_input_receiver_fn, assets_extra=None, as_text=False, exports_to_keep=5):
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        self._exports_to_keep = _checked_exports_to_keep(exports_to_keep)

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        """Exports; returns the path."""
        path = self._save(estimator, export_path, checkpoint_path)
        _delete_old_exports(export_path, self._exports_to_keep)
        return path


def _loss_smaller(best_eval_result, current_eval_result):
    """True if the loss of the current evaluation is smaller than the best one's."""
    for result in (best_eval_result, current_eval_result):
        if not result or "loss" not in result:
            raise ValueError(f"the result of the evaluation is empty or has no loss: {result}")
    return best_eval_result["loss"] > current_eval_result["loss"]


class BestExporter(_SavedModelExporter):
    """Exports when an evaluation is better than all before it.

    Args:
        name: the folder below `export`.
        serving_input_receiver_fn: as of `export_saved_model`.
        event_file_pattern: where earlier evaluations of the model's folder are found, so that a training that goes on
            knows the best; None: those of this process alone.
        compare_fn: function of `best_eval_result` and `current_eval_result`: True if the current one is better.
        assets_extra: as of `export_saved_model`.
        as_text: as of `export_saved_model`.
        exports_to_keep: how many are kept; None: all.
    """

    def __init__(
        self,
        name="best_exporter",
        serving_input_receiver_fn=None,
        event_file_pattern="eval/*.tfevents.*",
        compare_fn=_loss_smaller,
        assets_extra=None,
        as_text=False,
        exports_to_keep=5,
    ):
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        if compare_fn is None:
            raise ValueError("compare_fn must be given")
        arguments = set(inspect.signature(compare_fn).parameters)
        if arguments != {"best_eval_result", "current_eval_result"}:
            raise ValueError(f"compare_fn must take best_eval_result and current_eval_result; it takes {arguments}")
        self._compare_fn = compare_fn
        self._event_file_pattern = event_file_pattern
        self._exports_to_keep = _checked_exports_to_keep(exports_to_keep)
        self._model_dir = None
        self._best_eval_result = None

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        """Exports if the evaluation is the best yet; returns the path, or None."""
        if self._model_dir != estimator.model_dir and self._event_file_pattern:
            self._model_dir = estimator.model_dir
            self._best_eval_result = None
            for _, earlier in summaries_of_events(os.path.join(estimator.model_dir, self._event_file_pattern)):
                if earlier:
                    self._consider(earlier)
        if not self._consider(eval_result):
            return None
        path = self._save(estimator, export_path, checkpoint_path)
        _delete_old_exports(export_path, self._exports_to_keep)
        return path

    def _consider(self, result):
        """Keeps `result` if it is better than the best."""
        best = self._best_eval_result
        better = best is None or self._compare_fn(best_eval_result=best, current_eval_result=result)
        if better:
            self._best_eval_result = result
        return better


class StepsExporter(_SavedModelExporter):
    """Exports at the first evaluation at or after each of `steps_to_keep`; all exports are kept."""

    def __init__(
        self,
        steps_to_keep,
        name="steps_exporter",
        serving_input_receiver_fn=None,
        event_file_pattern="eval/*.tfevents.*",
        assets_extra=None,
        as_text=False,
    ):
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        self._steps_to_keep = sorted(step for step in steps_to_keep if isinstance(step, int) and step > 0)
        if not self._steps_to_keep:
            raise ValueError("steps_to_keep must have at least one positive integer")
        self._event_file_pattern = event_file_pattern
        self._model_dir = None

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        """Exports if a step to keep has been reached since the evaluation before; returns the path, or None."""
        if not eval_result or "global_step" not in eval_result:
            raise ValueError(f"the result of the evaluation has no global_step: {eval_result}")
        if self._model_dir != estimator.model_dir and self._event_file_pattern:
            self._model_dir = estimator.model_dir
            pattern = os.path.join(estimator.model_dir, self._event_file_pattern)
            last = max((step for step, _ in summaries_of_events(pattern)), default=-1)
            self._steps_to_keep = [step for step in self._steps_to_keep if step > last]
        due = [step for step in self._steps_to_keep if step <= eval_result["global_step"]]
        if not due:
            return None
        self._steps_to_keep = [step for step in self._steps_to_keep if step not in due]
        return self._save(estimator, export_path, checkpoint_path)


def _checked_exports_to_keep(count):
    if count is not None and count <= 0:
        raise ValueError(f"exports_to_keep must be None or a positive number; got {count}")
    return count


def _delete_old_exports(folder, exports_to_keep):
    """Deletes all exports of `folder` but the newest; exports are the folders named by ten digits."""
    if exports_to_keep is None:
        return
    names = [tf.compat.as_str_any(name).rstrip("/") for name in tf.io.gfile.listdir(folder)]
    exports = sorted(name for name in names if len(name) == 10 and name.isdigit())
    for name in exports[:-exports_to_keep]:
        path = os.path.join(tf.compat.as_str_any(folder), name)
        try:
            tf.io.gfile.rmtree(path)
        except tf.errors.NotFoundError as error:
            tf1.logging.warning("Cannot delete %s: %s", path, error)


def summaries_of_events(pattern):
    """The step and the scalars (by tag) of each evaluation in the event files that `pattern` finds.

    TensorFlow 1 writes the scalars of an evaluation as one event, TensorFlow 2 as one event each.
    """
    for path in sorted(tf.io.gfile.glob(pattern)):
        step, scalars = None, {}
        for event in tf1.train.summary_iterator(path):
            found = _scalars_of_event(event)
            if step is not None and (event.step != step or found.keys() & scalars.keys()):
                yield step, scalars
                scalars = {}
            step, scalars = event.step, {**scalars, **found}
        if step is not None:
            yield step, scalars


def _scalars_of_event(event):
    scalars = {}
    for value in event.summary.value:
        if value.HasField("simple_value"):
            scalars[value.tag] = value.simple_value
        elif value.metadata.plugin_data.plugin_name == "scalars":
            scalars[value.tag] = float(tf.make_ndarray(value.tensor))
    return scalars
