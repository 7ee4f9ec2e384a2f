"""What tf.contrib.image did to images: shifts, turns and projections."""

from __future__ import annotations

import tensorflow as tf
import tensorflow.compat.v1 as tf1


def translate_images(images, translations, interpolation="NEAREST", name=None):
    """Images that are shifted by [dx, dy], all alike or each by its own; what comes in is 0."""
    with tf1.name_scope(name, "translate"):
        return transform_images(images, translations_to_projective_transforms(translations), interpolation)


def rotate_images(images, angles, interpolation="NEAREST", name=None):
    """Images that are turned counterclockwise by radians, all alike or each by its own; what comes in is 0."""
    with tf1.name_scope(name, "rotate"):
        batch = _batch_of_images(tf.convert_to_tensor(images))
        height, width = (tf.cast(tf.shape(batch)[axis], tf.float32) for axis in (1, 2))
        return transform_images(images, angles_to_projective_transforms(angles, height, width), interpolation)


def translations_to_projective_transforms(translations, name=None):
    """The transforms, [images, 8], of shifts by [dx, dy]."""
    with tf1.name_scope(name, "translations_to_projective_transforms"):
        shifts = _rows(tf.convert_to_tensor(translations, dtype=tf.float32), 1, "Translations should have rank 1 or 2.")
        one, zero = tf.ones_like(shifts[:, :1]), tf.zeros_like(shifts[:, :1])
        return tf.concat([one, zero, -shifts[:, :1], zero, one, -shifts[:, 1:2], zero, zero], axis=1)


def angles_to_projective_transforms(angles, image_height, image_width, name=None):
    """The transforms, [images, 8], of turns around the middle of the image."""
    with tf1.name_scope(name, "angles_to_projective_transforms"):
        turns = _rows(tf.convert_to_tensor(angles, dtype=tf.float32), 0, "Angles should have rank 0 or 1.")
        cosine, sine, zero = tf.cos(turns)[:, None], tf.sin(turns)[:, None], tf.zeros_like(turns)[:, None]
        right, bottom = image_width - 1, image_height - 1
        x = (right - (cosine * right - sine * bottom)) / 2.0
        y = (bottom - (sine * right + cosine * bottom)) / 2.0
        return tf.concat([cosine, -sine, x, sine, cosine, y, zero, zero], axis=1)


def transform_images(images, transforms, interpolation="NEAREST", output_shape=None, name=None):
    """Images, [height, width] with or without batch and channels, by transforms of output points to input points."""
    with tf1.name_scope(name, "transform"):
        given = tf.convert_to_tensor(images)
        batch = _batch_of_images(given)
        if output_shape is None:
            known = batch.shape[1:3]
            output_shape = known.as_list() if known.is_fully_defined() else tf.shape(batch)[1:3]
        found = tf.raw_ops.ImageProjectiveTransformV3(
            images=batch,
            transforms=_rows(
                tf.convert_to_tensor(transforms, dtype=tf.float32), 1, "Transforms should have rank 1 or 2."
            ),
            output_shape=tf.convert_to_tensor(output_shape, tf.int32),
            fill_value=0.0,
            interpolation=interpolation.upper(),
            fill_mode="CONSTANT",
        )
        return {2: lambda: found[0, :, :, 0], 3: lambda: found[0], 4: lambda: found}[given.shape.rank]()


def compose_transforms(*transforms):
    """One transform for several that follow each other."""
    with tf1.name_scope("compose_transforms"):
        composed = flat_transforms_to_matrices(transforms[0])
        for one in transforms[1:]:
            composed = tf.matmul(composed, flat_transforms_to_matrices(one))
        return matrices_to_flat_transforms(composed)


def flat_transforms_to_matrices(transforms):
    """Matrices, [images, 3, 3], of transforms."""
    rows = tf.reshape(tf.convert_to_tensor(transforms), [-1, 8])
    return tf.reshape(tf.concat([rows, tf.ones([tf.shape(rows)[0], 1])], axis=1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices):
    """Transforms, [images, 8], of matrices."""
    rows = tf.reshape(tf.convert_to_tensor(transform_matrices), [-1, 9])
    return (rows / rows[:, 8:9])[:, :8]


def _batch_of_images(images):
    if images.shape.rank not in (2, 3, 4):
        raise TypeError("Images should have rank between 2 and 4.")
    return {2: lambda: images[None, :, :, None], 3: lambda: images[None], 4: lambda: images}[images.shape.rank]()


def _rows(values, rank, wrong):
    """A row for each image, of which there may be one alone."""
    if values.shape.rank not in (rank, rank + 1):
        raise TypeError(wrong)
    return values[None] if values.shape.rank == rank else values
