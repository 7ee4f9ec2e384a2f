"""Calls whose arguments changed: the table against the signatures of TensorFlow, and examples run in both versions."""

from __future__ import annotations

import json
from pathlib import Path

import libcst as cst
import pytest

from migrator.names.imports import read_imports
from migrator.names.signatures import SIGNATURES
from migrator.rules.rewriter import Rewriter
from tests import warm

SIGNATURE = """
import inspect, json, sys
import tensorflow as tf
from tensorflow.python.util import tf_decorator

def parameters(root, name):
    value = root
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return list(inspect.signature(tf_decorator.unwrap(value)[1]).parameters)

answers = {}
for old, new in json.load(sys.stdin):
    answers[old] = [parameters(tf.compat.v1, old), parameters(tf, new)]
print(json.dumps(answers))
"""

# What the original is given and what it computes; x and m are tensors of floats, i of integers, b of booleans.
EXAMPLES = (
    "tf.reduce_sum(x, 1, True)",
    "tf.reduce_sum(x, keep_dims=True, reduction_indices=[0])",
    "tf.reduce_logsumexp(x, axis=0, keep_dims=True)",
    "tf.reduce_any(b, reduction_indices=1)",
    "tf.math.reduce_mean(x, 0)",
    "tf.argmax(x, dimension=1)",
    "tf.argmax(x, 1, 'best', output_type=tf.int32)",
    "tf.arg_max(x, 1, tf.int32)",
    "tf.argmin(x)",
    "tf.nn.softmax(x, dim=0)",
    "tf.nn.log_softmax(x, 0)",
    "tf.nn.l2_normalize(x, dim=1)",
    "tf.nn.l2_normalize(x, 0, 1e-3)",
    "tf.nn.moments(x, [0], keep_dims=True)",
    "tf.nn.moments(x, [0, 1], None, 'moments')",
    "tf.nn.in_top_k(x, [1, 0, 2], 2)",
    "tf.nn.in_top_k(targets=[1, 0, 2], predictions=x, k=1)",
    "tf.nn.max_pool(m, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')",
    "tf.nn.avg_pool(value=m, ksize=[1, 2, 2, 1], strides=[1, 1, 1, 1], padding='VALID')",
    "tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=x * 2.0)",
    "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 0, 2], logits=x)",
    "tf.nn.softmax_cross_entropy_with_logits_v2(tf.nn.softmax(x), x)",
    "tf.nn.softmax_cross_entropy_with_logits(labels=tf.nn.softmax(x), logits=x)",
    "tf.nn.softmax_cross_entropy_with_logits(labels=tf.nn.softmax(x, 0), logits=x, dim=0)",
    "tf.map_fn(lambda row: row * 2.0 + 1.0, x)",
    "tf.map_fn(tf.reduce_sum, x, tf.float32, name='sums')",
    "tf.map_fn(lambda row: tf.cast(row[0] * 10.0, tf.int32), elems=x, dtype=tf.int32, infer_shape=False)",
    "tf.squeeze(m, squeeze_dims=[0])",
    "tf.expand_dims(x, dim=1)",
    "tf.shape(x, 'shape', tf.int64)",
    "tf.size(x, out_type=tf.int64)",
    "tf.constant(3, tf.float32, [2], 'c', False)",
    "tf.zeros_like(tensor=x, optimize=False)",
    "tf.ones_like(i, tf.float32)",
    "tf.transpose(x, [1, 0], 't')",
    "tf.transpose(x)",
    "tf.gather(x, [1], None, 'g', 1)",
    "tf.gather(x, [2, 0])",
    "tf.gather_nd(x, [[1, 1]], 'g')",
    "tf.pad(x, [[0, 1], [1, 0]], 'CONSTANT', 'p', 7.0)",
    "tf.convert_to_tensor([1, 2], preferred_dtype=tf.float32)",
    "tf.boolean_mask(x, [True, False, True], 'm', 0)",
    "tf.norm(x, axis=1, keep_dims=True)",
    "tf.count_nonzero(i, reduction_indices=1)",
    "tf.reverse_sequence(x, [1, 2, 3], seq_dim=1, batch_dim=0)",
    "tf.confusion_matrix([0, 1, 1], [1, 1, 0], 2, tf.float32, None, [1.0, 2.0, 3.0])",
    "tf.decode_csv(['1,2.5'], [[0], [0.0]], ',', True, 'columns')",
    "tf.decode_csv(['1|'], [[0], [3.0]], '|', na_value='')",
    "tf.decode_raw(bytes=['abcd'], out_type=tf.uint8)",
    "tf.string_to_number(string_tensor=['1.5', '2'])",
    "tf.string_to_number(['1', '2'], tf.int32)",
    "tf.string_to_hash_bucket(['a', 'b'], 10)",
    "tf.reduce_join([['a', 'b'], ['c', 'd']], 1, False, '-')",
    "tf.reduce_join([['a', 'b'], ['c', 'd']], reduction_indices=0, keep_dims=True)",
    "tf.substr(['hello'], 1, 3)",
    "tf.py_func(lambda v: v * 2, [x], tf.float32)",
    "tf.py_func(lambda v: (v, v + 1), [x], [tf.float32, tf.float32], False)",
    "tf.gfile.Exists(filename='/nowhere')",
    "tf.gfile.IsDirectory('/')",
    "tf.gfile.Glob('/nowhere/*')",
    "tf.div(x, 2.0)",
    "tf.div(tf.shape(x)[0], 2)",
    "tf.div(-tf.shape(x)[0], tf.size(x))",
    "tf.where(x > 0.5)",
    "tf.where(x > 0.5, x, tf.zeros_like(x))",
    "tf.where(tf.is_nan(x), tf.ones_like(x), x)",
    "tf.where([True, False, True], x, -x)",
    "tf.where([True, False, True], tf.ones([3, 3]), tf.zeros([3, 3]))",
    "tf.where(True, x, -x)",
    "tf.nn.xw_plus_b(x, tf.transpose(x), [1.0, 2.0, 3.0])",
    "tf.string_split(['a b  c', ''])",
    "tf.string_split(['a,b;c,', ';'], ',;', skip_empty=False)",
    "list(tf.python_io.tf_record_iterator(records))",
    "tf.scalar_mul(2.0, x)",
    "sorted(tf.feature_column.make_parse_example_spec([tf.feature_column.numeric_column('a', 2)]).items())",
    "tf.to_float(i)",
    "tf.to_int32(x)",
    "tf.log(x + 2.0)",
    "tf.math.log(x + 2.0)",
    "tf.nn.relu6(x * 9.0)",
    "tf.mod(i, 2)",
    "tf.floor_div(i, 2)",
    "tf.matrix_band_part(x, 0, -1)",
    "tf.matrix_diag([1.0, 2.0])",
    "tf.sparse_tensor_to_dense(tf.SparseTensor([[1]], [5], [3]), -1)",
    "tf.compat.as_text(b'a')",
    "tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY",
    "tf.saved_model.tag_constants.SERVING",
)

RUN = """
import json, os, sys, tempfile
import numpy as np
import tensorflow

records = os.path.join(tempfile.mkdtemp(), "records")
with tensorflow.io.TFRecordWriter(records) as writer:
    writer.write(b"one")
    writer.write(b"two")

def value(text, root):
    scope = {
        "tf": root,
        "x": root.constant([[0.5, -1.5, 2.0], [3.0, 0.25, -0.5], [1.0, 1.0, 4.0]]),
        "m": root.reshape(root.range(16.0), [1, 4, 4, 1]),
        "i": root.constant([[0, -3, 2], [5, 0, 0]]),
        "b": root.constant([[True, False], [False, False]]),
        "records": records,
    }
    return plain(eval(text, scope))

def plain(value):
    if isinstance(value, (tensorflow.SparseTensor, tensorflow.compat.v1.SparseTensorValue)):
        return [plain(part) for part in (value.indices, value.values, value.dense_shape)]
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "numpy"):
        value = value.numpy()
    return [repr(getattr(value, "dtype", type(value))), repr(np.asarray(value).tolist())]

print(json.dumps([[value(old, tensorflow.compat.v1), value(new, tensorflow)] for old, new in json.load(sys.stdin)]))
"""


def migrated(text: str) -> str:
    """The expression as the codemod writes it."""
    module = cst.parse_module(f"import tensorflow as tf\nresult = {text}\n")
    line = module.body[1]
    assert isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Assign)
    rewriter = Rewriter(read_imports(module), module.code_for_node)
    new = line.body[0].value.visit(rewriter)
    assert not rewriter.problems, rewriter.problems
    assert isinstance(new, cst.BaseExpression)
    return module.code_for_node(new)


def ask(script: str, question: object, tmp_path: Path) -> object:
    from migrator.harness.environments import migrated_python

    run = warm.run(migrated_python(), "-c", script, stdin=json.dumps(question), cwd=tmp_path)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout.splitlines()[-1])


def test_examples_are_carried_over() -> None:
    changed = [text for text in EXAMPLES if migrated(text) != text]
    assert len(changed) > 50
    assert not [text for text in map(migrated, EXAMPLES) if "compat.v1" in text]


@pytest.mark.tensorflow
def test_parameters_are_what_tensorflow_has(tmp_path: Path) -> None:
    answers = ask(SIGNATURE, [(old, new) for old, (new, _) in SIGNATURES.items()], tmp_path)
    assert isinstance(answers, dict)
    for old, (_, signature) in SIGNATURES.items():
        before, after = answers[old]
        # TensorFlow 1.15 had one parameter more here, and TensorFlow 2.21 has one that 1.15 had not.
        names = [p.old for p in signature.parameters if p.old != "_sentinel"]
        assert names == [name for name in before if name != "bad_indices_policy"], old
        for index, parameter in enumerate(signature.parameters):
            if parameter.new is not None:
                assert parameter.new in after, (old, parameter)
            if index < signature.shared:
                assert parameter.new == after[index], (old, parameter)


@pytest.mark.tensorflow
def test_both_versions_compute_the_same(tmp_path: Path) -> None:
    answers = ask(RUN, [(text, migrated(text)) for text in EXAMPLES], tmp_path)
    assert isinstance(answers, list)
    different = [(text, *answer) for text, answer in zip(EXAMPLES, answers, strict=True) if answer[0] != answer[1]]
    assert not different
