"""Predictors of SavedModels: functions of the user's file in the place of those of tf.contrib.predictor."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import calls_in, is_none, nodes_in, string
from migrator.program.parsed import Blocked, ParsedFile
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression

_CODE = "TFM621"
_NAME = "tf.contrib.predictor.from_saved_model"
_SERVE = ("tf.saved_model.SERVING", "tf.saved_model.tag_constants.SERVING")
_TEXT = '''\
def {name}(folder, signature=None):
    """Returns a function of a dict of arrays, which gives those that a SavedModel's signature makes of it."""
    model = tf.saved_model.load(tf.compat.as_str_any(folder))
    serve = model.signatures[signature or "serving_default"]
    specs = serve.structured_input_signature[1]

    def predict(inputs):
        unknown = inputs.keys() - specs.keys()
        if unknown:
            raise ValueError(f"The signature has no inputs {sorted(unknown)}: there are {sorted(specs)}.")
        given = {key: tf.constant(value, specs[key].dtype) for key, value in inputs.items()}
        return {key: value.numpy() for key, value in serve(**given).items()}

    predict.model = model  # the weights are there as long as somebody has the model
    return predict
'''
_PARAMETERS = (
    "export_dir",
    "signature_def_key",
    "signature_def",
    "input_names",
    "output_names",
    "tags",
    "graph",
    "config",
)
_LEFT = ("signature_def", "input_names", "output_names", "graph", "config")
# What else a predictor of TensorFlow 1 had.
_ATTRIBUTES = ("feed_tensors", "fetch_tensors", "_feed_tensors", "_fetch_tensors", "session", "_session", "graph")


def _from_saved_model(site: Site) -> cst.BaseExpression:
    """`tf.contrib.predictor.from_saved_model(...)`, by a function of the user's file."""
    given = site.originals(_PARAMETERS, _CODE)
    new = site.arguments(_PARAMETERS, _CODE)
    for key in _LEFT:
        if not is_none(given.get(key)):
            raise Blocked(_CODE, site.original, f"`{key}` of `{_NAME}` is unsupported: use the bridge")
    tags = given.get("tags")
    if tags is not None and not is_none(tags) and string(tags) != "serve" and site.tensorflow(tags) not in _SERVE:
        raise Blocked(_CODE, site.original, f"`tags` of `{_NAME}` must be those of serving")
    if "export_dir" not in new:
        raise Blocked(_CODE, site.original, f"`{_NAME}` is called without a directory")
    arguments = [site.code(new[key]) for key in ("export_dir", "signature_def_key") if not is_none(new.get(key))]
    return expression(call_text(site.training.helper("saved_predictor", _TEXT), arguments))


def looked_into(file: ParsedFile) -> list[Blocked]:
    """Where a file asks a predictor for its graph, its session or its tensors (TFM621)."""
    if "from_saved_model" not in file.text:
        return []
    if all(file.imports.tensorflow(call.func) != _NAME for call in calls_in(file.module)):
        return []
    message = "a predictor has no session and no graph in TensorFlow 2: use the bridge"
    asked = (node for node in nodes_in(file.module) if isinstance(node, cst.Attribute))
    return [
        Blocked(_CODE, node, message)
        for node in asked
        if node.attr.value in _ATTRIBUTES and file.imports.resolve(node) is None
    ]


CALLS: dict[str, CallRule] = {_NAME: _from_saved_model}
RULES = (
    Rule(
        _CODE,
        "a predictor of a SavedModel",
        Severity.MANUAL,
        """
`tf.contrib.predictor.from_saved_model(folder)` gave a function that runs a signature of a SavedModel in a session: it
takes a dict of arrays (or lists) and answers with one. A function in the user's file gives the same of
`tf.saved_model.load(folder).signatures`; it reads SavedModels that TensorFlow 1 wrote as well.

Refused are tensors that are fed and fetched by their names, a `graph`, a `config` or a `signature_def` of the
program's own, tags other than those of serving, and predictors that are asked for their session, graph or tensors.
""",
        (
            Example("tf.contrib.predictor.from_saved_model(path)", "saved_predictor(path)"),
            Example(
                'tf.contrib.predictor.from_saved_model(export_dir=path, signature_def_key="predict", tags="serve")',
                'saved_predictor(path, "predict")',
            ),
            Example("tf.contrib.predictor.from_saved_model(path, config=tf.ConfigProto())", None),
        ),
    ),
)
