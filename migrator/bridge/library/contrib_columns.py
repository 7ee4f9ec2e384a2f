"""Feature columns of tf.contrib.layers, and the layers that models of tf.contrib.learn put on them."""

import collections
import math

import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.python.feature_column import feature_column as columns_v1

from .contrib_others import safe_embedding_lookup_sparse

SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY = 0xDECAFCAFFE


class _LayersColumn:
    """What all these columns share. `key` orders them in a layer, and so in its weights."""

    @property
    def key(self):
        return str(self)

    @property
    def _parse_example_spec(self):
        return self.config

    def _key_without(self, left_out):
        shown = ", ".join(f"{name}={self[i]}" for i, name in enumerate(self._fields) if name != left_out)
        return f"{type(self).__name__}({shown})"


class _LayersCategory(_LayersColumn, columns_v1._CategoricalColumn):
    """A column of ids: sparse tensors of numbers below `length`."""

    combiner = "sum"

    @property
    def _num_buckets(self):
        return self.length

    def _get_sparse_tensors(self, inputs, weight_collections=None, trainable=None):
        return self.IdWeightPair(inputs.get(self), None)


class _SparseIdLookupConfig(
    collections.namedtuple(
        "_SparseIdLookupConfig",
        ["vocabulary_file", "keys", "num_oov_buckets", "vocab_size", "default_value"],
        defaults=[None, None, 0, None, -1],
    )
):
    """Where the ids of words come from."""


class _SparseColumn(
    _LayersCategory,
    collections.namedtuple(
        "_SparseColumn",
        ["column_name", "is_integerized", "bucket_size", "lookup_config", "combiner", "dtype"],
        defaults=[False, None, None, "sum", tf.string],
    ),
):
    """A column of words or numbers, which `_ids` makes ids of."""

    @property
    def name(self):
        return self.column_name

    @property
    def length(self):
        if self.bucket_size is not None:
            return self.bucket_size
        return self.lookup_config.vocab_size + self.lookup_config.num_oov_buckets

    @property
    def config(self):
        return {self.column_name: tf1.VarLenFeature(self.dtype)}

    def _transform_feature(self, inputs):
        values = inputs.get(self.column_name)
        if not isinstance(values, tf.SparseTensor):
            missing = tf.constant("" if values.dtype == tf.string else -1, values.dtype)
            values = tf1.layers.flatten(values) if values.shape.rank != 2 else values
            places = tf.where(tf.not_equal(values, missing))
            shape = tf.shape(values, out_type=tf.int64)
            values = tf.SparseTensor(places, tf.gather_nd(values, places), shape)
        return self._ids(values)


class _SparseColumnIntegerized(_SparseColumn):
    def _ids(self, values):
        return values.with_values(tf.math.mod(values.values, self.bucket_size))


class _SparseColumnHashed(_SparseColumn):
    def _ids(self, values):
        words = tf.as_string(values.values) if self.dtype.is_integer else values.values
        return values.with_values(tf.strings.to_hash_bucket_fast(words, self.bucket_size))


class _SparseColumnKeys(_SparseColumn):
    def _ids(self, values):
        known = tf.constant(list(self.lookup_config.keys), self.dtype)
        ids = tf.range(self.lookup_config.vocab_size, dtype=tf.int64)
        entries = tf.lookup.KeyValueTensorInitializer(known, ids)
        table = tf1.lookup.StaticHashTable(entries, self.lookup_config.default_value)
        return values.with_values(table.lookup(values.values))


class _SparseColumnVocabulary(_SparseColumn):
    def _ids(self, values):
        config = self.lookup_config
        entries = tf.lookup.TextFileInitializer(
            config.vocabulary_file,
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
            vocab_size=config.vocab_size,
        )
        if config.num_oov_buckets:
            table = tf1.lookup.StaticVocabularyTable(entries, config.num_oov_buckets)
        else:
            table = tf1.lookup.StaticHashTable(entries, config.default_value)
        return values.with_values(table.lookup(tf.as_string(values.values)))


class _WeightedSparseColumn(
    _LayersCategory,
    collections.namedtuple("_WeightedSparseColumn", ["sparse_id_column", "weight_column_name", "dtype"]),
):
    @property
    def name(self):
        return f"{self.sparse_id_column.name}_weighted_by_{self.weight_column_name}"

    @property
    def length(self):
        return self.sparse_id_column.length

    @property
    def combiner(self):
        return self.sparse_id_column.combiner

    @property
    def config(self):
        return {**self.sparse_id_column.config, self.weight_column_name: tf1.VarLenFeature(self.dtype)}

    def _transform_feature(self, inputs):
        weights = inputs.get(self.weight_column_name)
        if not isinstance(weights, tf.SparseTensor):
            weights = tf.sparse.from_dense(weights)
        return inputs.get(self.sparse_id_column), tf.cast(weights, tf.float32)

    def _get_sparse_tensors(self, inputs, weight_collections=None, trainable=None):
        return self.IdWeightPair(*inputs.get(self))


class _CrossedColumn(
    _LayersCategory,
    collections.namedtuple(
        "_CrossedColumn",
        ["columns", "hash_bucket_size", "hash_key", "combiner", "ckpt_to_load_from", "tensor_name_in_ckpt"],
    ),
):
    @property
    def name(self):
        return "_X_".join(sorted(column.name for column in self.columns))

    @property
    def length(self):
        return self.hash_bucket_size

    @property
    def config(self):
        return {key: value for column in self.columns for key, value in column.config.items()}

    def _leaves(self):
        for column in self.columns:
            yield from column._leaves() if isinstance(column, _CrossedColumn) else [column]

    def _transform_feature(self, inputs):
        values = []
        for column in self._leaves():
            if isinstance(column, _SparseColumn):
                values.append(inputs.get(column.column_name))
            else:
                values.append(column._get_sparse_tensors(inputs).id_tensor)
        return tf1.sparse.cross_hashed(values, num_buckets=self.hash_bucket_size, hash_key=self.hash_key)


class _LayersNumbers(_LayersColumn, columns_v1._DenseColumn):
    """A column of numbers: dense tensors, `_variable_shape` for each example."""


class _RealValuedColumn(
    _LayersNumbers,
    collections.namedtuple("_RealValuedColumn", ["column_name", "dimension", "default_value", "dtype", "normalizer"]),
):
    @property
    def name(self):
        return self.column_name

    @property
    def key(self):
        return self._key_without("normalizer")

    @property
    def config(self):
        default = None if self.default_value is None else list(self.default_value)
        return {self.column_name: tf1.FixedLenFeature([self.dimension], self.dtype, default)}

    @property
    def _variable_shape(self):
        return tf.TensorShape([self.dimension])

    def _transform_feature(self, inputs):
        values = inputs.get(self.column_name)
        values = tf.cast(values if self.normalizer is None else self.normalizer(values), tf.float32)
        return values if values.shape.rank == 2 else tf1.layers.flatten(values)

    def _get_dense_tensor(self, inputs, weight_collections=None, trainable=None):
        return inputs.get(self)


class _BucketizedColumn(
    _LayersNumbers,
    columns_v1._CategoricalColumn,
    collections.namedtuple("_BucketizedColumn", ["source_column", "boundaries"]),
):
    combiner = "sum"

    @property
    def name(self):
        return f"{self.source_column.name}_bucketized"

    @property
    def config(self):
        return self.source_column.config

    @property
    def length(self):
        return len(self.boundaries) + 1

    @property
    def _num_buckets(self):
        return self.length * self.source_column.dimension

    @property
    def _variable_shape(self):
        return tf.TensorShape([self._num_buckets])

    def _transform_feature(self, inputs):
        return tf.raw_ops.Bucketize(input=inputs.get(self.source_column), boundaries=list(self.boundaries))

    def _get_dense_tensor(self, inputs, weight_collections=None, trainable=None):
        return tf.reshape(tf.one_hot(inputs.get(self), self.length), [-1, self._num_buckets])

    def _get_sparse_tensors(self, inputs, weight_collections=None, trainable=None):
        buckets = inputs.get(self)
        ids = buckets + self.length * tf.range(self.source_column.dimension)  # each dimension has buckets of its own
        places = tf.where(tf.ones_like(ids, tf.bool))
        return self.IdWeightPair(tf.SparseTensor(places, tf.reshape(ids, [-1]), tf.shape(ids, tf.int64)), None)


class _OneHotColumn(_LayersNumbers, collections.namedtuple("_OneHotColumn", ["sparse_id_column"])):
    @property
    def name(self):
        return f"{self.sparse_id_column.name}_one_hot"

    @property
    def config(self):
        return self.sparse_id_column.config

    @property
    def _variable_shape(self):
        return tf.TensorShape([self.sparse_id_column.length])

    def _transform_feature(self, inputs):
        ids, weights = self.sparse_id_column._get_sparse_tensors(inputs)
        words = tf.sparse.to_dense(ids, default_value=-1)
        ones = tf.one_hot(words, self.sparse_id_column.length)
        if weights is not None:
            ones *= tf.expand_dims(tf.sparse.to_dense(weights), -1)
        return tf.reduce_sum(ones, axis=1)

    def _get_dense_tensor(self, inputs, weight_collections=None, trainable=None):
        return inputs.get(self)


class _EmbeddingColumn(
    _LayersNumbers,
    collections.namedtuple(
        "_EmbeddingColumn",
        [
            *("sparse_id_column", "dimension", "combiner", "initializer", "ckpt_to_load_from", "tensor_name_in_ckpt"),
            *("shared_embedding_name", "shared_vocab_size", "max_norm", "trainable"),
        ],
    ),
):
    @property
    def name(self):
        kind = "embedding" if self.shared_embedding_name is None else "shared_embedding"
        return f"{self.sparse_id_column.name}_{kind}"

    @property
    def key(self):
        return self._key_without("initializer")

    @property
    def length(self):
        return self.sparse_id_column.length if self.shared_vocab_size is None else self.shared_vocab_size

    @property
    def config(self):
        return self.sparse_id_column.config

    @property
    def _variable_shape(self):
        return tf.TensorShape([self.dimension])

    def _transform_feature(self, inputs):
        return inputs.get(self.sparse_id_column)

    def _get_dense_tensor(self, inputs, weight_collections=None, trainable=None):
        ids, weights = self.sparse_id_column._get_sparse_tensors(inputs)
        shared = f"SHARED_EMBEDDING_COLLECTION_{self.shared_embedding_name}".upper()
        made = tf1.get_collection_ref(shared) if self.shared_embedding_name else []
        if not made:
            variable = _model_variable(
                self.shared_embedding_name or "weights",
                [self.length, self.dimension],
                self.initializer,
                weight_collections,
                self.trainable,
            )
            if self.ckpt_to_load_from is not None:
                tf1.train.init_from_checkpoint(self.ckpt_to_load_from, {self.tensor_name_in_ckpt: variable})
            made.append(variable)
        return safe_embedding_lookup_sparse(made[0], ids, weights, self.combiner, max_norm=self.max_norm)


def _model_variable(name, shape, initializer, collections=None, trainable=True):
    keys = tf1.GraphKeys
    return tf1.get_variable(
        name,
        shape,
        tf.float32,
        initializer,
        trainable=trainable,
        collections=[keys.GLOBAL_VARIABLES, keys.MODEL_VARIABLES, *(collections or ())],
    )


def layers_real_valued_column(column_name, dimension=1, default_value=None, dtype=tf.float32, normalizer=None):
    """Numbers as they are: what tf.contrib.layers.real_valued_column made."""
    if isinstance(default_value, (int, float)):
        default_value = [default_value] * dimension
    if default_value is not None:
        default_value = tuple(float(value) if dtype.is_floating else value for value in default_value)
    return _RealValuedColumn(column_name, dimension, default_value, dtype, normalizer)


def layers_bucketized_column(source_column, boundaries):
    """Which of the ranges between some boundaries a number is in."""
    boundaries = list(boundaries)
    if boundaries != sorted(boundaries):
        raise ValueError(f"boundaries must be a sorted list. boundaries: {boundaries}")
    return _BucketizedColumn(source_column, tuple(dict.fromkeys(boundaries)))


def layers_sparse_column_with_hash_bucket(
    column_name, hash_bucket_size, combiner="sum", dtype=tf.string, hash_keys=None
):
    """Words or numbers, by their hash."""
    if hash_keys:
        raise ValueError("hash_keys are not carried over: TensorFlow 2 has no columns with several hashes")
    return _SparseColumnHashed(column_name, bucket_size=hash_bucket_size, combiner=combiner, dtype=dtype)


def layers_sparse_column_with_integerized_feature(column_name, bucket_size, combiner="sum", dtype=tf.int64):
    """Numbers that are ids already, modulo `bucket_size`."""
    return _SparseColumnIntegerized(column_name, True, bucket_size, combiner=combiner, dtype=dtype)


def layers_sparse_column_with_keys(column_name, keys, default_value=-1, combiner="sum", dtype=tf.string):
    """Words of a list, by their place in it."""
    config = _SparseIdLookupConfig(keys=tuple(keys), vocab_size=len(tuple(keys)), default_value=default_value)
    return _SparseColumnKeys(column_name, lookup_config=config, combiner=combiner, dtype=dtype)


def layers_sparse_column_with_vocabulary_file(
    column_name, vocabulary_file, num_oov_buckets=0, vocab_size=None, default_value=-1, combiner="sum", dtype=tf.string
):
    """Words of a file, by their line in it."""
    if vocab_size is None:
        raise ValueError(f"vocab_size should be defined. column_name: {column_name}")
    config = _SparseIdLookupConfig(vocabulary_file, None, num_oov_buckets, vocab_size, default_value)
    return _SparseColumnVocabulary(column_name, lookup_config=config, combiner=combiner, dtype=dtype)


def layers_weighted_sparse_column(sparse_id_column, weight_column_name, dtype=tf.float32):
    """A column of ids, with a weight for each."""
    return _WeightedSparseColumn(sparse_id_column, weight_column_name, dtype)


def layers_crossed_column(
    columns, hash_bucket_size, combiner="sum", ckpt_to_load_from=None, tensor_name_in_ckpt=None, hash_key=None
):
    """All combinations of the values of several columns, by their hash.

    Without a `hash_key` tf.contrib.layers hashed in a way of its own, which TensorFlow 2 has not: the buckets are
    others then, and a linear model that was trained with the old ones has to be trained again.
    """
    columns = tuple(sorted(columns, key=lambda column: column.name))
    if len(columns) < 2:
        raise ValueError(f"columns must contain at least 2 elements. columns: {columns}")
    return _CrossedColumn(columns, hash_bucket_size, hash_key, combiner, ckpt_to_load_from, tensor_name_in_ckpt)


def layers_one_hot_column(sparse_id_column):
    """How often each id is in a column."""
    return _OneHotColumn(sparse_id_column)


def layers_embedding_column(
    sparse_id_column,
    dimension,
    combiner="mean",
    initializer=None,
    ckpt_to_load_from=None,
    tensor_name_in_ckpt=None,
    max_norm=None,
    trainable=True,
):
    """The embeddings of the ids of a column, combined."""
    return _embedding(
        sparse_id_column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable
    )


def layers_shared_embedding_columns(
    sparse_id_columns,
    dimension,
    combiner="mean",
    shared_embedding_name=None,
    initializer=None,
    ckpt_to_load_from=None,
    tensor_name_in_ckpt=None,
    max_norm=None,
    trainable=True,
):
    """Embeddings of several columns of ids, which share their weights."""
    ids = list(sparse_id_columns)
    rest = (combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable)
    if len(ids) == 1:
        return [_embedding(ids[0], dimension, *rest, shared_embedding_name)]
    if not shared_embedding_name:
        named = sorted(one.name for one in ids)
        shared_embedding_name = "_".join(named[:3])
        shared_embedding_name += f"_plus_{len(named) - 3}_others" if len(named) > 3 else ""
        shared_embedding_name += "_shared_embedding"
    return tuple(_embedding(one, dimension, *rest, shared_embedding_name, ids[0].length) for one in ids)


def _embedding(ids, dimension, combiner, initializer, folder, tensor, max_norm, trainable, shared=None, size=None):
    if initializer is None:
        initializer = tf1.truncated_normal_initializer(0.0, 1 / math.sqrt(ids.length))
    return _EmbeddingColumn(ids, dimension, combiner, initializer, folder, tensor, shared, size, max_norm, trainable)


def layers_create_feature_spec_for_parsing(feature_columns):
    """What `tf.parse_example` needs to read the features of some columns."""
    columns = feature_columns.values() if isinstance(feature_columns, dict) else feature_columns
    return {key: value for column in columns for key, value in column.config.items()}


def layers_infer_real_valued_columns(features):
    """A column of numbers for each feature."""
    named = features if isinstance(features, dict) else {"": features}
    return [
        layers_real_valued_column(name, int(math.prod(tensor.shape.as_list()[1:])), dtype=tensor.dtype)
        for name, tensor in named.items()
    ]


def layers_input_from_feature_columns(
    columns_to_tensors, feature_columns, weight_collections=None, trainable=True, scope=None
):
    """The features of some columns, side by side, in the order of the columns' keys."""
    with tf1.variable_scope(scope, default_name="input_from_feature_columns"):
        inputs, found = columns_v1._LazyBuilder(columns_to_tensors), []
        for column in sorted(set(feature_columns), key=lambda one: one.key):
            with tf1.variable_scope(None, default_name=column.name):
                found.append(column._get_dense_tensor(inputs, weight_collections, trainable))
        return tf.concat(found, axis=1)


def layers_weighted_sum_from_feature_columns(
    columns_to_tensors, feature_columns, num_outputs, weight_collections=None, trainable=True, scope=None
):
    """A linear model of some columns: its outputs, its weights by column, and its bias."""
    with tf1.variable_scope(scope, default_name="weighted_sum_from_feature_columns"):
        inputs, sums, variables = columns_v1._LazyBuilder(columns_to_tensors), [], {}
        zeros = tf1.zeros_initializer()
        for column in sorted(set(feature_columns), key=lambda one: one.key):
            with tf1.variable_scope(None, default_name=column.name):
                if isinstance(column, columns_v1._CategoricalColumn):
                    shape = [column._num_buckets, num_outputs]
                    variable = _model_variable("weights", shape, zeros, weight_collections, trainable)
                    ids, weights = column._get_sparse_tensors(inputs)
                    sums.append(safe_embedding_lookup_sparse(variable, ids, weights, column.combiner))
                else:
                    values = column._get_dense_tensor(inputs, weight_collections, trainable)
                    shape = [values.shape[1], num_outputs]
                    variable = _model_variable("weight", shape, zeros, weight_collections, trainable)
                    sums.append(tf.matmul(values, variable))
            variables[column] = [variable]
        bias = _model_variable("bias_weight", [num_outputs], zeros, weight_collections, trainable)
        outputs = tf.nn.bias_add(tf.add_n([tf.reshape(one, [-1, num_outputs]) for one in sums]), bias)
        return outputs, variables, bias
