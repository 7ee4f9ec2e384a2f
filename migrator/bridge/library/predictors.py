"""Predictions of SavedModels and of Estimators, as tf.contrib.predictor made them."""

import tensorflow as tf
import tensorflow.compat.v1 as tf1

from .exporting import serving_outputs
from .specs import ModeKeys


class Predictor:
    """A function of a dictionary of arrays (or lists) that gives a dictionary of arrays.

    `graph`, `session`, `feed_tensors` and `fetch_tensors` are there to be looked at.
    """

    def __init__(self, session, feed_tensors, fetch_tensors):
        self.session = session
        self.graph = session.graph
        self.feed_tensors = feed_tensors
        self.fetch_tensors = fetch_tensors

    def __call__(self, input_dict):
        """The outputs for inputs of these names."""
        unknown = set(input_dict) - set(self.feed_tensors)
        if unknown:
            raise ValueError(f"unexpected inputs {sorted(unknown)}; there are {sorted(self.feed_tensors)}")
        feeds = {self.feed_tensors[name]: value for name, value in input_dict.items() if value is not None}
        return self.session.run(self.fetch_tensors, feeds)


def predictor_from_saved_model(
    export_dir,
    signature_def_key=None,
    signature_def=None,
    input_names=None,
    output_names=None,
    tags=None,
    graph=None,
    config=None,
):
    """A predictor of a SavedModel: of one of its signatures, or from and to tensors that are named.

    Args:
        export_dir: the SavedModel's folder.
        signature_def_key: the signature's name; None: "serving_default".
        signature_def: the signature itself.
        input_names: the names of the tensors that are fed, by keys of your choice; with `output_names`.
        output_names: the names of the tensors that are given back, by keys of your choice.
        tags: the tags of the graph that is loaded, with commas between them; None: "serve".
        graph: the graph that it is loaded into; None: a new one.
        config: the session's ConfigProto.
    """
    if (input_names is None) != (output_names is None):
        raise ValueError("input_names and output_names must both be given, or neither of them")
    if (signature_def_key is not None) + (signature_def is not None) + (input_names is not None) > 1:
        raise ValueError("only one of signature_def_key, signature_def and input_names can be given")
    graph = graph or tf.Graph()
    with graph.as_default():
        session = tf1.Session(config=config)
        loaded = tf1.saved_model.load(session, (tags or "serve").split(","), tf.compat.as_str_any(export_dir))
    if input_names is None:
        key = signature_def_key or tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        if signature_def is None and key not in loaded.signature_def:
            raise ValueError(f"there is no signature {key!r}; there are {sorted(loaded.signature_def)}")
        signature = signature_def or loaded.signature_def[key]
        input_names = {name: info.name for name, info in signature.inputs.items()}
        output_names = {name: info.name for name, info in signature.outputs.items()}
    feeds = {key: graph.get_tensor_by_name(name) for key, name in input_names.items()}
    return Predictor(session, feeds, {key: graph.get_tensor_by_name(name) for key, name in output_names.items()})


def predictor_from_estimator(
    estimator, serving_input_receiver_fn, output_key=None, graph=None, config=None, checkpoint_path=None
):
    """A predictor of an Estimator's newest checkpoint; `output_key` is the name of one of the export_outputs."""
    graph = graph or tf.Graph()
    with graph.as_default():
        tf1.train.create_global_step()
        receiver = serving_input_receiver_fn()
        spec = estimator._call_model_fn(receiver.features, None, ModeKeys.PREDICT, estimator.config)
        outputs = serving_outputs(spec.export_outputs, spec.predictions)
        key = output_key or tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        if key not in outputs:
            raise ValueError(f"there is no output {key!r}; there are {sorted(outputs)}")
        signature = outputs[key].as_signature_def(receiver.receiver_tensors)
        checkpoint = checkpoint_path or tf.train.latest_checkpoint(estimator.model_dir)
        creator = tf1.train.ChiefSessionCreator(
            scaffold=spec.scaffold, config=config, checkpoint_filename_with_path=checkpoint
        )
        session = tf1.train.MonitoredSession(session_creator=creator)
        feeds = {name: graph.get_tensor_by_name(info.name) for name, info in signature.inputs.items()}
        fetches = {name: graph.get_tensor_by_name(info.name) for name, info in signature.outputs.items()}
    return Predictor(session, feeds, fetches)
