"""Functions that resize images: TensorFlow 2 looks for the pixels elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import is_false, is_none, string
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression

_METHODS = {"bilinear": "ResizeBilinear", "nearest": "ResizeNearestNeighbor", "bicubic": "ResizeBicubic"}
_METHODS["area"] = "ResizeArea"
_NUMBERS = ("bilinear", "nearest", "bicubic", "area")
_WORDS = ("BILINEAR", "NEAREST_NEIGHBOR", "BICUBIC", "AREA")
#: What TensorFlow 1 counted has a word in TensorFlow 2.
REFERENCES = {f"tf.image.ResizeMethod.{word}": f'"{name}"' for word, name in zip(_WORDS, _NUMBERS)}
_TEXT = '''\
def {{name}}(images, size, align_corners=False):
    """Resizes one image or a batch as TensorFlow 1 did: tf.image.resize looks half a pixel further."""
    images = tf.convert_to_tensor(images)
    known = tf.get_static_value(tf.convert_to_tensor(size, tf.int32))
    if known is not None and images.shape[-3:-1] == list(known):
        return images
    batch = images[tf.newaxis] if images.shape.rank == 3 else images
    resized = tf.raw_ops.{operation}(images=batch, size=size, align_corners=align_corners)
    return resized[0] if images.shape.rank == 3 else resized
'''
_IMAGES = ("images", "size", "method", "align_corners", "preserve_aspect_ratio", "name")
_BATCHES = ("images", "size", "align_corners", "name", "half_pixel_centers")


def _resize_images(site: Site) -> cst.BaseExpression:
    """`tf.image.resize_images(...)`, by a function of the user's file."""
    new = site.arguments(_IMAGES, "TFM244")
    given = new.get("method")
    method: str | None = "bilinear"
    if isinstance(given, cst.Integer):
        number = int(given.value, 0)
        method = _NUMBERS[number] if number < len(_NUMBERS) else None
    elif given is not None:
        method = string(given)
    if method not in _METHODS or "images" not in new or "size" not in new:
        message = (
            "the method of this `tf.image.resize_images` is not a literal: use a constant of tf.image.ResizeMethod"
        )
        raise Blocked("TFM244", site.original, message)
    kept = new.get("preserve_aspect_ratio")
    if not is_none(kept) and not is_false(kept):
        message = "`preserve_aspect_ratio` of `tf.image.resize_images` is unsupported: compute the size first"
        raise Blocked("TFM244", site.original, message)
    name = site.helper(f"resize_{method}", _TEXT.format(operation=_METHODS[method]))
    arguments = [site.code(new["images"]), site.code(new["size"])]
    corners = new.get("align_corners")
    if corners is not None and not is_false(corners):
        arguments.append(f"align_corners={site.code(corners)}")
    return expression(call_text(name, arguments))


def _resize_batch(operation: str) -> CallRule:
    """The rule of a function that is one operation, which TensorFlow 2 has under its own name."""

    def rule(site: Site) -> cst.BaseExpression:
        new = site.arguments(_BATCHES, "TFM244")
        settled = ("align_corners", "half_pixel_centers")
        arguments = [f"{key}={site.code(node)}" for key, node in new.items() if not (key in settled and is_false(node))]
        return expression(call_text(f"tf.raw_ops.{operation}", arguments))

    return rule


def helpers_in(classes: Mapping[str, str]) -> frozenset[str]:
    """The functions of a file, among what is written into it, that resize images."""
    return frozenset(name for name, text in classes.items() if "tf.raw_ops.Resize" in text)


CALLS: dict[str, CallRule] = {
    "tf.image.resize_images": _resize_images,
    "tf.image.resize_bilinear": _resize_batch("ResizeBilinear"),
    "tf.image.resize_nearest_neighbor": _resize_batch("ResizeNearestNeighbor"),
    "tf.image.resize_bicubic": _resize_batch("ResizeBicubic"),
    "tf.image.resize_area": _resize_batch("ResizeArea"),
}
RULES = (
    Rule(
        "TFM244",
        "an unsupported way to resize images",
        Severity.MANUAL,
        """
`tf.image.resize` of TensorFlow 2 looks for each new pixel half a pixel further than `tf.image.resize_images` of
TensorFlow 1, so that other images come out. The new program calls the operation of TensorFlow 1 by its name
(`tf.raw_ops.ResizeBilinear` and the others), which gives the same images. `tf.image.resize_images` takes one image or a
batch, and leaves images of the right size alone: a function in the user's file does the same. The method has to be
written out, and `preserve_aspect_ratio` has to be False. Inside a network these operations take no symbolic tensors of
Keras: such a program becomes a bridge.
""",
        (
            Example("tf.image.resize_images(image, [8, 8])", "resize_bilinear(image, [8, 8])"),
            Example(
                "tf.image.resize_images(image, [8, 8], method=tf.image.ResizeMethod.NEAREST_NEIGHBOR)",
                "resize_nearest(image, [8, 8])",
            ),
            Example("tf.image.resize_images(image, [8, 8], 3)", "resize_area(image, [8, 8])"),
            Example("tf.image.resize_images(image, [8, 8], method)", None),
            Example("tf.image.resize_images(image, [8, 8], preserve_aspect_ratio=True)", None),
            Example(
                "tf.image.resize_bilinear(images, [8, 8], align_corners=True)",
                "tf.raw_ops.ResizeBilinear(images=images, size=[8, 8], align_corners=True)",
            ),
            Example(
                "tf.image.resize_nearest_neighbor(images, [8, 8])",
                "tf.raw_ops.ResizeNearestNeighbor(images=images, size=[8, 8])",
            ),
            Example("tf.image.resize_bicubic(images, [8, 8])", "tf.raw_ops.ResizeBicubic(images=images, size=[8, 8])"),
            Example("tf.image.resize_area(images, [8, 8])", "tf.raw_ops.ResizeArea(images=images, size=[8, 8])"),
        ),
    ),
)
