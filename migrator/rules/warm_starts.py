"""Starting from a checkpoint, and asking an Estimator for its variables, by their TensorFlow 1 names."""

from __future__ import annotations

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import bind, is_none, string
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site

SETTINGS = "tf.estimator.WarmStartSettings"
_PARAMETERS = ("ckpt_to_initialize_from", "vars_to_warm_start", "var_name_to_vocab_info", "var_name_to_prev_var_name")

#: What starts variables with values of a checkpoint, by an assignment map.
RESTORING = ("tf.train.init_from_checkpoint", "tf.contrib.framework.init_from_checkpoint")

RULES = (
    Rule(
        "TFM857",
        "init_from_checkpoint",
        Severity.REVIEW,
        """
`tf.train.init_from_checkpoint(checkpoint, {"scope/": "scope/"})` in a model_fn of the mapped form becomes a method of
its Keras model, which gives the variables made so far the values of the checkpoint before the training; one in the
`model_dir` is loaded after it, as with an Estimator. The checkpoint has to be one of TensorFlow 1: migrated programs
write others, in which `tf.train.list_variables` finds no variable by its name, so that a map made from them would be
empty. Carry those back first: `tf-migrate checkpoint KERAS_DIR migrated.py --back --like TF1_DIR -o NEW`.
""",
    ),
    Rule(
        "TFM146",
        "warm_start_from",
        Severity.MANUAL,
        """
An Estimator with `warm_start_from` starts with values of another checkpoint, found by the names of variables. In the
mapped form the weights have these names, and the file gets a function `warm_start` of a few lines: trained weights
whose names match the pattern of `WarmStartSettings` (all of them without one) get the values of the checkpoint, under
the names of `var_name_to_prev_var_name` where that has one; the optimizer and the step start anew. The checkpoint may
be one of TensorFlow 1 or one of a migrated program in the mapped form. A checkpoint in the `model_dir` comes first, as
with an Estimator.

In the native form Keras names the weights, so that nothing tells which is which: a program with `warm_start_from` takes
the mapped form (`--style auto` does so by itself). Refused are lists of patterns, which pick slots of the optimizer,
too, vocabularies, and None for the variables. Remove the argument, migrate, run `tf-migrate checkpoint` and load the
weights by hand.
""",
        (
            Example(
                'tf.estimator.WarmStartSettings("before", vars_to_warm_start="encoder/")',
                'dict(checkpoint="before", pattern="encoder/")',
            ),
            Example('tf.estimator.WarmStartSettings("before", vars_to_warm_start=["encoder/", "global_step"])', None),
        ),
    ),
    Rule(
        "TFM851",
        "warm start",
        Severity.REVIEW,
        """
`warm_start(model, ...)` gives trained weights the values of another checkpoint before the training, as the Estimator
did: by the same names, and only where the `model_dir` holds no checkpoint yet, which is loaded after it. Without the
values the program fails, as the Estimator failed. A `warm_start_from` that is the Estimator's own `model_dir` is left
out: its newest checkpoint is loaded anyway.
""",
    ),
    Rule(
        "TFM852",
        "variables that an Estimator is asked for",
        Severity.REVIEW,
        """
`get_variable_value(name)` read the newest checkpoint; the migrated program asks the model for the weight of that name,
and the optimizer for the `global_step`. After a training both are the same. `get_variable_names()` named the slots of
the optimizer and the global step as well; the migrated program names the model's own variables. Names of slots
(`kernel/Adam`) are not found any more.
""",
    ),
    Rule(
        "TFM853",
        "variables by name in the native form",
        Severity.MANUAL,
        """
In the native form Keras names the weights, so that `get_variable_value("dense/kernel")` could be another weight. The
mapped form keeps the names: `--style auto` takes it, `--style mapped` asks for it. The global step is known in both.
Values are those of the newest checkpoint, so that the Estimator is asked behind the training.
""",
    ),
)


def read_settings(call: cst.Call) -> dict[str, cst.BaseExpression]:
    """The arguments of WarmStartSettings that count. Raises Blocked (TFM146) for what is not carried over."""
    bound = bind(call, _PARAMETERS, SETTINGS, "TFM146")
    if "ckpt_to_initialize_from" not in bound:
        raise Blocked("TFM146", call, "WarmStartSettings without a checkpoint")
    if not is_none(bound.pop("var_name_to_vocab_info", None)):
        raise Blocked("TFM146", call, "`var_name_to_vocab_info` puts rows of embeddings in another order: by hand")
    pattern = bound.get("vars_to_warm_start")
    if pattern is not None and (is_none(pattern) or isinstance(pattern, cst.List | cst.Tuple)):
        message = "a list of `vars_to_warm_start` picks variables that are not trained, too: give one pattern"
        raise Blocked("TFM146", call, message)
    if isinstance(pattern, cst.SimpleString) and string(pattern) == ".*":
        del bound["vars_to_warm_start"]  # what it is without
    if is_none(bound.get("var_name_to_prev_var_name")):
        bound.pop("var_name_to_prev_var_name", None)
    return bound


_NEW = {
    "ckpt_to_initialize_from": "checkpoint",
    "vars_to_warm_start": "pattern",
    "var_name_to_prev_var_name": "previous",
}


def settings_arguments(call: cst.Call) -> list[cst.Arg]:
    """The arguments of the function `warm_start` that WarmStartSettings stands for."""
    plain = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    bound = read_settings(call)
    return [cst.Arg(bound[old], cst.Name(new), equal=plain) for old, new in _NEW.items() if old in bound]


def _settings(site: Site) -> cst.BaseExpression:
    return cst.Call(cst.Name("dict"), settings_arguments(site.call))


CALLS: dict[str, CallRule] = {SETTINGS: _settings}
