"""Functions that come out as `tf.compat.v1.X`: when, and what they give on TensorFlow 2.21 in a Keras model and not."""

from __future__ import annotations

import json
from pathlib import Path

import libcst as cst
import pytest

from migrator.names.imports import read_imports
from migrator.names.pure import PURE
from migrator.rules.rewriter import Rewriter
from tests import warm

# One call for each function, whatever module it is also in: m is an image, x a matrix, s texts, i integers.
CALLS = {
    "resize": "tf.image.resize(m, [2, 2], align_corners=True)",
    "resize_area": "tf.image.resize_area(m, [2, 2])",
    "resize_bicubic": "tf.image.resize_bicubic(m, [2, 2], True)",
    "resize_bilinear": "tf.image.resize_bilinear(m, [2, 2])",
    "resize_image_with_pad": "tf.image.resize_image_with_pad(m, 6, 6)",
    "resize_images": "tf.image.resize_images(m, [3, 3])",
    "resize_nearest_neighbor": "tf.image.resize_nearest_neighbor(m, [3, 3])",
    "crop_and_resize": "tf.image.crop_and_resize(m, [[0.0, 0.0, 0.5, 0.5]], box_ind=[0], crop_size=[2, 2])",
    "draw_bounding_boxes": "tf.image.draw_bounding_boxes(tf.tile(m, [1, 1, 1, 3]), [[[0.1, 0.1, 0.9, 0.9]]])",
    "extract_glimpse": "tf.image.extract_glimpse(m, [2, 2], [[0.0, 0.0]])",
    "extract_image_patches": "tf.image.extract_image_patches(m, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], 'VALID')",
    "length": "tf.strings.length(s)",
    "reduce_join": "tf.strings.reduce_join(s, 0, False, '-')",
    "split": "tf.strings.split(s, ' ').values",
    "substr": "tf.strings.substr(s, 0, 1)",
    "to_hash_bucket": "tf.strings.to_hash_bucket(s, 7)",
    "to_number": "tf.strings.to_number(tf.strings.substr(s, 0, 1))",
    "argmax": "tf.argmax(x, dimension=1)",
    "argmin": "tf.argmin(x, 1)",
    "confusion_matrix": "tf.confusion_matrix(i[0], i[1], 6)",
    "count_nonzero": "tf.count_nonzero(i, keep_dims=True)",
    "in_top_k": "tf.nn.in_top_k(x, [0, 1], 1)",
    "log_softmax": "tf.nn.log_softmax(x, dim=0)",
    "softmax": "tf.nn.softmax(x, dim=0)",
    "avg_pool": "tf.nn.avg_pool(m, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')",
    "avg_pool2d": "tf.nn.avg_pool2d(m, 2, 2, 'SAME')",
    "max_pool": "tf.nn.max_pool(m, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')",
    "max_pool_with_argmax": "tf.nn.max_pool_with_argmax(m, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME')[1]",
    "pool": "tf.nn.pool(m, [2, 2], 'MAX', 'SAME')",
    "crelu": "tf.nn.crelu(x)",
    "depth_to_space": "tf.depth_to_space(tf.tile(m, [1, 1, 1, 4]), 2)",
    "space_to_depth": "tf.space_to_depth(m, 2)",
    "conv1d": "tf.nn.conv1d(m[:, 0], tf.ones([2, 1, 3]), 1, 'SAME')",
    "conv2d": "tf.nn.conv2d(m, tf.ones([2, 2, 1, 3]), [1, 1, 1, 1], 'SAME', use_cudnn_on_gpu=False)",
    "conv3d": "tf.nn.conv3d(m[:, :, :, :, None], tf.ones([2, 2, 1, 1, 3]), [1, 1, 1, 1, 1], 'SAME')",
    "convolution": "tf.nn.convolution(m, tf.ones([2, 2, 1, 3]), 'SAME')",
    "depthwise_conv2d": "tf.nn.depthwise_conv2d(m, tf.ones([2, 2, 1, 3]), [1, 1, 1, 1], 'SAME')",
    "depthwise_conv2d_native": "tf.nn.depthwise_conv2d_native(m, tf.ones([2, 2, 1, 3]), [1, 1, 1, 1], 'SAME')",
    "separable_conv2d": "tf.nn.separable_conv2d(m, tf.ones([2, 2, 1, 3]), tf.ones([1, 1, 3, 2]), [1, 1, 1, 1], 'SAME')",
    "conv2d_transpose": "tf.nn.conv2d_transpose(m, tf.ones([2, 2, 3, 1]), [1, 8, 8, 3], [1, 2, 2, 1])",
    "conv3d_transpose": "tf.nn.conv3d_transpose(m[..., None], k, [1, 8, 8, 1, 3], [1, 2, 2, 1, 1])",
    "dilation2d": "tf.nn.dilation2d(m, tf.ones([2, 2, 1]), [1, 1, 1, 1], [1, 1, 1, 1], 'SAME')",
    "erosion2d": "tf.nn.erosion2d(m, tf.ones([2, 2, 1]), [1, 1, 1, 1], [1, 1, 1, 1], 'SAME')",
    "moments": "tf.nn.moments(x, [0], keep_dims=True)[1]",
    "weighted_moments": "tf.nn.weighted_moments(x, [0], tf.ones_like(x), keep_dims=True)[1]",
    "sufficient_statistics": "tf.nn.sufficient_statistics(x, [0], keep_dims=True)[1]",
    "relu_layer": "tf.nn.relu_layer(x, tf.ones([3, 2]), tf.ones([2]))",
    "xw_plus_b": "tf.nn.xw_plus_b(x, tf.ones([3, 2]), tf.ones([2]))",
    "ctc_loss_v2": "tf.nn.ctc_loss_v2(i[:, :2], x[:, None, :] + tf.zeros([2, 2, 3]), [1, 1], [2, 2], False)",
    "weighted_cross_entropy_with_logits": "tf.nn.weighted_cross_entropy_with_logits(targets=x, logits=x, pos_weight=2)",
    "batch_gather": "tf.batch_gather(x, [[1], [0]])",
    "batch_to_space": "tf.batch_to_space(tf.tile(m, [4, 1, 1, 1]), [[0, 0], [0, 0]], 2)",
    "batch_to_space_nd": "tf.batch_to_space_nd(tf.tile(m, [4, 1, 1, 1]), [2, 2], [[0, 0], [0, 0]])",
    "space_to_batch": "tf.space_to_batch(m, [[0, 0], [0, 0]], 2)",
    "boolean_mask": "tf.boolean_mask(x, [True, False])",
    "clip_by_average_norm": "tf.clip_by_average_norm(x, 0.1)",
    "decode_csv": "tf.decode_csv(s, [['']], ';')[0]",
    "decode_raw": "tf.decode_raw(tf.substr(s, 0, 1), tf.uint8)",
    "expand_dims": "tf.expand_dims(x, dim=1)",
    "gather": "tf.gather(x, [1])",
    "gather_nd": "tf.gather_nd(x, [[1, 1]])",
    "norm": "tf.norm(x, axis=1, keep_dims=True)",
    "ones_like": "tf.ones_like(x, optimize=False)",
    "pad": "tf.pad(x, [[0, 1], [1, 0]])",
    "parse_example": "tf.parse_example(e, {'a': tf.FixedLenFeature([], tf.float32)})['a']",
    "parse_single_example": "tf.parse_single_example(e[0], {'a': tf.FixedLenFeature([], tf.float32)})['a']",
    "setdiff1d": "tf.setdiff1d(i[0], i[1])[0]",
    "shape": "tf.shape(x, out_type=tf.int64)",
    "size": "tf.size(x)",
    "sparse_to_dense": "tf.sparse_to_dense(i[0], [6], 1)",
    "squeeze": "tf.squeeze(m, squeeze_dims=[3])",
    "string_split": "tf.string_split(s, ' ').values",
    "string_to_hash_bucket": "tf.string_to_hash_bucket(s, 7)",
    "string_to_number": "tf.string_to_number(tf.substr(s, 0, 1))",
    "transpose": "tf.transpose(x, [1, 0])",
    "zeros_like": "tf.zeros_like(x, optimize=False)",
}

RUN = """
import json, sys
import numpy as np
import tensorflow
tf = tensorflow.compat.v1
example = tensorflow.train.Example(features=tensorflow.train.Features(
    feature={"a": tensorflow.train.Feature(float_list=tensorflow.train.FloatList(value=[2.5]))})).SerializeToString()
GIVEN = {
    "m": tf.reshape(tf.range(16.0), [1, 4, 4, 1]),
    "k": tf.ones([2, 2, 1, 3, 1]),
    "x": tf.constant([[0.5, -1.5, 2.0], [3.0, 0.25, -0.5]]),
    "i": tf.constant([[1, 2, 5], [2, 1, 3]]),
    "s": tf.constant(["1 b", "2 c"]),
    "e": tf.constant([example, example]),
}
found = {}
for name, text in json.load(sys.stdin).items():
    read = [key for key in GIVEN if key in {c.id for c in __import__("ast").walk(__import__("ast").parse(text))
                                             if hasattr(c, "id")}]
    eager = eval(text, {"tf": tf, **GIVEN})
    inputs = {key: tensorflow.keras.Input(batch_shape=GIVEN[key].shape, dtype=GIVEN[key].dtype) for key in read}
    model = tensorflow.keras.Model(inputs, eval(text, {"tf": tf, **inputs}))
    within = model({key: GIVEN[key] for key in read})
    found[name] = [np.asarray(value).tolist() for value in (eager, within)]
print(json.dumps(found, default=str))
"""


def migrated(text: str, imports: str = "import tensorflow as tf") -> tuple[str, list[str]]:
    """The expression as the codemod writes it, and what it refuses."""
    module = cst.parse_module(f"{imports}\nresult = {text}\n")
    line = module.body[-1]
    assert isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Assign)
    rewriter = Rewriter(read_imports(module, module.code), module.code_for_node)
    new = line.body[0].value.visit(rewriter)
    assert isinstance(new, cst.BaseExpression)
    return module.code_for_node(new), [problem.code for problem in rewriter.problems]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tf.image.resize(m, [2, 2])", "tf.compat.v1.image.resize(m, [2, 2])"),
        ("tf.image.resize_image_with_pad(m, 6, 6)", "tf.compat.v1.image.resize_image_with_pad(m, 6, 6)"),
        ("tf.strings.split(s, ' ').values", "tf.compat.v1.strings.split(s, ' ').values"),
        # what TensorFlow 2 says with other names is said so
        ("tf.argmax(x, dimension=1)", "tf.argmax(x, axis=1)"),
        # what it has no word for keeps the function of TensorFlow 1
        ("tf.pad(x, *paddings)", "tf.compat.v1.pad(x, *paddings)"),
        ("tf.parse_example(e, **spec)", "tf.compat.v1.parse_example(e, **spec)"),
    ],
)
def test_what_comes_out(old: str, new: str) -> None:
    assert migrated(old) == (new, [])


def test_what_makes_variables_or_reads_the_graph_stays_refused() -> None:
    for text in ("tf.get_variable('w', [1])", "tf.placeholder(tf.float32)", "tf.nn.dynamic_rnn(cell, x)"):
        assert migrated(text)[1] == ["TFM203"], text


def test_a_name_that_means_tensorflow_2_is_not_touched() -> None:
    text, codes = migrated("tf.image.resize(m, [2, 2])", "import tensorflow as tf\nimport tensorflow.compat.v1 as tf1")
    assert (text, codes) == ("tf.image.resize(m, [2, 2])", [])


def test_every_function_has_a_call() -> None:
    assert {name.rpartition(".")[2] for name in PURE} == set(CALLS)


@pytest.mark.tensorflow
def test_they_give_the_same_inside_and_outside_of_a_keras_model(tmp_path: Path) -> None:
    from migrator.harness.environments import migrated_python

    given = json.dumps(CALLS)
    run = warm.run(migrated_python(), "-c", RUN, stdin=given, cwd=tmp_path)
    assert run.returncode == 0, run.stderr[-2000:]
    answers = json.loads(run.stdout.splitlines()[-1])
    assert not {name: pair for name, pair in answers.items() if pair[0] != pair[1]}
