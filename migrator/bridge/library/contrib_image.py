"""What tf.contrib.image did to images: shifts, turns and projections."""

from __future__ import annotations

import numpy as np
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


def dense_image_warp(image, flow, name="dense_image_warp"):
    """Images, [batch, height, width, channels], whose point (y, x) comes from (y, x) - flow; edges go on outside."""
    with tf1.name_scope(name):
        image, flow = tf.convert_to_tensor(image), tf.convert_to_tensor(flow)
        batch, height, width, channels = tf.unstack(tf.shape(image))
        grid = tf.stack(tf.meshgrid(tf.range(height), tf.range(width), indexing="ij"), 2)
        points = tf.reshape(tf.cast(grid, flow.dtype)[tf.newaxis] - flow, [batch, height * width, 2])
        found = []
        for axis, size in enumerate((height, width)):
            at = points[:, :, axis]
            low = tf.clip_by_value(tf.floor(at), 0, tf.cast(size - 2, at.dtype))
            share = tf.clip_by_value(tf.cast(at - low, image.dtype), 0, 1)
            found.append((tf.cast(low, tf.int32), share[:, :, tf.newaxis]))
        (top, down), (left, right) = found

        def corner(lower, further):
            return tf.gather_nd(image, tf.stack([top + lower, left + further], 2), batch_dims=1)

        above = right * (corner(0, 1) - corner(0, 0)) + corner(0, 0)
        below = right * (corner(1, 1) - corner(1, 0)) + corner(1, 0)
        return tf.reshape(down * (below - above) + above, [batch, height, width, channels])


def resampler(data, warp, name="resampler"):
    """What images, [batch, height, width, channels], have at points (x, y); outside of them they are 0."""
    with tf1.name_scope(name, "resampler", [data, warp]):
        data, warp = tf.convert_to_tensor(data), tf.convert_to_tensor(warp)
        outer, channels = tf.shape(warp)[:-1], tf.shape(data)[3]
        points = tf.reshape(warp, [outer[0], -1, 2])
        height, width = tf.shape(data)[1], tf.shape(data)[2]
        left, top = tf.floor(points[:, :, 0]), tf.floor(points[:, :, 1])
        right, down = points[:, :, 0] - left, points[:, :, 1] - top

        def corner(lower, further, share):
            y, x = tf.cast(top, tf.int32) + lower, tf.cast(left, tf.int32) + further
            inside = (y >= 0) & (x >= 0) & (y < height) & (x < width)
            at = tf.stack([tf.clip_by_value(y, 0, height - 1), tf.clip_by_value(x, 0, width - 1)], 2)
            share = tf.where(inside, share, tf.zeros_like(share))
            return share[:, :, tf.newaxis] * tf.gather_nd(data, at, batch_dims=1)

        found = corner(0, 0, (1 - right) * (1 - down)) + corner(1, 1, right * down)
        found += corner(0, 1, right * (1 - down)) + corner(1, 0, (1 - right) * down)
        made = tf.reshape(found, tf.concat([outer, [channels]], 0))
        made.set_shape(warp.shape[:-1].concatenate(data.shape[3:]))
        return made


def interpolate_spline(
    train_points, train_values, query_points, order, regularization_weight=0.0, name="interpolate_spline"
):
    """The values, [batch, m, k], of a polyharmonic spline through `train_values` at `train_points`, [batch, n, d]."""
    with tf1.name_scope(name):
        points, values, asked = (tf.convert_to_tensor(one) for one in (train_points, train_values, query_points))
        if points.shape[-1] is None or values.shape[-1] is None:
            raise ValueError("The dimensions of the points and of the values must be known.")
        batch, count = tf.shape(points)[0], tf.shape(points)[1]
        size = points.shape[-1] + 1
        near = _spline_kernel(_squared_distances(points, points), order)
        if regularization_weight > 0:
            near += regularization_weight * tf.eye(count, dtype=points.dtype)
        line = tf.concat([points, tf.ones_like(points[..., :1])], 2)
        left = tf.concat([near, tf.transpose(line, [0, 2, 1])], 1)
        right = tf.concat([line, tf.zeros([batch, size, size], points.dtype)], 1)
        wanted = tf.concat([values, tf.zeros([batch, size, values.shape[-1]], points.dtype)], 1)
        found = tf.linalg.solve(tf.concat([left, right], 2), wanted)
        curved = tf.matmul(_spline_kernel(_squared_distances(asked, points), order), found[:, :count])
        straight = tf.matmul(tf.concat([asked, tf.ones_like(asked[..., :1])], 2), found[:, count:])
        return curved + straight


def _squared_distances(some, others):
    of_some, of_others = (tf.reduce_sum(tf.square(one), 2) for one in (some, others))
    return of_some[:, :, tf.newaxis] - 2 * tf.matmul(some, others, adjoint_b=True) + of_others[:, tf.newaxis]


def _spline_kernel(squared, order):
    positive = tf.maximum(squared, 1e-10)
    if order == 2:
        return 0.5 * squared * tf.math.log(positive)
    if order == 4:
        return 0.5 * tf.square(squared) * tf.math.log(positive)
    if order == 1:
        return tf.sqrt(positive)
    power = tf.pow(positive, 0.5 * order)
    return 0.5 * power * tf.math.log(positive) if order % 2 == 0 else power


def sparse_image_warp(
    image,
    source_control_point_locations,
    dest_control_point_locations,
    interpolation_order=2,
    regularization_weight=0.0,
    num_boundary_points=0,
    name="sparse_image_warp",
):
    """Images of which some points, [batch, n, (y, x)], are moved elsewhere, and the flow between, as dense as them."""
    image, sources, targets = (
        tf.convert_to_tensor(one) for one in (image, source_control_point_locations, dest_control_point_locations)
    )
    with tf1.name_scope(name):
        batch, height, width, _ = image.shape.as_list()
        flows = targets - sources
        if num_boundary_points > 0:
            ys, xs = np.meshgrid(
                np.linspace(0, height - 1, num_boundary_points + 1),
                np.linspace(0, width - 1, num_boundary_points + 1),
                indexing="ij",
            )
            is_edge = (xs == 0) | (xs == width - 1) | (ys == 0) | (ys == height - 1)
            edges = np.tile(np.stack([ys[is_edge], xs[is_edge]], -1)[np.newaxis], [targets.shape[0], 1, 1])
            targets = tf.concat([targets, tf.constant(edges, targets.dtype)], 1)
            flows = tf.concat([flows, tf.zeros(edges.shape, targets.dtype)], 1)
        grid = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), -1).reshape(1, -1, 2)
        asked = tf.constant(np.tile(grid, [batch, 1, 1]), image.dtype)
        found = interpolate_spline(targets, flows, asked, interpolation_order, regularization_weight)
        dense = tf.reshape(found, [batch, height, width, 2])
        return dense_image_warp(image, dense), dense
