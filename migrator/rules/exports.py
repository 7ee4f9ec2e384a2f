"""Rules about exports. The code is in program/exports.py and emit/driver/."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM142",
        "an unsupported export",
        Severity.MANUAL,
        """
`export_savedmodel`, `export_saved_model` and the exporters of an EvalSpec become `tf.saved_model.save` of the model
that predicts, with a `tf.function` for each signature: the same names of inputs and outputs, the same folder.
Understood are a `serving_input_receiver_fn` that is a function without arguments whose placeholders are its served
inputs (written out, or made by one loop or comprehension over their keys), `build_parsing_serving_input_receiver_fn`
and `build_raw_serving_input_receiver_fn`, by name or in place, and `export_outputs` that are missing, or
PredictOutputs, RegressionOutputs and ClassificationOutputs of predictions. Where they differ, and for heads and canned
Estimators (`classification`, `regression`, `predict`), the serving function returns a dict of functions, one for each
signature; as in TensorFlow 1 those of regressions and classifications are there only where the input is one tensor of
serialized examples. A serving function that Estimators of different signatures share asks the model that it is given
which predictions it has, where these are dicts that are written out with different keys. Assets, `checkpoint_path`,
exporters without a `model_dir` and other serving functions that are shared so are unsupported: write the signature by
hand, as `tf.saved_model.save(model, folder, signatures=...)`.
""",
    ),
    Rule(
        "TFM174",
        "regression and classification signatures become predict signatures",
        Severity.REVIEW,
        """
The signature of a RegressionOutput or a ClassificationOutput keeps its names: the input `inputs` (serialized examples),
the outputs `outputs`, or `scores` and `classes`. `tf.saved_model.save` of TensorFlow 2 marks every signature as a
*predict* signature. Clients that call TensorFlow Serving's Predict API, or `signatures[...]` of a loaded model, get the
same numbers; Regress and Classify calls are answered with an error: let them call Predict.
""",
    ),
    Rule(
        "TFM176",
        "a text export is written in binary form",
        Severity.REVIEW,
        """
`as_text=True` wrote the graph of a SavedModel as `saved_model.pbtxt`. `tf.saved_model.save` of TensorFlow 2 writes
`saved_model.pb` only; what it serves is the same. Let tools that read the text form read the binary one, by
`saved_model_cli show --dir FOLDER --all` for instance.
""",
    ),
    Rule(
        "TFM143",
        "exporters write once, after training",
        Severity.REVIEW,
        """
`LatestExporter` wrote a SavedModel after every evaluation and kept the newest five; `BestExporter` wrote when the
result was the best so far. The migrated program writes one when the training is over, which is the newest of them. A
`BestExporter` is supported only where there is one evaluation.
""",
    ),
)
