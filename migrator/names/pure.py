"""Functions of TensorFlow 1 that compute from their arguments alone, and that TensorFlow 2 keeps as `tf.compat.v1.X`.

They make no variables, draw no random numbers, read no graph and add to no collection: their compat.v1 version, which
is the very function of TensorFlow 1, gives the same in eager code, in a `tf.function`, in `tf.data` and on the tensors
of a Keras model. Source: the public names of `tf.compat.v1` in TensorFlow 2.21; tests/names/test_pure.py calls them
there, with numbers and with a `tf.keras.Input`.
"""

from __future__ import annotations

_OF_IMAGES = (
    *("resize", "resize_area", "resize_bicubic", "resize_bilinear", "resize_image_with_pad", "resize_images"),
    *("resize_nearest_neighbor", "crop_and_resize", "draw_bounding_boxes", "extract_glimpse"),
    "extract_image_patches",
)
_OF_STRINGS = ("length", "reduce_join", "split", "substr", "to_hash_bucket", "to_number")
_OF_MATH = ("argmax", "argmin", "confusion_matrix", "count_nonzero", "in_top_k", "log_softmax", "softmax")
_OF_NETWORKS = (
    *("avg_pool", "avg_pool2d", "max_pool", "max_pool_with_argmax", "pool"),
    *("crelu", "depth_to_space", "space_to_depth"),
    *("conv1d", "conv2d", "conv3d", "convolution", "depthwise_conv2d", "depthwise_conv2d_native", "separable_conv2d"),
    *("conv2d_transpose", "conv3d_transpose", "dilation2d", "erosion2d", "in_top_k", "log_softmax", "softmax"),
    *("moments", "weighted_moments", "sufficient_statistics", "relu_layer", "xw_plus_b"),
    *("ctc_loss_v2", "weighted_cross_entropy_with_logits"),
)
_PLAIN = (
    *("argmax", "argmin", "batch_gather", "batch_to_space", "batch_to_space_nd", "boolean_mask"),
    "clip_by_average_norm",
    *("confusion_matrix", "count_nonzero", "decode_csv", "decode_raw", "depth_to_space", "expand_dims"),
    *("extract_image_patches", "gather", "gather_nd", "norm", "ones_like", "pad", "parse_example"),
    *("parse_single_example", "reduce_join", "setdiff1d", "shape", "size", "space_to_batch", "space_to_depth"),
    *("sparse_to_dense", "squeeze", "string_split", "string_to_hash_bucket", "string_to_number", "substr", "transpose"),
    "zeros_like",
)

PURE = frozenset(
    (
        *(f"tf.image.{name}" for name in _OF_IMAGES),
        *(f"tf.strings.{name}" for name in _OF_STRINGS),
        *(f"tf.math.{name}" for name in _OF_MATH),
        *(f"tf.nn.{name}" for name in _OF_NETWORKS),
        *(f"tf.io.{name}" for name in ("decode_csv", "decode_raw", "parse_example", "parse_single_example")),
        *(f"tf.{name}" for name in _PLAIN),
        "tf.linalg.norm",
    )
)


def kept(name: str) -> str | None:
    """The name of TensorFlow 2.21 for the function that TensorFlow 1 called `tf.X`; None if it is none of these."""
    return f"tf.compat.v1.{name.removeprefix('tf.')}" if name in PURE else None
