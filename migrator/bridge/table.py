"""Which name of the support file stands for a symbol of TensorFlow 1 that TensorFlow 2.21 has no more.

`SUPPLIED` maps canonical names (`tf.X`, see migrator.names.spelling) to names of `library/`. A row counts where the
library has that name. What is not there stays out of the programs: a line that names it blocks the bridge.
"""

from __future__ import annotations

_ESTIMATORS = (
    *("Estimator", "EstimatorSpec", "ModeKeys", "RunConfig", "TrainSpec", "EvalSpec", "train_and_evaluate"),
    *("WarmStartSettings", "VocabInfo", "FinalExporter", "LatestExporter", "BestExporter", "StepsExporter", "Exporter"),
    *("DNNClassifier", "DNNRegressor", "DNNEstimator", "LinearClassifier", "LinearRegressor", "LinearEstimator"),
    *("DNNLinearCombinedClassifier", "DNNLinearCombinedRegressor", "DNNLinearCombinedEstimator"),
    *("BaselineClassifier", "BaselineRegressor", "BaselineEstimator", "BoostedTreesClassifier"),
    *("BoostedTreesRegressor", "BoostedTreesEstimator", "add_metrics", "classifier_parse_example_spec"),
    *("regressor_parse_example_spec", "Head", "BinaryClassHead", "MultiClassHead", "MultiLabelHead", "RegressionHead"),
    *("LogisticRegressionHead", "PoissonRegressionHead", "MultiHead"),
)
_EXPORT = (
    *("ServingInputReceiver", "TensorServingInputReceiver", "ExportOutput", "ClassificationOutput", "RegressionOutput"),
    *("PredictOutput", "EvalOutput", "build_raw_serving_input_receiver_fn", "build_parsing_serving_input_receiver_fn"),
)
_STOPPING = (
    *("make_early_stopping_hook", "stop_if_higher_hook", "stop_if_lower_hook", "stop_if_no_increase_hook"),
    *("stop_if_no_decrease_hook",),
)
_EXPERIMENTAL = (
    *_STOPPING,
    "InMemoryEvaluatorHook",
    "make_stop_at_checkpoint_step_hook",
    "LinearSDCA",
    "RNNClassifier",
)
_OF_CONTRIB = (
    *_STOPPING,
    *("DNNEstimator", "LinearEstimator", "DNNLinearCombinedEstimator", "BaselineEstimator", "add_metrics"),
    *("InMemoryEvaluatorHook", "StepsExporter", "SavedModelEstimator", "forward_features", "clip_gradients_by_norm"),
    *("multi_class_head", "binary_classification_head", "regression_head", "multi_label_head", "multi_head"),
    *(
        "logistic_regression_head",
        "poisson_regression_head",
        "replicate_model_fn",
        "TowerOptimizer",
        "dnn_logit_fn_builder",
    ),
    *("linear_logit_fn_builder", "call_logit_fn", "RNNClassifier", "RNNEstimator", "make_stop_at_checkpoint_step_hook"),
    *("export_saved_model_for_mode", "export_all_saved_models", "build_raw_supervised_input_receiver_fn"),
    *("boosted_trees_classifier_train_in_memory", "boosted_trees_regressor_train_in_memory"),
)
_TPU = ("TPUEstimator", "TPUEstimatorSpec", "TPUConfig", "InputPipelineConfig", "CrossShardOptimizer")
_SEQ2SEQ = (
    *("AttentionMechanism", "AttentionWrapper", "AttentionWrapperState", "BahdanauAttention", "LuongAttention"),
    *("BahdanauMonotonicAttention", "LuongMonotonicAttention", "monotonic_attention", "safe_cumprod", "hardmax"),
    *("Decoder", "BasicDecoder", "BasicDecoderOutput", "dynamic_decode", "sequence_loss", "tile_batch", "gather_tree"),
    *("BeamSearchDecoder", "BeamSearchDecoderState", "BeamSearchDecoderOutput", "FinalBeamSearchDecoderOutput"),
    *("Helper", "TrainingHelper", "ScheduledEmbeddingTrainingHelper", "ScheduledOutputTrainingHelper"),
    *("GreedyEmbeddingHelper", "SampleEmbeddingHelper", "CustomHelper", "InferenceHelper"),
)
_LEARN_OWN = (
    *("Estimator", "LinearClassifier", "LinearRegressor", "DNNClassifier", "DNNRegressor", "PredictionKey"),
    *("DNNLinearCombinedClassifier", "DNNLinearCombinedRegressor", "MetricKey"),
)
_LEARN_READERS = (
    *("read_batch_examples", "read_batch_features", "read_batch_record_features", "read_keyed_batch_examples"),
    *("read_keyed_batch_features", "queue_parsed_features"),
)
_LAYERS_COLUMNS = (
    *("real_valued_column", "bucketized_column", "sparse_column_with_hash_bucket", "sparse_column_with_keys"),
    *("sparse_column_with_integerized_feature", "sparse_column_with_vocabulary_file", "weighted_sparse_column"),
    *("crossed_column", "one_hot_column", "embedding_column", "shared_embedding_columns"),
    *("create_feature_spec_for_parsing", "infer_real_valued_columns", "input_from_feature_columns"),
    "weighted_sum_from_feature_columns",
)
_CANNED = tuple(name for name in _ESTIMATORS if name.endswith(("Classifier", "Regressor")))
_OF_HEADS = (  # functions that heads are made of, in `canned.head`
    *("summary_key", "auc", "accuracy_baseline", "indicator_labels_mean", "predictions_mean", "accuracy_at_threshold"),
    *("precision_at_threshold", "recall_at_threshold", "get_weights_and_check_match_logits", "check_logits_final_dim"),
    *("check_dense_labels_match_logits_and_reshape", "call_loss_fn", "classification_output", "all_classes"),
    *("all_class_ids", "append_update_ops", "assert_range", "validate_n_classes", "validate_loss_fn_args"),
    "create_eval_metrics_tuple",
)
_BEHIND = "tf.python.estimator"  # also for `tensorflow_estimator.python.estimator`, see migrator.names.aliases

#: Symbol of TensorFlow 1 to name of the library.
SUPPLIED: dict[str, str] = {
    **{f"tf.estimator.{name}": name for name in _ESTIMATORS},
    **{f"tf.estimator.export.{name}": name for name in _EXPORT},
    **{f"tf.estimator.inputs.{name}": name for name in ("numpy_input_fn", "pandas_input_fn")},
    **{f"tf.estimator.experimental.{name}": name for name in _EXPERIMENTAL},
    **{f"tf.estimator.tpu.{name}": name for name in _TPU},
    "tf.estimator.tpu.RunConfig": "TPURunConfig",
    **{f"tf.contrib.tpu.{name}": name for name in _TPU},
    "tf.contrib.tpu.RunConfig": "TPURunConfig",
    **{f"tf.contrib.estimator.{name}": name for name in _OF_CONTRIB},
    "tf.keras.estimator.model_to_estimator": "model_to_estimator",
    "tf.contrib.training.HParams": "HParams",
    "tf.contrib.predictor.from_saved_model": "predictor_from_saved_model",
    "tf.contrib.predictor.from_estimator": "predictor_from_estimator",
    **{f"tf.contrib.learn.{name}": name for name in ("Experiment", "make_export_strategy", "ExportStrategy")},
    "tf.contrib.learn.utils.saved_model_export_utils.make_export_strategy": "make_export_strategy",
    "tf.contrib.learn.learn_runner.run": "run_experiment",
    "tf.contrib.learn.utils.make_export_strategy": "make_export_strategy",
    "tf.contrib.learn.ModeKeys": "LearnModeKeys",
    **{f"tf.contrib.learn.{name}": f"Learn{name}" for name in _LEARN_OWN},
    **{
        f"tf.contrib.learn.{name}": name
        for name in (
            *("ModelFnOps", "MetricSpec", "SKCompat", "ProblemType", "infer_real_valued_columns_from_input"),
            *("infer_real_valued_columns_from_input_fn", "build_parsing_serving_input_fn"),
        )
    },
    **{
        f"tf.contrib.learn.utils.input_fn_utils.{name}": name
        for name in ("build_parsing_serving_input_fn", "build_default_serving_input_fn")
    },
    "tf.contrib.learn.utils.build_parsing_serving_input_fn": "build_parsing_serving_input_fn",
    "tf.contrib.learn.utils.build_default_serving_input_fn": "build_default_serving_input_fn",
    **{f"tf.contrib.learn.io.{name}": f"learn_{name}" for name in ("numpy_input_fn", "pandas_input_fn")},
    **{f"tf.contrib.learn.{module}{name}": name for module in ("", "io.") for name in _LEARN_READERS},
    **{f"tf.contrib.learn.{name}": f"learn_{name}" for name in ("regression_head", "multi_class_head")},
    "tf.contrib.learn.monitors.ValidationMonitor": "ValidationMonitor",
    **{
        f"tensorflow_hub.{name}": new
        for name, new in (
            ("Module", "HubModule"),
            ("load_module_spec", "HubModuleSpec"),
            ("text_embedding_column", "hub_text_embedding_column"),
            ("image_embedding_column", "hub_image_embedding_column"),
        )
    },
    "tf.contrib.learn.preprocessing.VocabularyProcessor": "VocabularyProcessor",
    "tf.contrib.learn.preprocessing.CategoricalVocabulary": "CategoricalVocabulary",
    "tf.contrib.learn.preprocessing.tokenizer": "words_of_texts",
    "tf.contrib.linear_optimizer.SDCAOptimizer": "SDCAOptimizer",
    **{f"tf.contrib.layers.{name}": f"layers_{name}" for name in _LAYERS_COLUMNS},
    "tf.contrib.layers.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY": "SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY",
    "tf.contrib.learn.RunConfig": "LearnRunConfig",
    "tf.contrib.learn.run_config.RunConfig": "LearnRunConfig",
    "tf.tpu.CrossShardOptimizer": "CrossShardOptimizer",
    **{f"{module}.cross_replica_sum": "cross_replica_sum" for module in ("tf.tpu", "tf.contrib.tpu")},
}
SUPPLIED.update(
    {
        **{
            f"tf.contrib.lookup.{name}": name
            for name in (
                *("index_table_from_file", "index_table_from_tensor", "index_to_string_table_from_file"),
                "index_to_string_table_from_tensor",
            )
        },
        "tf.contrib.lookup.HashTable": "hash_table",
        "tf.contrib.distribute.MirroredStrategy": "mirrored_strategy",
        **{
            f"tf.contrib.summary.{name}": name
            for name in (
                *("create_file_writer", "create_summary_file_writer", "always_record_summaries", "all_summary_ops"),
                *("never_record_summaries", "record_summaries_every_n_global_steps", "should_record_summaries"),
                "summary_writer_initializer_op",
            )
        },
        **{
            f"tf.contrib.summary.{name}": f"summary_{name}"
            for name in ("scalar", "histogram", "image", "audio", "generic", "flush", "initialize")
        },
        "tf.contrib.data.batch_and_drop_remainder": "batch_and_drop_remainder",
        **{
            f"tf.contrib.layers.{name}": name
            for name in ("layer_norm", "xavier_initializer", "l1_regularizer", "l2_regularizer")
        },
        "tf.contrib.layers.xavier_initializer_conv2d": "xavier_initializer",
        "tf.contrib.eager.Iterator": "EagerIterator",
        **{f"tf.contrib.eager.metrics.{name}": f"Eager{name}" for name in ("Mean", "Accuracy")},
        **{
            f"tf.contrib.metrics.{name}": name
            for name in (
                *("f1_score", "streaming_mean_squared_error", "streaming_root_mean_squared_error"),
                "streaming_mean_absolute_error",
            )
        },
        **{
            f"tf.contrib.metrics.{name}": name
            for name in ("streaming_accuracy", "streaming_precision", "streaming_recall", "streaming_auc")
        },
        **{
            f"tf.contrib.crf.{name}": name
            for name in (
                *("crf_log_likelihood", "crf_log_norm", "crf_sequence_score", "crf_unary_score", "crf_binary_score"),
                *("crf_decode", "viterbi_decode"),
            )
        },
        **{
            f"tf.contrib.opt.{name}": name
            for name in (
                *("AdamWOptimizer", "MomentumWOptimizer", "extend_with_decoupled_weight_decay", "LazyAdamOptimizer"),
                *("NadamOptimizer", "AdaMaxOptimizer", "LARSOptimizer", "clip_gradients_by_global_norm"),
                *("MovingAverageOptimizer", "DecoupledWeightDecayExtension", "AddSignOptimizer", "PowerSignOptimizer"),
                *("RegAdagradOptimizer", "VariableClippingOptimizer"),
            )
        },
        **{
            f"tf.contrib.mixed_precision.{name}": name
            for name in (
                *("LossScaleManager", "FixedLossScaleManager", "ExponentialUpdateLossScaleManager"),
                "LossScaleOptimizer",
            )
        },
        **{f"tf.contrib.image.{name}": f"{name}_images" for name in ("translate", "rotate", "transform")},
        **{
            f"tf.contrib.lookup.{name}": name
            for name in (
                *("string_to_index", "index_to_string", "string_to_index_table_from_tensor"),
                "string_to_index_table_from_file",
            )
        },
        **{f"tf.contrib.layers.{name}": name for name in ("bow_encoder", "embedding_lookup_unique")},
        **{f"tf.contrib.sparsemax.{name}": name for name in ("sparsemax", "sparsemax_loss")},
        **{f"tf.contrib.opt.{name}": name for name in ("ExternalOptimizerInterface", "ScipyOptimizerInterface")},
        "tf.contrib.resampler.resampler": "resampler",
        **{
            f"tf.contrib.tfprof.model_analyzer.{name}": name
            for name in (
                *("print_model_analysis", "TRAINABLE_VARS_PARAMS_STAT_OPTIONS", "FLOAT_OPS_OPTIONS"),
                "PRINT_ALL_TIMING_MEMORY",
            )
        },
        "tf.contrib.training.bucket_by_sequence_length": "bucket_by_length",
        **{
            f"tf.contrib.image.{name}": name
            for name in (
                *("dense_image_warp", "interpolate_spline", "sparse_image_warp"),
                *("translations_to_projective_transforms", "angles_to_projective_transforms", "compose_transforms"),
                *("flat_transforms_to_matrices", "matrices_to_flat_transforms"),
            )
        },
        **{
            f"tf.contrib.training.{name}": name
            for name in (
                *("create_train_op", "add_gradients_summaries", "clip_gradient_norms", "clip_gradient_norms_fn"),
                *("rejection_sample", "stratified_sample", "resample_at_rate", "weighted_resample", "bucket"),
                *("RandomStrategy", "GreedyLoadBalancingStrategy", "byte_size_load_fn"),
            )
        },
        **{
            f"tf.contrib.rnn.{name}": name
            for name in (
                *("LSTMBlockCell", "LSTMBlockFusedCell", "TimeReversedFusedRNN", "stack_bidirectional_dynamic_rnn"),
                *("LayerNormBasicLSTMCell", "HighwayWrapper", "InputProjectionWrapper", "OutputProjectionWrapper"),
                *("EmbeddingWrapper", "AttentionCellWrapper", "GRUBlockCell", "GRUBlockCellV2", "UGRNNCell"),
                *("ConvLSTMCell", "Conv1DLSTMCell", "Conv2DLSTMCell", "Conv3DLSTMCell", "transpose_batch_time"),
                *("stack_bidirectional_rnn", "NASCell", "CoupledInputForgetGateLSTMCell", "IntersectionRNNCell"),
                *("PhasedLSTMCell", "GLSTMCell", "LayerRNNCell", "SRUCell", "IndRNNCell", "IndyGRUCell"),
                "IndyLSTMCell",
            )
        },
        **{
            f"{module}.{name}": new
            for module in (
                *("tf.contrib.rnn.python.ops.core_rnn_cell", "tf.contrib.rnn.python.ops.core_rnn_cell_impl"),
                *("tf.python.ops.rnn_cell_impl", "tf.python.ops.rnn_cell", "tf.nn.rnn_cell"),
            )
            for name, new in (
                *(("_linear", "linear_of_parts"), ("linear", "linear_of_parts")),
                ("_Linear", "LinearOfParts"),
            )
        },
        **{  # where TensorFlow had them before 1.0
            f"tf.nn.rnn_cell.{name}": name
            for name in ("EmbeddingWrapper", "InputProjectionWrapper", "OutputProjectionWrapper")
        },
        **{f"tf.contrib.cudnn_rnn.{name}": name for name in ("CudnnCompatibleLSTMCell", "CudnnCompatibleGRUCell")},
        **{f"tf.contrib.seq2seq.{name}": name for name in _SEQ2SEQ},
        **{
            f"tf.contrib.legacy_seq2seq.{name}": name
            for name in (
                *("rnn_decoder", "basic_rnn_seq2seq", "tied_rnn_seq2seq", "embedding_rnn_decoder"),
                *("embedding_rnn_seq2seq", "embedding_tied_rnn_seq2seq", "attention_decoder", "model_with_buckets"),
                *("embedding_attention_decoder", "embedding_attention_seq2seq", "one2many_rnn_seq2seq"),
            )
        },
        **{
            f"tf.contrib.legacy_seq2seq.{name}": f"legacy_{name}"
            for name in ("sequence_loss", "sequence_loss_by_example")
        },
        "tf.contrib.layers.embed_sequence": "embed_sequence",
        "tf.contrib.feature_column.sequence_input_layer": "sequence_input_layer",
        "tf.contrib.layers.safe_embedding_lookup_sparse": "safe_embedding_lookup_sparse",
        **{f"tf.contrib.nn.{name}": name for name in ("alpha_dropout", "scaled_softplus")},
        **{
            f"tf.contrib.nn.deprecated_flipped_{name}_with_logits": f"flipped_{name}"
            for name in ("sigmoid_cross_entropy", "softmax_cross_entropy", "sparse_softmax_cross_entropy")
        },
        **{f"tf.contrib.framework.{name}": name for name in ("smart_cond", "smart_constant_value")},
        "tf.contrib.framework.py_func": "contrib_py_func",
        **{f"tf.contrib.data.{name}": name for name in ("padded_batch_and_drop_remainder", "sloppy_interleave")},
        "tf.contrib.lookup.MutableHashTable": "mutable_hash_table",
        "tf.contrib.distribute.DistributeConfig": "DistributeConfig",
        "tf.contrib.distribute.CollectiveAllReduceStrategy": "collective_strategy",
        **{f"tf.contrib.learn.datasets.{name}": name for name in ("load_dataset", "load_iris")},
        **{
            f"tf.contrib.learn.datasets.base.{name}": name
            for name in (
                *("Dataset", "load_iris", "load_csv_with_header", "load_csv_without_header"),
                *("maybe_download", "urlretrieve_with_retry", "shrink_csv"),
            )
        },
        **{f"{_BEHIND}.model_fn.{name}": name for name in ("LOSS_METRIC_KEY", "AVERAGE_LOSS_METRIC_KEY")},
        **{
            f"{module}.{name}": name
            for module in ("tf.contrib.data.python.ops.threadpool", "tf.python.data.experimental.ops.threadpool")
            for name in ("PrivateThreadPool", "override_threadpool")
        },
        "tf.contrib.estimator.TowerOptimizer": "tower_optimizer",
        "tf.contrib.data.sliding_window_batch": "sliding_window_batch",
        **{f"tf.contrib.distribute.AllReduceCross{name}Ops": "all_reduce_ops" for name in ("Tower", "Device")},
        "tf.contrib.learn.InputFnOps": "InputFnOps",
        "tf.contrib.learn.utils.input_fn_utils.InputFnOps": "InputFnOps",
        **{
            f"tf.contrib.tensorboard.plugins.projector.{name}": name
            for name in ("ProjectorConfig", "visualize_embeddings")
        },
        **{
            f"{_BEHIND}.{name}": new
            for name, new in (
                ("canned.head._binary_logistic_head_with_sigmoid_cross_entropy_loss", "canned_binary_head"),
                ("canned.head._multi_class_head_with_softmax_cross_entropy_loss", "canned_multi_class_head"),
                ("canned.head._binary_logistic_or_multi_class_head", "canned_class_head"),
                ("canned.head._regression_head", "canned_regression_head"),
                ("canned.head._regression_head_with_mean_squared_error_loss", "canned_regression_head"),
                ("canned.head._Head", "Head"),
                ("canned.head.LossSpec", "LossSpec"),
                *((f"canned.head._{name}", f"head_{name}") for name in _OF_HEADS),
                ("canned.dnn._dnn_logit_fn_builder", "dnn_logit_fn_builder"),
                ("canned.linear._linear_logit_fn_builder", "linear_logit_fn_builder"),
                ("canned.linear._compute_fraction_of_zero", "fraction_of_zero"),
                ("canned.dnn._add_hidden_layer_summary", "summarize_layer"),
                ("canned.metric_keys.MetricKeys", "MetricKeys"),
                ("canned.prediction_keys.PredictionKeys", "PredictionKeys"),
                ("canned.optimizers.get_optimizer_instance", "get_optimizer_instance"),
                ("estimator._load_global_step_from_checkpoint_dir", "step_of_checkpoint"),
            )
        },
        "tf.examples.tutorials.mnist.input_data.read_data_sets": "read_data_sets",
        **{f"tf.contrib.learn.datasets.mnist.{name}": name for name in ("read_data_sets", "load_mnist")},
    }
)
#: Modules whose names are those of the support file: `from tensorflow import estimator` gives that file this name.
NAMESPACES = (
    "tf.estimator",
    "tf.estimator.export",
    "tf.estimator.inputs",
    "tf.estimator.experimental",
    "tf.estimator.tpu",
)

#: Symbols that live on under another public name of `tf.compat.v1`, as TensorFlow 1 spells it.
MOVED: dict[str, str] = {
    **{  # of TensorFlow before 1.0, with the same arguments
        f"tf.{old}": f"tf.{new}"
        for old, new in {
            "mul": "multiply",
            "sub": "subtract",
            "neg": "negative",
            "pack": "stack",
            "unpack": "unstack",
            "concat_v2": "concat",
            "select": "where",
            "complex_abs": "abs",
            "batch_matmul": "matmul",
            "batch_matrix_diag": "matrix_diag",
            "listdiff": "setdiff1d",
            "inv": "reciprocal",
            **{f"{kind}_summary": f"summary.{kind}" for kind in ("scalar", "histogram", "image", "audio")},
            "merge_summary": "summary.merge",
            "merge_all_summaries": "summary.merge_all",
            "train.SummaryWriter": "summary.FileWriter",
            "nn.rnn": "nn.static_rnn",
            "nn.bidirectional_rnn": "nn.static_bidirectional_rnn",
            "nn.state_saving_rnn": "nn.static_state_saving_rnn",
        }.items()
    },
    **{
        f"tf.contrib.estimator.{name}": f"tf.estimator.experimental.{name}"
        for name in ("build_raw_supervised_input_receiver_fn", "dnn_logit_fn_builder", "linear_logit_fn_builder")
    },
    **{  # of TensorFlow before 1.15, and functions that are public ones with a warning around them
        f"tf.contrib.framework.{name}": f"tf.train.{name}"
        for name in (
            *("get_global_step", "get_or_create_global_step", "create_global_step", "list_variables", "load_variable"),
            *("load_checkpoint", "init_from_checkpoint", "checkpoints_iterator", "assert_global_step"),
        )
    },
    **{
        f"tf.contrib.framework.nest.{name}": f"tf.python.util.nest.{name}"
        for name in (
            *("assert_shallow_structure", "flatten_dict_items", "flatten_up_to", "flatten_with_joined_string_paths"),
            *("flatten_with_tuple_paths", "flatten_with_tuple_paths_up_to", "get_traverse_shallow_structure"),
            *("is_sequence_or_composite", "map_structure_up_to", "map_structure_with_paths", "yield_flat_paths"),
            *("map_structure_with_tuple_paths", "map_structure_with_tuple_paths_up_to"),
        )
    },
    "tf.contrib.framework.nest": "tf.nest",
    **{f"{module}.is_sequence": "tf.nest.is_nested" for module in ("tf.contrib.framework.nest", "tf.python.util.nest")},
    "tf.logging._logger": "tf.get_logger()",  # Python's logger of the name tensorflow, as there
    "tf.contrib.metrics.confusion_matrix": "tf.confusion_matrix",
    **{
        f"tf.contrib.feature_column.{name}": f"tf.feature_column.{name}"
        for name in (
            *("sequence_categorical_column_with_hash_bucket", "sequence_categorical_column_with_identity"),
            *("sequence_categorical_column_with_vocabulary_file", "sequence_categorical_column_with_vocabulary_list"),
            "sequence_numeric_column",
        )
    },
    **{  # hooks that TensorFlow 1.15 has under two names
        f"tf.estimator.{name}": f"tf.train.{name}"
        for name in (
            *("CheckpointSaverHook", "CheckpointSaverListener", "FeedFnHook", "FinalOpsHook", "GlobalStepWaiterHook"),
            *("LoggingTensorHook", "NanLossDuringTrainingError", "NanTensorHook", "ProfilerHook", "SecondOrStepTimer"),
            *("SessionRunArgs", "SessionRunContext", "SessionRunHook", "SessionRunValues", "StepCounterHook"),
            *("StopAtStepHook", "SummarySaverHook", "VocabInfo"),
        )
    },
    **{  # of TensorFlow before 1.5
        f"tf.contrib.data.{name}": f"tf.data.{name}"
        for name in ("Dataset", "TextLineDataset", "TFRecordDataset", "FixedLengthRecordDataset", "Iterator")
    },
    "tf.contrib.training.checkpoints_iterator": "tf.train.checkpoints_iterator",
    **{
        f"tf.contrib.factorization.{old}": f"tf.python.ops.clustering_ops.{old}"
        for old in ("KMeans", "RANDOM_INIT", "KMEANS_PLUS_PLUS_INIT", "SQUARED_EUCLIDEAN_DISTANCE", "COSINE_DISTANCE")
    },
    "tf.contrib.compiler.jit.experimental_jit_scope": "tf.xla.experimental.jit_scope",
    "tf.contrib.compiler.xla.compile": "tf.xla.experimental.compile",
    "tf.contrib.hooks.ProfilerHook": "tf.train.ProfilerHook",
    **{f"tf.contrib.autograph.{name}": f"tf.autograph.{name}" for name in ("to_graph", "to_code")},
    "tf.contrib.autograph.convert": "tf.python.autograph.impl.api.convert",
    "tf.contrib.tfprof.ProfileContext": "tf.python.profiler.profile_context.ProfileContext",
    "tf.contrib.tfprof.model_analyzer.advise": "tf.profiler.advise",
    "tf.contrib.tfprof.model_analyzer.Profiler": "tf.profiler.Profiler",
    **{
        f"tf.contrib.framework.{name}": f"tf.debugging.{name}"
        for name in ("is_numeric_tensor", "is_non_decreasing", "is_strictly_increasing")
    },
    "tf.contrib.framework.remove_squeezable_dimensions": (
        "tf.python.ops.confusion_matrix.remove_squeezable_dimensions"
    ),
    **{
        f"tf.contrib.checkpoint.{name}": f"tf.python.trackable.data_structures.{name}"
        for name in ("List", "Mapping", "NoDependency")
    },
    "tf.contrib.checkpoint.Checkpointable": "tf.python.trackable.autotrackable.AutoTrackable",
    **{  # of eager programs before 1.8 or so
        f"tf.contrib.eager.{old}": new
        for old, new in {
            "enable_eager_execution": "tf.enable_eager_execution",
            "executing_eagerly": "tf.executing_eagerly",
            "in_eager_mode": "tf.executing_eagerly",
            "Variable": "tf.Variable",
            "GradientTape": "tf.GradientTape",
            "Checkpoint": "tf.train.Checkpoint",
            "custom_gradient": "tf.custom_gradient",
            "py_func": "tf.py_function",
            "function": "tf.function",
            "defun": "tf.function",
            "TensorSpec": "tf.TensorSpec",
            "make_template": "tf.make_template",
            "gradients_function": "tf.python.eager.backprop.gradients_function",
            "value_and_gradients_function": "tf.python.eager.backprop.val_and_grad_function",
            "implicit_gradients": "tf.python.eager.backprop.implicit_grad",
            "implicit_value_and_gradients": "tf.python.eager.backprop.implicit_val_and_grad",
            "num_gpus": "tf.python.eager.context.num_gpus",
            "async_wait": "tf.python.eager.context.async_wait",
            "EagerVariableStore": "tf.python.ops.variable_scope.EagerVariableStore",
        }.items()
    },
    "tf.contrib.distribute.TPUStrategy": "tf.distribute.experimental.TPUStrategy",
    **{  # of TensorFlow before 1.12, where replicas were called towers
        f"tf.contrib.distribute.{old}": f"tf.distribute.{new}"
        for old, new in {
            "CrossTowerOps": "CrossDeviceOps",
            "ReductionToOneDeviceCrossTowerOps": "ReductionToOneDevice",
            "ReductionToOneDeviceCrossDeviceOps": "ReductionToOneDevice",
            "TowerContext": "ReplicaContext",
            "get_tower_context": "get_replica_context",
            "in_cross_tower_context": "in_cross_replica_context",
        }.items()
    },
    **{
        f"tf.contrib.data.{name}": f"tf.data.experimental.{name}"
        for name in (
            *("AUTOTUNE", "map_and_batch", "shuffle_and_repeat", "parallel_interleave", "bucket_by_sequence_length"),
            *("group_by_window", "make_csv_dataset", "make_batched_features_dataset", "prefetch_to_device", "unique"),
            *("sample_from_datasets", "choose_from_datasets", "copy_to_device", "ignore_errors", "scan", "Counter"),
            *("CsvDataset", "SqlDataset", "RandomDataset", "TFRecordWriter", "make_saveable_from_iterator"),
            *("dense_to_sparse_batch", "enumerate_dataset", "unbatch", "get_single_element", "rejection_resample"),
            *("group_by_reducer", "Reducer", "parse_example_dataset"),
        )
    },
    "tf.python.ops.variable_scope.variable": "tf.Variable",
    # functions and classes of contrib that are imported from tensorflow.python, where 2.21 still has them
    **{
        f"tf.contrib.deprecated.{name}": f"tf.python.ops.logging_ops.{name}"
        for name in (
            "audio_summary",
            "histogram_summary",
            "image_summary",
            "merge_all_summaries",
            "merge_summary",
            "scalar_summary",
        )
    },
    **{
        f"tf.contrib.distribute.{name}": f"tf.python.distribute.step_fn.{name}"
        for name in ("StandardInputStep", "StandardSingleLossStep", "Step")
    },
    **{
        f"tf.contrib.distribute.{name}": f"tf.python.distribute.distribute_lib.{name}"
        for name in ("UpdateContext", "require_replica_context")
    },
    "tf.contrib.framework.BoundedTensorSpec": "tf.python.framework.tensor_spec.BoundedTensorSpec",
    "tf.contrib.framework.RecordInput": "tf.python.ops.data_flow_ops.RecordInput",
    "tf.contrib.framework.convolutional_delta_orthogonal": "tf.python.ops.init_ops.ConvolutionDeltaOrthogonal",
    "tf.contrib.framework.convolutional_orthogonal_1d": "tf.python.ops.init_ops.ConvolutionOrthogonal1D",
    "tf.contrib.framework.convolutional_orthogonal_2d": "tf.python.ops.init_ops.ConvolutionOrthogonal2D",
    "tf.contrib.framework.convolutional_orthogonal_3d": "tf.python.ops.init_ops.ConvolutionOrthogonal3D",
    **{
        f"tf.contrib.framework.{name}": f"tf.python.util.deprecation.{name}"
        for name in ("deprecated", "deprecated_arg_values", "deprecated_args")
    },
    "tf.contrib.framework.load_embedding_initializer": "tf.python.training.checkpoint_ops._load_embedding_initializer",
    **{
        f"tf.contrib.framework.{name}": f"tf.python.framework.ops.{name}"
        for name in ("prepend_name_scope", "strip_name_scope")
    },
    "tf.contrib.framework.smart_case": "tf.python.framework.smart_cond.smart_case",
    **{
        f"tf.contrib.lookup.{name}": f"tf.python.ops.lookup_ops.{name}"
        for name in (
            "HasherSpec",
            "IdTableWithHashBuckets",
            "InitializableLookupTableBase",
            "LookupInterface",
            "StrongHashSpec",
            "TableInitializerBase",
            "TextFileIdTableInitializer",
            "TextFileStringTableInitializer",
        )
    },
    "tf.contrib.nn.nth_element": "tf.python.ops.nn_ops.nth_element",
    "tf.contrib.rnn.LayerRNNCell": "tf.python.ops.rnn_cell_impl.LayerRNNCell",
    "tf.contrib.rnn.best_effort_input_batch_size": "tf.python.ops.rnn._best_effort_input_batch_size",
    "tf.contrib.staging.StagingArea": "tf.python.ops.data_flow_ops.StagingArea",
    **{
        f"tf.contrib.util.{name}": f"tf.python.framework.meta_graph.{name}"
        for name in ("ops_used_by_graph_def", "stripped_op_list_for_graph")
    },
    f"{_BEHIND}.util.fn_args": "tf.python.util.function_utils.fn_args",
}
#: What tf_slim, a package of its own, has of tf.contrib.slim, tf.contrib.layers and tf.contrib.framework.
SLIM = frozenset(
    """GDN OPTIMIZER_CLS_NAMES OPTIMIZER_SUMMARIES RevBlock VariableDeviceChooser adaptive_clipping_fn add_arg_scope
    add_model_variable apply_regularization arg_scope arg_scope_func_key arg_scoped_arguments assert_global_step
    assert_or_get_global_step assign_from_checkpoint assign_from_checkpoint_fn assign_from_values assign_from_values_fn
    avg_pool2d avg_pool3d batch_norm bias_add bucketize conv1d conv2d conv2d_in_plane conv2d_transpose conv3d
    conv3d_transpose convolution convolution1d convolution2d convolution2d_in_plane convolution2d_transpose
    convolution3d convolution3d_transpose create_global_step current_arg_scope data_decoder data_provider dataset
    dataset_data_provider dense_to_sparse dropout elu evaluation filter_variables flatten fully_connected gdn
    get_global_step get_local_variables get_model_variables get_or_create_global_step get_trainable_variables
    get_unique_variable get_variable_full_name get_variables get_variables_by_name get_variables_by_suffix
    get_variables_to_restore global_variable group_norm has_arg_scope images_to_sequence instance_norm
    l1_l2_regularizer l1_regularizer l2_regularizer layer_norm learning legacy_fully_connected legacy_linear legacy_relu
    linear local_variable losses max_pool2d max_pool3d maxout metrics model_analyzer model_variable one_hot_encoding
    optimize_loss parallel_reader pool prefetch_queue queues recompute_grad relu relu6 repeat rev_block
    scale_gradient separable_conv2d separable_convolution2d sequence_to_images softmax spatial_softmax stack
    sum_regularizer summaries summarize_activation summarize_activations summarize_biases summarize_collection
    summarize_tensor summarize_tensors summarize_variables summarize_weights tfexample_decoder unit_norm variable
    variance_scaling_initializer xavier_initializer xavier_initializer_conv2d""".split()  # noqa: SIM905
)
_METRICS = frozenset(
    """accuracy aggregate_metric_map aggregate_metrics auc_using_histogram auc_with_confidence_intervals cohen_kappa
    count precision_at_recall precision_recall_at_equal_thresholds recall_at_precision sparse_recall_at_top_k
    streaming_concat streaming_covariance streaming_curve_points streaming_dynamic_auc streaming_false_negative_rate
    streaming_false_negative_rate_at_thresholds streaming_false_negatives streaming_false_negatives_at_thresholds
    streaming_false_positive_rate streaming_false_positive_rate_at_thresholds streaming_false_positives
    streaming_false_positives_at_thresholds streaming_mean streaming_mean_cosine_distance streaming_mean_iou
    streaming_mean_relative_error streaming_mean_tensor streaming_pearson_correlation streaming_percentage_less
    streaming_precision_at_thresholds streaming_recall_at_k streaming_recall_at_thresholds
    streaming_sensitivity_at_specificity streaming_sparse_average_precision_at_k
    streaming_sparse_average_precision_at_top_k streaming_sparse_precision_at_k streaming_sparse_precision_at_top_k
    streaming_sparse_recall_at_k streaming_specificity_at_sensitivity streaming_true_negatives
    streaming_true_negatives_at_thresholds streaming_true_positives
    streaming_true_positives_at_thresholds""".split()  # noqa: SIM905
)
_LOSSES = frozenset(
    """absolute_difference add_loss compute_weighted_loss cosine_distance get_losses get_regularization_losses
    get_total_loss hinge_loss log_loss mean_pairwise_squared_error mean_squared_error sigmoid_cross_entropy
    softmax_cross_entropy sparse_softmax_cross_entropy""".split()  # noqa: SIM905
)
_METRIC_LEARNING = frozenset(
    """cluster_loss contrastive_loss lifted_struct_loss npairs_loss npairs_loss_multilabel
    triplet_semihard_loss""".split()  # noqa: SIM905
)
SLIM_NETS = frozenset(
    "alexnet inception inception_v1 inception_v2 inception_v3 overfeat resnet_utils resnet_v1 resnet_v2 vgg".split()  # noqa: SIM905
)
#: Modules of contrib, taken as a whole, and where tf_slim has them (1.2.0; seen by importing each).
SLIM_MODULES = {
    **{
        f"tf.contrib.layers.python.layers.{name}": f"layers.{name}"
        for name in ("initializers", "layers", "regularizers", "normalization", "utils")
    },
    "tf.contrib.framework.python.ops.variables": "ops.variables",  # its arg_scope is the function of that name
}
#: Functions of other modules of contrib, and where tf_slim has them (1.1.0; numbers equal to those of 1.15.5).
SLIM_OF = {
    **{f"tf.contrib.metrics.{name}": f"metrics.{name}" for name in _METRICS},
    **{f"tf.contrib.losses.{name}": f"losses.{name}" for name in _LOSSES},
    **{
        f"tf.contrib.losses.{module}.{name}": f"losses.{name}"
        for module in ("metric_learning", "metric_loss_ops")  # the second: behind a private path
        for name in _METRIC_LEARNING
    },
    "tf.contrib.training.multiply_gradients": "learning.multiply_gradients",
    "tf.contrib.training.train": "training.train",
    **{f"tf.contrib.training.{name}": f"train_eval.{name}" for name in ("evaluate_once", "evaluate_repeatedly")},
    **{
        f"tf.contrib.slim.{name}": name
        for name in ("layers", "utils", "initializers", "regularizers", "normalization", "optimizers")
    },
    **{
        f"tf.contrib.training.{name}": f"evaluation.{name}"
        for name in ("get_or_create_eval_step", "wait_for_new_checkpoint", "StopAfterNEvalsHook", "SummaryAtEndHook")
    },
}
#: What programs that Horovod distributes use of it: the workers of TF_CONFIG train in step instead.
HOROVOD = "horovod.tensorflow"
SUPPLIED.update(
    {
        f"{HOROVOD}.{old}": new
        for old, new in {
            "init": "start_worker",
            "shutdown": "stop_worker",
            "is_initialized": "is_worker_started",
            "rank": "worker_rank",
            "size": "worker_count",
            "local_rank": "worker_local_rank",
            "local_size": "worker_local_count",
            **{
                f"{kind}_{asked}": "always_built"
                for kind, asked in (
                    *(("mpi", one) for one in ("built", "enabled", "threads_supported")),
                    *(("gloo", one) for one in ("built", "enabled")),
                    ("nccl", "built"),
                )
            },
            "allreduce": "all_reduce",
            "allgather": "all_gather",
            "broadcast": "broadcast_from",
            "broadcast_variables": "broadcast_variables",
            "broadcast_global_variables": "broadcast_global_variables",
            "BroadcastGlobalVariablesHook": "BroadcastVariablesHook",
            "DistributedOptimizer": "DistributedOptimizer",
            "Compression": "Compression",
            "Average": "MEAN_OF_WORKERS",
            "Sum": "SUM_OF_WORKERS",
        }.items()
    }
)
#: What stands for Horovod's module itself, where that is handed on: it has these names.
WORKERS = "AllWorkers"
#: The names of Horovod's module that are carried over.
OF_HOROVOD = frozenset(name.removeprefix(f"{HOROVOD}.") for name in SUPPLIED if name.startswith(f"{HOROVOD}."))
SUPPLIED.update(
    {
        f"tf.contrib.distributions.{name}": name
        for name in ("MultivariateNormalDiag", "MultivariateNormalDiagWithSoftplusScale")
    }
)
#: Losses of tf.keras that compare labels and outputs of other shapes otherwise in TensorFlow 2, or have another sign.
_KERAS_LOSSES = (
    *("MeanSquaredError", "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredLogarithmicError"),
    *("BinaryCrossentropy", "Hinge", "SquaredHinge", "Huber", "LogCosh", "Poisson", "KLDivergence", "CosineSimilarity"),
)
SUPPLIED.update(
    {
        **{f"tf.keras.losses.{name}": f"{name}Loss" for name in _KERAS_LOSSES},
        **{f"tf.keras.losses.{name}": "cosine_similarity_loss" for name in ("cosine", "cosine_proximity")},
        "tf.keras.losses.cosine_similarity": "cosine_similarity_loss",
    }
)
#: Packages that need TensorFlow 1, and what to do about each.
LIBRARIES = {
    "tensor2tensor": "it is no longer maintained; copy what the program uses into the project",
    "adanet": "it creates Estimators of TensorFlow 1",
    "tensorflowonspark": "it starts Estimators of TensorFlow 1",
    "tf_yarn": "it starts Estimators of TensorFlow 1",
    "npu_bridge": "it requires Ascend's TensorFlow 1",
    "kfac": "it requires TensorFlow 1",
    "tensorflow_ranking": "its heads create Estimators of TensorFlow 1",
    "sonnet": "its modules of TensorFlow 1 (version 1) are not those of TensorFlow 2 (version 2)",
    "tensorforest": "it requires TensorFlow 1",
}
#: Symbols of tensorflow_hub that are gone since TensorFlow 2.16.
OF_HUB = {
    f"tensorflow_hub.{name}": "load the module with hub.load, or with hub.KerasLayer"
    for name in ("ModuleSpec", "create_module_spec", "register_module_for_export")
}
_TRAINERS = ("tf.estimator.train_and_evaluate", "tf.contrib.learn.Experiment", "tf.contrib.learn.learn_runner.run")


def is_maker(name: str) -> bool:
    """Whether a canonical name makes an Estimator when it is called."""
    if not name.startswith(
        ("tf.estimator.", "tf.contrib.", "tf.keras.estimator.", "tensorflow_estimator.", "tf.python.")
    ):
        return False
    last = name.rpartition(".")[2]
    if last in ("Estimator", "TPUEstimator", "model_to_estimator"):
        return True
    of_estimators = any(part in name for part in ("estimator", "contrib.learn", "tensor_forest", "contrib.timeseries"))
    return of_estimators and last.endswith(("Classifier", "Regressor", "Estimator", "KMeans"))


def is_trainer(name: str) -> bool:
    """Whether a canonical name trains an Estimator that it is given."""
    return name in _TRAINERS or name.endswith(".training.train_and_evaluate")
