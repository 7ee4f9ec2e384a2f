"""What to do about symbols of TensorFlow 1 that TensorFlow 2.21 has no more: another package, or another way.

Rows are modules or single names, as `tf.X`; the longest that a name lies in is its row.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """What to do about a symbol. `package` is what to install (empty: TensorFlow itself, or nothing, does it)."""

    text: str
    package: str = ""


#: Symbols that live on in a package of their own.
LIBRARY: dict[str, Advice] = {
    "tf.contrib.distributions": Advice("tfp.distributions and tfp.bijectors", "tensorflow-probability"),
    "tf.contrib.bayesflow": Advice("tfp.monte_carlo and tfp.mcmc", "tensorflow-probability"),
    "tf.contrib.integrate": Advice("tfp.math.ode", "tensorflow-probability"),
    "tf.contrib.timeseries": Advice("tfp.sts, structural time series", "tensorflow-probability"),
    "tf.contrib.constrained_optimization": Advice("tfco", "tensorflow-constrained-optimization"),
    "tf.contrib.gan": Advice("tfgan, with models and losses of the same names", "tensorflow-gan"),
    "tf.contrib.boosted_trees": Advice("tfdf.keras.GradientBoostedTreesModel", "tensorflow-decision-forests"),
    "tf.contrib.tensor_forest": Advice("tfdf.keras.RandomForestModel", "tensorflow-decision-forests"),
    "tf.contrib.decision_trees": Advice("tfdf.keras", "tensorflow-decision-forests"),
    "tf.contrib.estimator.boosted_trees_classifier_train_in_memory": Advice(
        "tfdf.keras.GradientBoostedTreesModel", "tensorflow-decision-forests"
    ),
    "tf.contrib.estimator.boosted_trees_regressor_train_in_memory": Advice(
        "tfdf.keras.GradientBoostedTreesModel", "tensorflow-decision-forests"
    ),
    "tf.estimator.BoostedTreesClassifier": Advice(
        "tfdf.keras.GradientBoostedTreesModel", "tensorflow-decision-forests"
    ),
    "tf.estimator.BoostedTreesRegressor": Advice("tfdf.keras.GradientBoostedTreesModel", "tensorflow-decision-forests"),
    "tf.estimator.BoostedTreesEstimator": Advice("tfdf.keras.GradientBoostedTreesModel", "tensorflow-decision-forests"),
    "tf.contrib.model_pruning": Advice("tfmot.sparsity.keras", "tensorflow-model-optimization"),
    "tf.contrib.quantize": Advice("tfmot.quantization.keras", "tensorflow-model-optimization"),
    "tf.contrib.kafka": Advice("tfio.IODataset.from_kafka", "tensorflow-io"),
    "tf.contrib.kinesis": Advice("tfio.experimental.IODataset.stream", "tensorflow-io"),
    "tf.contrib.ignite": Advice("read with the database's own client and tf.data.Dataset.from_generator"),
    "tf.contrib.bigtable": Advice("tfio.bigtable", "tensorflow-io"),
    "tf.contrib.cloud": Advice("tfio.bigquery", "tensorflow-io"),
    "tf.contrib.ffmpeg": Advice("tfio.audio", "tensorflow-io"),
    "tf.contrib.libsvm": Advice("tfio.experimental.IODataset.from_libsvm", "tensorflow-io"),
    "tf.contrib.hadoop": Advice("tfio's file systems with tf.data.TFRecordDataset", "tensorflow-io"),
    "tf.contrib.coder": Advice("tfc's range coder", "tensorflow-compression"),
    "tf.contrib.specs": Advice("write the layers as tf.keras.layers"),
}
_DATA = "write the input as a tf.data.Dataset"
_GRAPH = "build the function anew with tf.function, and read its graph"
#: Symbols that have no successor, and what programs do instead.
INSTEAD: dict[str, Advice] = {
    "tf.contrib.all_reduce": Advice("tf.distribute.MultiWorkerMirroredStrategy reduces by itself"),
    "tf.contrib.autograph": Advice("tf.function converts code by itself; see tf.autograph"),
    "tf.contrib.batching": Advice("tf.nondifferentiable_batch_function, or batches of a tf.data.Dataset"),
    "tf.contrib.checkpoint": Advice("tf.train.Checkpoint tracks lists and dictionaries by itself"),
    "tf.contrib.cluster_resolver": Advice("tf.distribute.cluster_resolver"),
    "tf.contrib.compiler": Advice("tf.function(jit_compile=True)"),
    "tf.contrib.copy_graph": Advice(_GRAPH),
    "tf.contrib.crf": Advice("the functions of tf.contrib.crf that the support file has"),
    "tf.contrib.cudnn_rnn": Advice("tf.keras.layers.LSTM and GRU, which use the same kernels on a GPU"),
    "tf.contrib.data": Advice("tf.data.experimental, or methods of tf.data.Dataset"),
    "tf.contrib.deprecated": Advice("tf.summary.scalar, histogram, image and audio"),
    "tf.contrib.distribute": Advice("tf.distribute"),
    "tf.contrib.eager": Advice("tf.Variable, tf.GradientTape and tf.train.Checkpoint, eager from the start"),
    "tf.contrib.estimator": Advice("tf.keras.Model, with callbacks in the place of hooks"),
    "tf.contrib.factorization": Advice("a Keras model with two tf.keras.layers.Embedding, or scikit-learn's KMeans"),
    "tf.contrib.feature_column": Advice("tf.keras.utils.FeatureSpace, or Keras preprocessing layers"),
    "tf.contrib.framework": Advice("tf.train, tf.compat.v1.get_variable and tf.Module"),
    "tf.contrib.fused_conv": Advice("tf.nn.conv2d with tf.nn.bias_add, which XLA fuses"),
    "tf.contrib.gdr": Advice("the default protocol, grpc"),
    "tf.contrib.graph_editor": Advice(_GRAPH),
    "tf.contrib.grid_rnn": Advice("write the cell as a Keras layer"),
    "tf.contrib.hooks": Advice("the TensorFlow profiler, tf.profiler.experimental"),
    "tf.contrib.image": Advice("tf.image, tf.raw_ops.ImageProjectiveTransformV3, Keras preprocessing layers"),
    "tf.contrib.input_pipeline": Advice(_DATA),
    "tf.contrib.keras": Advice("tf.keras"),
    "tf.contrib.kernel_methods": Advice("tf.keras.layers.experimental.RandomFourierFeatures on Keras 2"),
    "tf.contrib.labeled_tensor": Advice("plain tensors, or xarray for named axes"),
    "tf.contrib.layers": Advice("tf.keras.layers, tf.keras.initializers, tf.feature_column"),
    "tf.contrib.learn": Advice("tf.keras, and tf.data for the input"),
    "tf.contrib.legacy_seq2seq": Advice("the functions of tf.contrib.legacy_seq2seq that the support file has"),
    "tf.contrib.linalg": Advice("tf.linalg.LinearOperator and its classes"),
    "tf.contrib.linear_optimizer": Advice("tf.keras.optimizers.Ftrl with a linear model"),
    "tf.contrib.lite": Advice("tf.lite"),
    "tf.contrib.lookup": Advice("tf.lookup"),
    "tf.contrib.losses": Advice("tf.keras.losses"),
    "tf.contrib.memory_stats": Advice("tf.config.experimental.get_memory_info"),
    "tf.contrib.meta_graph_transform": Advice(_GRAPH),
    "tf.contrib.metrics": Advice("tf.keras.metrics"),
    "tf.contrib.mixed_precision": Advice("tf.keras.mixed_precision"),
    "tf.contrib.mpi_collectives": Advice("tf.distribute.MultiWorkerMirroredStrategy"),
    "tf.contrib.nccl": Advice("tf.distribute.MirroredStrategy reduces by NCCL itself"),
    "tf.contrib.nearest_neighbor": Advice("a package for nearest neighbours, faiss say"),
    "tf.contrib.nn": Advice("tf.nn"),
    "tf.contrib.opt": Advice("tf.keras.optimizers, or an optimizer of your own"),
    "tf.contrib.optimizer_v2": Advice("tf.keras.optimizers"),
    "tf.contrib.periodic_resample": Advice("tf.reshape and tf.transpose, or tf.nn.depth_to_space"),
    "tf.contrib.predictor": Advice("tf.saved_model.load"),
    "tf.contrib.proto": Advice("tf.io.decode_proto and tf.io.encode_proto"),
    "tf.contrib.quantization": Advice("tf.quantization"),
    "tf.contrib.rate": Advice("a tf.keras.metrics.Metric of your own"),
    "tf.contrib.receptive_field": Advice("the receptive_field package, or count by hand"),
    "tf.contrib.recurrent": Advice("tf.scan or tf.keras.layers.RNN"),
    "tf.contrib.reduce_slice_ops": Advice("tf.math.segment_sum and its kin"),
    "tf.contrib.remote_fused_graph": Advice("tf.lite with a delegate"),
    "tf.contrib.resampler": Advice("tf.gather_nd and a weighted sum, or tfa's resampler, which is not kept up"),
    "tf.contrib.rnn": Advice("tf.keras.layers.RNN with a cell of your own"),
    "tf.contrib.rpc": Advice("grpc from Python, in tf.py_function"),
    "tf.contrib.saved_model": Advice("tf.saved_model, and model.export of Keras"),
    "tf.contrib.seq2seq": Advice("tf.keras layers, with a loop for decoding"),
    "tf.contrib.session_bundle": Advice("tf.saved_model.load"),
    "tf.contrib.signal": Advice("tf.signal"),
    "tf.contrib.slim": Advice("tf.keras.layers"),
    "tf.contrib.solvers": Advice("tf.linalg, or tf.linalg.experimental.conjugate_gradient"),
    "tf.contrib.sparsemax": Advice("write it with tf.sort and tf.cumsum: a few lines"),
    "tf.contrib.staging": Advice("tf.data.Dataset.prefetch"),
    "tf.contrib.stat_summarizer": Advice("the TensorFlow profiler, tf.profiler.experimental"),
    "tf.contrib.stateless": Advice("tf.random.stateless_uniform and its kin"),
    "tf.contrib.summary": Advice("tf.summary"),
    "tf.contrib.tensorboard": Advice("tensorboard.plugins"),
    "tf.contrib.tensorrt": Advice("tf.experimental.tensorrt.Converter"),
    "tf.contrib.testing": Advice("tf.test, and tf.compat.v1.Summary events read by tf.data.TFRecordDataset"),
    "tf.contrib.text": Advice("the skip-gram sampling of tf.keras.preprocessing.sequence"),
    "tf.contrib.tfprof": Advice("the TensorFlow profiler, tf.profiler.experimental"),
    "tf.contrib.tpu": Advice("tf.distribute.TPUStrategy and tf.tpu"),
    "tf.contrib.training": Advice("tf.data for batches and queues, a Keras training loop for the rest"),
    "tf.contrib.verbs": Advice("the default protocol, grpc"),
    "tf.contrib": Advice("copy what the program uses of it into the project, and spell it with tf.compat.v1"),
    "tf.estimator": Advice("tf.keras.Model, and callbacks in the place of hooks"),
    "tf.keras.estimator": Advice("train the Keras model itself with fit"),
    "tf.keras.experimental": Advice("tf.keras.optimizers.schedules, tf.saved_model"),
    "tf.keras": Advice("tf_keras, the Keras 2 of TensorFlow 2.16 and later, under its new name"),
    "tf.data.experimental": Advice("methods of tf.data.Dataset, and tf.data.Options"),
    "tf.distribute": Advice("tf.distribute.Strategy and its cluster resolvers"),
    "tf.examples": Advice("tf.keras.datasets"),
    "tf.lite": Advice("tf.lite.TFLiteConverter of TensorFlow 2, from a SavedModel or a function"),
    "tf.random": Advice("tf.random.Generator, or the stateless functions"),
    "tf.raw_ops": Advice("a newer version of the operation in tf.raw_ops"),
    "tf.test": Advice("tf.test.TestCase"),
    "tf.tpu": Advice("tf.distribute.TPUStrategy and tf.tpu.experimental"),
    "tf.train": Advice("tf.keras.optimizers.schedules, tf.train.Checkpoint"),
    "tf": Advice("spell what it did with tf.compat.v1"),
}


def advice(name: str) -> Advice:
    """What to do about a symbol `tf.X` that is gone."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        prefix = ".".join(parts[:end])
        found = LIBRARY.get(prefix) or INSTEAD.get(prefix)
        if found is not None:
            return found
    return INSTEAD["tf"]


def is_in_library(name: str) -> bool:
    """Whether a package of its own has what a symbol was."""
    return bool(advice(name).package)
