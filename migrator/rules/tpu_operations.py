"""What a program that is to train on a TPU should change first: operations and batches that a TPU has not."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import calls_in
from migrator.program.parsed import Blocked, ParsedFile, Project
from migrator.program.region import reach
from migrator.program.training import TrainingProgram
from migrator.rules.batches import uneven_batches
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM432",
        "an operation that TPUs lack",
        Severity.REVIEW,
        """
The step of a TPU is compiled as a whole, by XLA, and runs on the TPU alone. There are no strings, no lookup tables and
no Python there. The step fails where it is compiled, which is on the TPU. Do it in the input function, which runs on
the host: give the model numbers, such as the index of a word in a vocabulary. Where the program runs without a TPU
nothing of it matters.

Of a bridge it is `--try` that tells it, by the operations that the model_fn has made on a stand-in for a TPU.
""",
    ),
    Rule(
        "TFM433",
        "several batch sizes on a TPU",
        Severity.REVIEW,
        """
The last batch of these training data may be smaller than the others. A TPU computes with shapes that are known when the
step is compiled: it pads such a batch, compiles again, and the cores that divide it get parts of different sizes, or
none, each of which counts as much as the others. A TPUEstimator refused batches whose size is not known. Give `batch`
`drop_remainder=True`, or repeat the data before they are put into batches.
""",
    ),
)
_STRINGS = ("tf.strings.", "tf.string_", "tf.regex_", "tf.decode_", "tf.io.decode_", "tf.parse_", "tf.io.parse_")
_TABLES = ("tf.lookup.", "tf.contrib.lookup.")
_PYTHON = ("tf.py_func", "tf.py_function", "tf.numpy_function", "tf.contrib.eager.py_func")
_TEXTS = ("tf.as_string", "tf.substr", "tf.reduce_join", "tf.encode_base64", "tf.decode_base64")
_COLUMNS = tuple(
    f"tf.{place}.categorical_column_with_{kind}"
    for place in ("feature_column", "contrib.feature_column")
    for kind in ("hash_bucket", "vocabulary_list", "vocabulary_file")
)


def told_on_tpu(project: Project, program: TrainingProgram) -> list[Blocked]:
    """Remarks on what the model computes that a TPU cannot, and on training data whose last batch may be smaller."""
    remarks = list(_operations(project, program))
    for training in program.trainings:
        call = uneven_batches(project, program, training.get("input_fn"), "train")
        if call is not None and (where := _file_of(project, program, call)) is not None:
            message = "the last batch may be smaller, which a TPU pads and recompiles: pass drop_remainder=True"
            remarks.append(Blocked("TFM433", call if where is program.file else program.place.call, message))
    return remarks


def _operations(project: Project, program: TrainingProgram) -> Iterator[Blocked]:
    """The first call of each kind that the model_fn, or what it reaches, makes."""
    told = set()
    nodes = reach(project, program.model_file, program.model_fn)
    for node, file in nodes.items():
        for call in calls_in(node):
            name = file.imports.tensorflow(call.func) or ""
            why = _why(name)
            if why and name not in told:
                told.add(name)
                place = call if file is program.file else program.place.call
                yield Blocked("TFM432", place, f"`{name}` {why}: do it in the input_fn")
    for call in calls_in(program.file.module):
        name = program.file.imports.tensorflow(call.func) or ""
        if name in _COLUMNS and name not in told:
            told.add(name)
            message = (
                f"`{name}` looks up words or numbers, and a TPU has neither strings nor tables: pass their indices"
            )
            yield Blocked("TFM432", call, message)


def _why(name: str) -> str:
    """What a TPU lacks for a function of TensorFlow 1; nothing where it has all."""
    if name.startswith(_STRINGS) or name in _TEXTS:
        return "works on strings, which TPUs lack"
    if name.startswith(_TABLES):
        return "looks up a table, which TPUs lack"
    return "runs Python, which a TPU cannot" if name in _PYTHON else ""


def _file_of(project: Project, program: TrainingProgram, node: cst.CSTNode) -> ParsedFile | None:
    files = [program.file, *project.files]
    return next((file for file in files if node in file.parents), None)
