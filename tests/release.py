"""What `make test` leaves to `make test-all`, which a release has to pass: why, and what covers its kind meanwhile.

Three sorts wait. One is variants: the same kind of program as another test that stays, with another parameter, or a
long run on a cluster whose kind a shorter one covers. Another runs TensorFlow 1.15.5 or processes that race: what they
show is seen by recordings or by one test that stays. The third compares TensorFlow with files that seldom change, a
fixture, a table of names or a module of the bridge: such a test waits only while its files are as they were when it was
last green. Their digests are in release.json; `python -m tests.release` writes them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDED = Path(__file__).with_name("release.json")
SUPPORT = "keras_estimator.py"


@dataclass(frozen=True)
class Waiting:
    """Tests of `file` that wait: the function or method `test`, in these `cases` (none: all of it; "*": each).

    `instead` is a test that stays. `content` is patterns of the files that the test is about, {case} for the case:
    where they have changed since they were recorded, the test does not wait.
    """

    file: str
    test: str
    cases: tuple[str, ...]
    reason: str
    instead: str
    content: str = ""

    @property
    def tests(self) -> tuple[str, ...]:
        """The names as pytest has them."""
        return tuple(f"{self.test}[{case}]" for case in self.cases) or (self.test,)

    def waits(self, name: str) -> bool:
        """Whether the test of this name, one of `tests`, has nothing new to say."""
        return not self.content or recorded().get(self.place(name)) == digest(self.place(name))

    def place(self, name: str) -> str:
        return self.content.replace("{case}", name.removeprefix(self.test)[1:-1].removesuffix("_keras3"))


# fmt: off
_OF_A_FIXTURE = "a fixture that is as it was when it was verified, of a kind of which another is verified"
_VARIANT = "the same code with another parameter"
_CLUSTER = "a long run on a cluster of a kind that has a shorter one"
_TABLE = "a table as it was when it was compared with TensorFlow"
_BESIDE = "beside TensorFlow 1.15.5, whose reference variables race: one such program of this kind stays"
_SUPPLIED = "what the bridge supplies, beside TensorFlow 1.15.5: its files are as they were when both said the same"
_MUTANTS = "mistakes that a program is given: the code that makes them is as it was when each did what it says"
_NOTED = "numbers noted from TensorFlow 1.15.5, which does not change"
_ROWS = "migrator/catalogue/**/*.py benchmarks/catalogue*.py tests/end_to_end/test_catalogue_computes_the_same.py"
_FUZZ = "test_fuzz::test_trains_the_same_or_is_refused[{}]"
_CORE = "test_core::test_the_same_as_tensorflow_1[losses]"

WAITING: tuple[Waiting, ...] = (
    # -- tutorials -------------------------------------------------------------------------------------------------
    Waiting(
        "test_tutorials", "test_commands_with_tensorflow_print_what_is_shown",
        ("dtensor-core", "dtensor-keras", "mirrored-custom-loop", "multi-worker", "repository", "tpu"),
        "a fixture that is verified elsewhere, by the commands of a tutorial",
        "test_tutorials::test_commands_with_tensorflow_print_what_is_shown[checkpoint]",
    ),
    Waiting(
        "test_newcomer", "test_the_script_that_goes_all_the_way", ("proven",),
        "fixtures that are verified elsewhere, by the commands of a newcomer",
        "test_action::test_a_migration_is_checked_and_verified",
    ),
    # -- versions of Python -----------------------------------------------------------------------------------------
    Waiting(
        "test_python_versions", "test_codemod", ("3.10", "3.11", "3.12"), _VARIANT,
        "test_python_versions::test_codemod[3.9]",
    ),
    # -- the guides' programs --------------------------------------------------------------------------------------
    Waiting(
        "test_guides", "test_a_migrated_guide_runs_by_itself", ("S1_v1", "S1_v1_env", "S1_tf2_mwms"), _VARIANT,
        "test_guides::test_a_migrated_guide_runs_by_itself[S1_notebook]",
    ),
    Waiting(
        "test_guides", "test_a_guide_runs_where_it_was_written_for",
        (
            "S1_v1", "S1_v1_env", "S1_notebook", "S1_tf2_ps", "S1_tf2_mwms", "S2_guide", "S3_guide", "S4_article",
        ),
        "what TensorFlow itself does with programs that do not change",
        "test_guides::test_a_migrated_guide_runs_by_itself[S1_notebook]",
    ),
    Waiting(
        "test_guides", "test_a_guide_for_a_tpu_runs_on_the_stand_in", ("S5_p_fit", "S5_p_multi", "S5_p_spe"), _VARIANT,
        "test_guides::test_a_guide_for_a_tpu_runs_on_the_stand_in[S5_p_loop]",
    ),
    Waiting(
        "test_guides", "test_a_guide_is_equivalent",
        (
            "S1_tf2_mwms_worker=2", "S1_v1_env_chief=1,worker=2,ps=2,evaluator=1", "S1_notebook", "S2_guide",
            "S3_guide", "S4_article_2", "S5_p_fit", "S5_p_loop", "S5_p_multi", "S5_p_spe",
        ),
        _CLUSTER, "test_guides::test_servers_of_tensorflow_2_are_compared_on_their_cluster",
    ),
    # -- fixtures --------------------------------------------------------------------------------------------------
    Waiting(
        "test_bridges_are_verified", "test_a_fixture_on_the_bridge_is_equivalent",
        ("classifier", "two_files", "wide_and_deep"), _VARIANT,
        "test_bridges_are_verified::test_a_bridged_program_is_equivalent",
    ),
    Waiting(
        "test_bridges_are_verified", "test_a_fixture_on_the_bridge_is_equivalent",
        ("mirrored_replicas",), _VARIANT,
        "test_bridges_are_verified::test_batches_of_two_workers_are_replayed",
    ),
    Waiting(
        "test_bridges_are_verified", "test_a_fixture_on_the_bridge_is_equivalent",
        ("multi_worker_mirrored", "multi_worker_sharded"), _VARIANT,
        "test_bridges_are_verified::test_batches_of_two_workers_are_replayed",
    ),
    Waiting(
        "test_bridges_are_verified", "test_a_fixture_on_the_bridge_is_equivalent",
        (
            "in_process_cluster", "parameter_server_fixed_shards", "parameter_server_max_size",
            "parameter_server_min_size", "partitioned_embedding",
        ),
        _VARIANT, "test_bridges_are_verified::test_a_wrong_rate_on_servers_is_different",
    ),
    Waiting(
        "test_bridges_are_verified", "test_batches_of_replicas_are_replayed", ("evaluator",), _CLUSTER,
        "test_bridges_are_verified::test_batches_of_two_workers_are_replayed",
    ),
    Waiting(
        "test_bridges_are_verified", "test_a_bridged_program_on_servers_is_equivalent", ("random",), _CLUSTER,
        "test_bridges_are_verified::test_a_wrong_rate_on_servers_is_different",
    ),
    Waiting(
        "test_bridges_are_verified", "test_workers_that_do_not_share_the_loss_are_different", (),
        "a mistake of the library's: where it is made there, the good program is not equivalent",
        "test_bridges_are_verified::test_batches_of_two_workers_are_replayed",
    ),
    Waiting(
        "test_fixtures", "test_fixture_is_equivalent",
        ("bert_classifier", "model_fn_builder", "variable_scopes"), _OF_A_FIXTURE,
        "test_bridges_are_verified::test_a_bridged_program_is_equivalent", "fixtures/{case}/**/*",
    ),
    Waiting(
        "test_fixtures", "test_fixture_is_equivalent",
        ("between_graph_sync",), _OF_A_FIXTURE,
        "test_fixtures::test_fixture_is_equivalent[between_graph]", "fixtures/{case}/**/*",
    ),
    Waiting(
        "test_fixtures", "test_fixture_is_equivalent",
        ("multi_worker_sharded",), _OF_A_FIXTURE,
        "test_fixtures::test_fixture_is_equivalent[multi_worker_mirrored]", "fixtures/{case}/**/*",
    ),
    Waiting(
        "test_fixtures", "test_fixture_is_equivalent",
        ("parameter_server_fixed_shards", "parameter_server_max_size", "parameter_server_min_size"), _OF_A_FIXTURE,
        "test_fixtures::test_fixture_is_equivalent[between_graph]", "fixtures/{case}/**/*",
    ),
    Waiting(
        "test_fixtures", "test_fixture_is_equivalent",
        ("custom_loop", "mirrored_replicas"), _OF_A_FIXTURE,
        "test_fixtures::test_fixture_is_equivalent[classifier]", "fixtures/{case}/**/*",
    ),
    Waiting(
        "test_fixtures", "test_fixture_is_equivalent",
        ("multi_worker_guide", "two_files", "wide_and_deep"), _OF_A_FIXTURE,
        "test_fixtures::test_fixture_is_equivalent[classifier]", "fixtures/{case}/**/*",
    ),
    Waiting(
        "test_fixtures", "test_fixture_is_equivalent",
        ("classifier_keras3",), _OF_A_FIXTURE,
        "test_fixtures::test_fixture_is_equivalent[two_files_keras3]", "fixtures/{case}/**/*",
    ),
    Waiting(
        "test_fixtures", "test_migrated_program_runs_by_itself",
        (
            "bert_classifier", "custom_loop", "in_process_cluster", "mirrored_replicas", "multi_worker_guide",
            "towers", "tpu_convnet", "two_files", "two_files_keras3", "wide_and_deep",
        ),
        "a program that is as it was when it ran without tf-migrate",
        "test_fixtures::test_migrated_program_runs_by_itself[classifier]", "fixtures/{case}/**/*",
    ),
    # -- tables of names -------------------------------------------------------------------------------------------
    Waiting(
        "test_fate", "test_the_table_is_what_tensorflow_says", (), _TABLE,
        "test_symbols::test_every_target_exists", "migrator/names/fates.json",
    ),
    Waiting(
        "test_fate", "test_what_is_gone_behind_the_interface_is_not_there", (), _TABLE,
        "test_symbols::test_every_target_exists", "migrator/names/private.json",
    ),
    Waiting(
        "test_symbols", "test_table_is_up_to_date", (), _TABLE,
        "test_symbols::test_every_target_exists", "migrator/names/symbols.json",
    ),
    Waiting(
        "test_tensorflow2", "test_what_is_said_of_tensorflow_2_21_is_true", (), _TABLE,
        "test_symbols::test_every_target_exists", "migrator/rules/tf2_names.py",
    ),
    Waiting(
        "test_tensorflow2", "test_what_is_said_of_scaled_losses_is_true", ("original", "migrated"),
        "a fact of TensorFlow, without code of ours",
        "test_own_loops_train_the_same::test_a_loop_of_its_own[a-loss-of-classes-on-two-replicas]",
    ),
    Waiting(
        "test_catalogue_computes_the_same", "test_all_rows_compute_the_same", ("keras2-1.15", "keras3-1.15"), _TABLE,
        "test_catalogue_computes_the_same::test_all_rows_compute_the_same[keras2-2.15]", _ROWS,
    ),
    Waiting(
        "test_catalogue_computes_the_same", "test_other_forms_are_found_out",
        ("tf.contrib.layers.fully_connected", "tf.contrib.layers.l2_regularizer"), _TABLE,
        "test_catalogue_computes_the_same::test_other_forms_are_found_out[tf.layers.batch_normalization]", _ROWS,
    ),
    # -- the harness -----------------------------------------------------------------------------------------------
    Waiting(
        "test_cluster_faults", "test_faults_of_real_clusters",
        ("original-worker:1-SIGSTOP", "original-chief:0-lock", "migrated-ps:1-SIGKILL"),
        "each fault of each role is tried without TensorFlow too",
        "test_cluster_faults::test_faults_of_real_clusters[migrated-worker:1-SIGSTOP]",
    ),
    Waiting(
        "test_recording_runs", "test_local_original_against_local_keras", ("momentum", "adagrad"), _VARIANT,
        "test_recording_runs::test_local_original_against_local_keras[adam]",
    ),
    Waiting(
        "test_recording_runs", "test_learning_rate_factor", ("momentum",), _VARIANT,
        "test_recording_runs::test_learning_rate_factor[adam]",
    ),
    Waiting(
        "test_recording_runs", "test_two_mirrored_workers", ("creator", "distributed"), _VARIANT,
        "test_recording_runs::test_two_mirrored_workers[global]",
    ),
    Waiting(
        "test_session", "test_steps_limit_both_trainings", (), "the recorder's limit, by way of the command",
        "test_recording_runs::test_steps_end_training",
    ),
    # -- end to end ------------------------------------------------------------------------------------------------
    Waiting(
        "test_bert_family_train_the_same", "test_predicts_the_same", ("a script beside a training",), _VARIANT,
        "test_bert_family_train_the_same::test_predicts_the_same[extract_features]",
    ),
    Waiting(
        "test_dtensor_trains_the_same", "test_core", ("8-shards0", "2-shards2"), "another layout of the same program",
        "test_dtensor_trains_the_same::test_core[4-shards1]",
    ),
    Waiting(
        "test_executions_train_the_same", "test_executions_of_keras_3", ("data-that-end",), _VARIANT,
        "test_executions_train_the_same::test_executions_of_keras_3[periods]",
    ),
    Waiting(
        "test_keras3_trains_the_same", "test_a_training_goes_on_where_it_ended", (),
        "another way into the continuation of a training on Keras 3",
        "test_interrupted_trainings_go_on::test_it_goes_on_at_the_rate_that_the_program_gives_now[keras 3]",
    ),
    Waiting(
        "test_tasks_of_clusters", "test_servers_without_a_chief_do_not_wait_for_ever", ("task0", "task1"), _CLUSTER,
        "test_tasks_of_clusters::test_servers_without_a_chief_do_not_wait_for_ever[task2]",
    ),
    Waiting(
        "test_cluster_faults", "test_a_keras_program_trains_with_parameter_servers_on_one_core",
        (),
        "a training on servers where a machine has one core",
        "test_cluster_tensorflow::test_keras_trains_on_parameter_servers",
    ),
    Waiting(
        "test_mutate", "test_settings_seen_and_unseen",
        ("adam batches-epsilon-0.001", "momentum batches-momentum-0.5"),
        _VARIANT,
        "test_session::test_mutants_are_killed_where_they_can_be",
    ),
    Waiting(
        "test_mutate", "test_the_last_batch_of_an_epoch",
        ("examples-whole1-left1",),
        _VARIANT,
        "test_session::test_mutants_are_killed_where_they_can_be",
    ),
    Waiting(
        "test_mutate", "test_nothing_to_change",
        ("sparse_rows", "loss_reduction", "batch_norm_updates", "stale_evaluation"),
        _VARIANT,
        "test_session::test_mutants_are_killed_where_they_can_be",
    ),
    Waiting(
        "test_recording_runs", "test_clipping_is_a_setting",
        ("none-expected0", "value-expected2", "several-expected4"),
        _VARIANT,
        "test_recording_runs::test_clipping_is_a_setting[asymmetric-expected3]",
    ),
    Waiting(
        "test_own_layers_train_the_same", "test_a_program_that_only_predicts_reads_the_checkpoint_of_a_training",
        (),
        "predictions in a loop, without a training",
        "test_own_layers_train_the_same::test_predictions_in_a_loop_are_fed_what_came_before",
    ),
    Waiting(
        "test_executions_train_the_same", "test_a_training_on_keras_3_that_ended_between_two_periods",
        (),
        "another way into the continuation of a training on Keras 3",
        "test_interrupted_trainings_go_on::test_it_goes_on_at_the_rate_that_the_program_gives_now[keras 3]",
    ),
    Waiting(
        "test_mesh_trains_the_same", "test_a_table_that_was_partitioned_is_divided",
        (),
        "the table of a fixture that is verified on its mesh",
        "test_mesh_trains_the_same::test_data_and_model_parallel",
    ),
    Waiting(
        "test_mesh_trains_the_same", "test_a_checkpoint_moves_between_layouts",
        (),
        _VARIANT,
        "test_meshes_and_replicas_train_the_same::test_checkpoints_of_programs_move_between_layouts",
    ),
    Waiting(
        "test_weight_averages_train_the_same", "test_averages_of_the_weights",
        ("Momentum with a rate that changes, counted-2", "Adam, clipped, before the step-2"),
        "the same on another number of steps",
        "test_weight_averages_train_the_same::test_averages_of_the_weights[Adam, clipped, before the step-3]",
    ),
    Waiting(
        "test_metrics_train_the_same", "test_evaluates_the_same",
        ("truth values and curves", "classes"),
        _VARIANT,
        "test_metrics_train_the_same::test_evaluates_the_same[truth values and curves with weights]",
    ),
    Waiting(
        "test_ready_models_train_the_same", "test_clusters_train_the_same",
        ("-", "-chief=1,ps=1"),
        _CLUSTER,
        "test_ready_models_train_the_same::"
        "test_clusters_train_the_same[train_distribute=tf.distribute.experimental.MultiWorkerMirror"
        "edStrategy()-worker=2]",
    ),
    Waiting(
        "test_strategies_train_the_same", "test_a_chosen_strategy_trains_the_same",
        ("if-1", "if-2", "function-1"),
        _VARIANT,
        "test_strategies_train_the_same::test_a_chosen_strategy_trains_the_same[if-0]",
    ),
    Waiting(
        "test_canned_train_the_same", "test_canned_estimator",
        ("linear binary", "linear weighted", "deep binary"),
        _VARIANT,
        "test_canned_train_the_same::test_canned_estimator[deep classes]",
    ),
    Waiting(
        "test_bert_family_train_the_same", "test_layers_of_keras_train_the_same",
        ("bfloat16-0.01",),
        _VARIANT,
        "test_bert_family_train_the_same::test_layers_of_keras_train_the_same[fp32-0.0001]",
    ),
    Waiting(
        "test_interrupted_trainings_go_on", "test_trainings_on_data_without_an_end",
        ("between", "shuffled"),
        _VARIANT,
        "test_interrupted_trainings_go_on::test_trainings_on_data_without_an_end[periods]",
    ),
    Waiting(
        "test_interrupted_trainings_go_on", "test_it_goes_on_at_the_rate_that_the_program_gives_now",
        ("fit",),
        _VARIANT,
        "test_interrupted_trainings_go_on::test_it_goes_on_at_the_rate_that_the_program_gives_now[loop]",
    ),
    Waiting(
        "test_repeated_trainings_count_the_same", "test_a_batch_that_is_looked_for_is_no_step",
        ("loop", "handed", "ends"),
        _VARIANT,
        "test_repeated_trainings_count_the_same::test_a_batch_that_is_looked_for_is_no_step[kept]",
    ),
    Waiting(
        "test_rules_train_the_same", "test_trains_and_evaluates_the_same",
        ("absolute difference, mean_absolute_error", "sparse softmax, accuracy", "total loss with two regularizers"),
        "losses and metrics of which the catalogue computes each",
        "test_catalogue_computes_the_same::test_all_rows_compute_the_same[keras2-2.15]",
    ),
    Waiting(
        "test_hooks_train_the_same", "test_hooks_train_the_same",
        ("no decrease, looked at after each step",),
        _VARIANT,
        "test_hooks_train_the_same::test_hooks_train_the_same[no decrease]",
    ),
    Waiting(
        "test_training_trains_the_same", "test_trains_the_same",
        ("Adadelta", "proximal Adagrad"),
        "optimizers of which the catalogue computes each",
        "test_catalogue_computes_the_same::test_all_rows_compute_the_same[keras2-2.15]",
    ),
    Waiting(
        "test_by_hand_trains_the_same", "test_towers_of_a_model_fn_are_two_replicas",
        ("plain",),
        _VARIANT,
        "test_by_hand_trains_the_same::test_towers_of_a_model_fn_are_two_replicas[branches]",
    ),
    Waiting(
        "test_rebinding_trains_the_same", "test_names_of_all_kinds",
        ("unpacked",),
        _VARIANT,
        "test_rebinding_trains_the_same::test_names_of_all_kinds[in a loop]",
    ),
    Waiting(
        "test_bridges_train_the_same", "test_a_program_on_the_bridge_trains_the_same",
        ("variables and layers of a scope that is entered twice",),
        _VARIANT,
        "test_bridges_train_the_same::"
        "test_a_program_on_the_bridge_trains_the_same[variables of every kind, loops and reuse]",
    ),
    # -- the fuzzer ------------------------------------------------------------------------------------------------
    Waiting(
        "test_fuzz", "test_trains_the_same_or_is_refused",
        (
            "regularization=name starts not; driver=two models",
            "regularization=op name",
        ),
        "another program of the same class of fault", _FUZZ.format("scope=variable scopes; regularization=name starts"),
    ),
    Waiting(
        "test_fuzz", "test_trains_the_same_or_is_refused",
        (
            "normalization=two; updates=early list",
        ),
        "another program of the same class of fault", _FUZZ.format("normalization=one; updates=after"),
    ),
    Waiting(
        "test_fuzz", "test_trains_the_same_or_is_refused",
        (
            "rebound=logits after the loss; binding=walrus",
            "rebound=loss after minimize; binding=walrus",
        ),
        "another program of the same class of fault", _FUZZ.format("rebound=logits after the loss; binding=annotated"),
    ),
    Waiting(
        "test_fuzz", "test_trains_the_same_or_is_refused",
        (
            "family=ready model; task=numbers; metrics=several",
            "family=ready model; features=small; optimizer=rmsprop; metrics=none",
        ),
        "another program of the same class of fault", _FUZZ.format("family=ready model"),
    ),
    # -- what the bridge supplies ----------------------------------------------------------------------------------
    Waiting(
        "test_core", "test_the_same_as_tensorflow_1", ("read before",),
        "a race that the bridge loses once in many runs: the step is read in a condition and assigned anew beside it",
        _CORE,
    ),
    Waiting(
        "test_canned", "test_it_goes_on_like_tensorflow1", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_canned.py migrator/bridge/library/canned.py migrator/bridge/library/heads.py",
    ),
    Waiting(
        "test_canned", "test_what_is_read", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_canned.py migrator/bridge/library/canned.py migrator/bridge/library/heads.py",
    ),
    Waiting(
        "test_contrib", "test_it_is_as_in_contrib", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib.py migrator/bridge/library/extenders.py "
        "migrator/bridge/library/predictors.py migrator/bridge/library/hparams.py "
        "migrator/bridge/library/contrib_learn.py",
    ),
    Waiting(
        "test_contrib", "test_what_it_is", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib.py migrator/bridge/library/extenders.py "
        "migrator/bridge/library/predictors.py migrator/bridge/library/hparams.py "
        "migrator/bridge/library/contrib_learn.py",
    ),
    Waiting(
        "test_contrib_learn", "test_it_goes_on_like_tensorflow1", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_learn.py migrator/bridge/library/contrib_learn.py "
        "migrator/bridge/library/contrib_columns.py migrator/bridge/library/contrib_learn_models.py "
        "migrator/bridge/library/contrib_sdca.py",
    ),
    Waiting(
        "test_contrib_learn", "test_it_comes_to_the_same_end", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_learn.py migrator/bridge/library/contrib_learn.py "
        "migrator/bridge/library/contrib_columns.py migrator/bridge/library/contrib_learn_models.py "
        "migrator/bridge/library/contrib_sdca.py",
    ),
    Waiting(
        "test_contrib_learn", "test_rows_specs_and_exports", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_learn.py migrator/bridge/library/contrib_learn.py "
        "migrator/bridge/library/contrib_columns.py migrator/bridge/library/contrib_learn_models.py "
        "migrator/bridge/library/contrib_sdca.py",
    ),
    Waiting(
        "test_contrib_functions", "test_same_numbers_and_names", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_functions.py migrator/bridge/library/contrib_functions.py "
        "migrator/bridge/library/contrib_metrics.py migrator/bridge/library/contrib_crf.py "
        "migrator/bridge/library/contrib_opt.py",
    ),
    Waiting(
        "test_contrib_functions", "test_initial_weights_are_drawn_from_the_same_distribution", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_functions.py migrator/bridge/library/contrib_functions.py "
        "migrator/bridge/library/contrib_metrics.py migrator/bridge/library/contrib_crf.py "
        "migrator/bridge/library/contrib_opt.py",
    ),
    Waiting(
        "test_contrib_rnn", "test_same_numbers_and_names", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_rnn.py migrator/bridge/library/contrib_rnn.py",
    ),
    Waiting(
        "test_contrib_training", "test_same_numbers_and_names", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_training.py migrator/bridge/library/contrib_image.py "
        "migrator/bridge/library/contrib_training.py",
    ),
    Waiting(
        "test_keras_models", "test_it_trains_as_in_tensorflow1", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_keras_models.py migrator/bridge/library/keras_models.py",
    ),
    Waiting(
        "test_hub", "test_a_module_trains_and_predicts_as_its_network", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_hub.py migrator/bridge/library/hub.py",
    ),
    Waiting(
        "test_contrib_cells", "test_names_and_numbers_noted_are_those_of_1_15_5", (), _NOTED, _CORE,
        "tests/bridge/test_contrib_cells.py tests/bridge/noted/contrib_cells.json",
    ),
    Waiting(
        "test_contrib_distributions", "test_numbers_noted_are_those_of_1_15_5", (), _NOTED, _CORE,
        "tests/bridge/test_contrib_distributions.py tests/bridge/noted/contrib_distributions.json",
    ),
    Waiting(
        "test_contrib_legacy_seq2seq", "test_names_and_numbers_noted_are_those_of_1_15_5", (), _NOTED, _CORE,
        "tests/bridge/test_contrib_legacy_seq2seq.py tests/bridge/noted/contrib_legacy_seq2seq.json",
    ),
    Waiting(
        "test_contrib_mixed_precision", "test_numbers_noted_are_those_of_1_15_5", (), _NOTED, _CORE,
        "tests/bridge/test_contrib_mixed_precision.py tests/bridge/noted/contrib_mixed_precision.json",
    ),
    Waiting(
        "test_contrib_opt", "test_numbers_noted_are_those_of_1_15_5", (), _NOTED, _CORE,
        "tests/bridge/test_contrib_opt.py tests/bridge/noted/contrib_opt.json",
    ),
    Waiting(
        "test_contrib_others", "test_numbers_noted_are_those_of_1_15_5", (), _NOTED, _CORE,
        "tests/bridge/test_contrib_others.py tests/bridge/noted/contrib_others.json",
    ),
    Waiting(
        "test_contrib_readers", "test_batches_noted_are_those_of_1_15_5", (), _NOTED, _CORE,
        "tests/bridge/test_contrib_readers.py tests/bridge/noted/contrib_readers.json",
    ),
    Waiting(
        "test_contrib_seq2seq", "test_names_and_numbers_noted_are_those_of_1_15_5", (), _NOTED, _CORE,
        "tests/bridge/test_contrib_seq2seq.py tests/bridge/noted/contrib_seq2seq.json",
    ),
    Waiting(
        "test_contrib_sequences", "test_names_and_numbers_noted_are_those_of_1_15_5", (), _NOTED, _CORE,
        "tests/bridge/test_contrib_sequences.py tests/bridge/noted/contrib_sequences.json",
    ),
    Waiting(
        "test_contrib_cells", "test_names_and_numbers_noted_from_1_15_5", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_cells.py tests/bridge/noted/contrib_cells.json "
        "migrator/bridge/library/contrib_cells.py",
    ),
    Waiting(
        "test_contrib_distributions", "test_numbers_noted_from_1_15_5", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_distributions.py tests/bridge/noted/contrib_distributions.json "
        "migrator/bridge/library/contrib_distributions.py",
    ),
    Waiting(
        "test_contrib_legacy_seq2seq", "test_names_and_numbers_noted_from_1_15_5", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_legacy_seq2seq.py tests/bridge/noted/contrib_legacy_seq2seq.json "
        "migrator/bridge/library/contrib_legacy_seq2seq.py",
    ),
    Waiting(
        "test_contrib_mixed_precision", "test_numbers_noted_from_1_15_5", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_mixed_precision.py tests/bridge/noted/contrib_mixed_precision.json "
        "migrator/bridge/library/contrib_mixed_precision.py",
    ),
    Waiting(
        "test_contrib_opt", "test_numbers_noted_from_1_15_5", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_opt.py tests/bridge/noted/contrib_opt.json "
        "migrator/bridge/library/contrib_opt.py",
    ),
    Waiting(
        "test_contrib_others", "test_numbers_noted_from_1_15_5", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_others.py tests/bridge/noted/contrib_others.json "
        "migrator/bridge/library/contrib_others.py",
    ),
    Waiting(
        "test_contrib_readers", "test_batches_noted_from_1_15_5", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_readers.py tests/bridge/noted/contrib_readers.json "
        "migrator/bridge/library/contrib_readers.py",
    ),
    Waiting(
        "test_contrib_seq2seq", "test_numbers_noted_from_1_15_5", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_seq2seq.py tests/bridge/noted/contrib_seq2seq.json "
        "migrator/bridge/library/contrib_seq2seq.py migrator/bridge/library/contrib_attention.py",
    ),
    Waiting(
        "test_contrib_sequences", "test_names_and_numbers_noted_from_1_15_5", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_contrib_sequences.py tests/bridge/noted/contrib_sequences.json "
        "migrator/bridge/library/contrib_sequences.py",
    ),
    Waiting(
        "test_exports", "test_saved_models_serve_the_same", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_exports.py migrator/bridge/library/exporting.py "
        "migrator/bridge/library/early_stopping.py migrator/bridge/library/estimator.py "
        "migrator/bridge/library/specs.py",
    ),
    Waiting(
        "test_exports", "test_what_is_served", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_exports.py migrator/bridge/library/exporting.py "
        "migrator/bridge/library/early_stopping.py migrator/bridge/library/estimator.py "
        "migrator/bridge/library/specs.py",
    ),
    Waiting(
        "test_exports", "test_all_modes_in_one", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_exports.py migrator/bridge/library/exporting.py "
        "migrator/bridge/library/early_stopping.py migrator/bridge/library/estimator.py "
        "migrator/bridge/library/specs.py",
    ),
    Waiting(
        "test_exports", "test_exporters_export_when_those_did", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_exports.py migrator/bridge/library/exporting.py "
        "migrator/bridge/library/early_stopping.py migrator/bridge/library/estimator.py "
        "migrator/bridge/library/specs.py",
    ),
    Waiting(
        "test_exports", "test_early_stopping", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_exports.py migrator/bridge/library/exporting.py "
        "migrator/bridge/library/early_stopping.py migrator/bridge/library/estimator.py "
        "migrator/bridge/library/specs.py",
    ),
    Waiting(
        "test_exports", "test_what_cannot_be_is_said", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_exports.py migrator/bridge/library/exporting.py "
        "migrator/bridge/library/early_stopping.py migrator/bridge/library/estimator.py "
        "migrator/bridge/library/specs.py",
    ),
    Waiting(
        "test_keras_in_model_fn", "test_it_is_as_in_tensorflow_1", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_keras_in_model_fn.py migrator/bridge/library/estimator.py "
        "migrator/bridge/library/training.py migrator/bridge/library/config.py "
        "migrator/bridge/library/specs.py migrator/bridge/library/graph.py",
    ),
    Waiting(
        "test_keras_in_model_fn", "test_averages_are_updated_by_those_who_ask_for_it", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_keras_in_model_fn.py migrator/bridge/library/estimator.py "
        "migrator/bridge/library/training.py migrator/bridge/library/config.py "
        "migrator/bridge/library/specs.py migrator/bridge/library/graph.py",
    ),
    Waiting(
        "test_tpu", "test_two_cores_train_as_one_device_does", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_tpu.py migrator/bridge/library/tpu.py migrator/bridge/library/tpu_cores.py "
        "migrator/bridge/library/strategies.py",
    ),
    Waiting(
        "test_tpu", "test_what_is_compared_is_a_training", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_tpu.py migrator/bridge/library/tpu.py migrator/bridge/library/tpu_cores.py "
        "migrator/bridge/library/strategies.py",
    ),
    Waiting(
        "test_tpu", "test_without_a_tpu_it_is_said", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_tpu.py migrator/bridge/library/tpu.py migrator/bridge/library/tpu_cores.py "
        "migrator/bridge/library/strategies.py",
    ),
    Waiting(
        "test_unseen", "test_several_steps_are_those_of_tensorflow_1", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_unseen.py migrator/bridge/library/unseen.py migrator/bridge/library/estimator.py",
    ),
    Waiting(
        "test_unseen", "test_they_are_taken", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_unseen.py migrator/bridge/library/unseen.py migrator/bridge/library/estimator.py",
    ),
    Waiting(
        "test_inputs", "test_batches_are_those_of_the_queues", ("*",), _SUPPLIED,
        _CORE,
        "tests/bridge/test_inputs.py migrator/bridge/library/inputs.py migrator/bridge/library/data.py",
    ),
    Waiting(
        "test_inputs", "test_what_they_are", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_inputs.py migrator/bridge/library/inputs.py migrator/bridge/library/data.py",
    ),
    Waiting(
        "test_inputs", "test_data_frames", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_inputs.py migrator/bridge/library/inputs.py migrator/bridge/library/data.py",
    ),
    Waiting(
        "test_head_functions", "test_numbers_are_those_of_the_original", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_head_functions.py migrator/bridge/library/head_functions.py "
        "migrator/bridge/library/heads.py",
    ),
    Waiting(
        "test_goes_on", "test_trainings_go_on_in_both_directions", (), _SUPPLIED,
        _CORE,
        "tests/bridge/test_goes_on.py migrator/bridge/library/checkpoints.py "
        "migrator/bridge/library/estimator.py",
    ),
    Waiting(
        "test_mutate", "test_learning_rate", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_learning_rate_of_a_schedule", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_a_rate_that_reads_right", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_settings_seen_and_unseen", ("*",), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_accumulator", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_a_setting_only_where_it_was_another", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_nesterov", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_clipping", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_clipping_that_never_clips", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_no_clipping", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_rows_that_no_batch_names", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_rows_that_move_by_momentum", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_sum_for_mean", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_partial_batch", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_regularizers", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_the_last_batch_of_an_epoch", ("*",), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_batch_sizes", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_shuffles", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_the_first_shard", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_batch_normalization_settings", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_no_updates", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_inference_mode_in_training", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_dropout", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_stale_weights", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_the_last_batch", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_metrics", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_batch_normalization_in_training_mode", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_no_regularization", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_changed_weights", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_gradients_of_two_workers", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_automatic_shards", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_shards_of_parameter_servers", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_the_data_of_a_coordinator", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_nothing_to_change", ("*",), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_mutate", "test_a_kind_that_there_is_not_ends_the_run", (), _MUTANTS,
        "test_session::test_mutants_are_killed_where_they_can_be",
        "tests/harness/test_mutate.py migrator/harness/inside/mutate.py "
        "migrator/harness/inside/mutate_keras3.py",
    ),
    Waiting(
        "test_pairs", "test_what_programs_compute_decides", ("drawn",), _VARIANT,
        "test_pairs::test_what_programs_compute_decides[far]",
    ),
    Waiting(
        "test_guides", "test_a_guide_is_equivalent", ("S1_tf2_mwms",), _CLUSTER,
        "test_guides::test_servers_of_tensorflow_2_are_compared_on_their_cluster",
    ),
    # -- more variants ----------------------------------------------------------------------------------------------
    Waiting(
        "test_bridges_are_verified", "test_batches_of_replicas_are_replayed", ("mirrored",), _CLUSTER,
        "test_bridges_are_verified::test_batches_of_two_workers_are_replayed",
    ),
    Waiting(
        "test_bridges_are_verified", "test_an_optimizer_of_its_own_is_equivalent", (), _VARIANT,
        "test_bridges_are_verified::test_a_bridged_program_is_equivalent",
    ),
    Waiting(
        "test_bridges_are_verified", "test_a_bridged_program_on_servers_is_equivalent", ("as they are",), _CLUSTER,
        "test_bridges_are_verified::test_a_wrong_rate_on_servers_is_different",
    ),
    Waiting(
        "test_weight_averages_train_the_same", "test_averages_on_the_bridge", (), _VARIANT,
        "test_bridges_are_verified::test_a_bridged_program_is_equivalent",
    ),
    Waiting(
        "test_true_tensorflow1", "test_equivalent_to_tensorflow_1", ("multi_worker_guide", "parameter_server_min_size"),
        _BESIDE, "test_true_tensorflow1::test_equivalent_to_tensorflow_1[two_files]",
    ),
    Waiting(
        "test_fuzz", "test_the_same_as_tensorflow_1", (), _BESIDE,
        "test_fuzz::test_trains_the_same_or_is_refused[driver=twice; predictions=all]",
    ),
    Waiting(
        "test_programs_train_the_same", "test_hparams_train_the_same", (), _BESIDE,
        "test_programs_train_the_same::test_trains_and_evaluates_the_same[a builder and a module of helpers]",
    ),
    Waiting(
        "test_mesh_constructs_train_the_same", "test_programs_on_a_mesh", (), "seven programs of one kind, 30 s long",
        "test_mesh_trains_the_same::test_data_and_model_parallel",
    ),
    Waiting(
        "test_meshes_and_replicas_train_the_same", "test_one_training_five_ways", (), _VARIANT,
        "test_meshes_and_replicas_train_the_same::test_checkpoints_of_programs_move_between_layouts",
    ),
    Waiting(
        "test_recording_mesh", "test_averages_rates_and_clipping_are_those_of_the_step", (), _VARIANT,
        "test_recording_mesh::test_steps_on_a_mesh_are_recorded",
    ),
    Waiting(
        "test_recording_mesh", "test_a_mesh_of_others_trains_the_same", (), _VARIANT,
        "test_recording_mesh::test_steps_on_a_mesh_are_recorded",
    ),
    Waiting(
        "test_executions_train_the_same", "test_workers_that_exchange_what_is_shown_once_for_an_execution", (),
        _CLUSTER,
        "test_executions_train_the_same::test_an_execution_of_many_steps_is_those_steps[replicas]",
    ),
    Waiting(
        "test_recording_runs", "test_every_asynchronous_trainer_takes_part", (),
        "trainers that do not wait for each other: on a busy machine one may take all the steps",
        "test_recording_runs::test_free_workers_and_the_evaluator_of_a_migrated_program",
    ),
    Waiting(
        "test_fixtures", "test_fixture_is_equivalent", ("in_process_cluster", "partitioned_embedding"), _OF_A_FIXTURE,
        "test_fixtures::test_fixture_is_equivalent[between_graph]", "fixtures/{case}/**/*",
    ),
    Waiting(
        "test_fixtures", "test_fixture_is_equivalent", ("towers", "tpu_convnet"), _OF_A_FIXTURE,
        "test_fixtures::test_fixture_is_equivalent[classifier]", "fixtures/{case}/**/*",
    ),
    Waiting(
        "test_fixtures", "test_migrated_program_runs_by_itself", ("variable_scopes",),
        "a program that is as it was when it ran without tf-migrate",
        "test_fixtures::test_migrated_program_runs_by_itself[classifier]", "fixtures/{case}/**/*",
    ),
    Waiting(
        "test_bert_family_train_the_same", "test_predicts_the_same",
        ("whole batches",),
        _VARIANT,
        "test_bert_family_train_the_same::test_predicts_the_same[extract_features]",
    ),
    Waiting(
        "test_by_hand_trains_the_same", "test_two_towers_are_two_replicas",
        ("batches of their own",),
        _VARIANT,
        "test_by_hand_trains_the_same::test_two_towers_are_two_replicas[parts of a batch]",
    ),
    Waiting(
        "test_by_hand_trains_the_same", "test_towers_of_a_model_fn_are_two_replicas",
        ("gradients",),
        _VARIANT,
        "test_by_hand_trains_the_same::test_towers_of_a_model_fn_are_two_replicas[branches]",
    ),
    Waiting(
        "test_by_hand_trains_the_same", "test_synchronous_replicas_on_two_workers",
        ("in a function of its own",),
        _VARIANT,
        "test_by_hand_trains_the_same::test_synchronous_replicas_on_two_workers[in one function]",
    ),
    Waiting(
        "test_canned_on_tensorflow1", "test_on_tensorflow1",
        ("binary head", "private head", "regression head", "linear",),
        _BESIDE,
        "test_canned_on_tensorflow1::test_on_tensorflow1[deep]",
    ),
    Waiting(
        "test_canned_train_the_same", "test_canned_estimator",
        ("linear classes", "deep numbers",),
        _VARIANT,
        "test_canned_train_the_same::test_canned_estimator[deep classes]",
    ),
    Waiting(
        "test_contrib_layers_train_the_same", "test_trains_and_evaluates_the_same",
        (
            "weights, poolings and defaults", "batch normalization that always trains, and whose updates never run",
            "layer normalization",
        ),
        _BESIDE,
        "test_contrib_layers_train_the_same::"
        "test_trains_and_evaluates_the_same[batch normalization of vectors and images]",
    ),
    Waiting(
        "test_contrib_training_trains_the_same", "test_trains_the_same",
        ("create_train_op with Nadam", "AdaMax", "LazyAdam on an embedding",),
        _BESIDE,
        "test_contrib_training_trains_the_same::test_trains_the_same[optimize_loss with a decay and clipping]",
    ),
    Waiting(
        "test_driving_trains_the_same", "test_trains_and_evaluates_the_same",
        (
            "arrays over epochs that straddle batches", "params and mode",
            "contrib's old transformations as of tf.data.experimental", "hooks, session settings and replace",
            "a TPUEstimator without a TPU",
        ),
        _VARIANT,
        "test_driving_trains_the_same::test_trains_and_evaluates_the_same[work on the tensors of an iterator]",
    ),
    Waiting(
        "test_executions_train_the_same", "test_an_execution_of_many_steps_is_those_steps",
        ("lines-without-a-cluster", "central-storage", "servers",),
        _VARIANT,
        "test_executions_train_the_same::test_an_execution_of_many_steps_is_those_steps[native]",
    ),
    Waiting(
        "test_handed_estimators_train_the_same", "test_trains_and_evaluates_the_same",
        ("a function that is given", "a chosen model",),
        _VARIANT,
        "test_handed_estimators_train_the_same::test_trains_and_evaluates_the_same[a runner]",
    ),
    Waiting(
        "test_hooks_train_the_same", "test_hooks_train_the_same",
        ("own hook in a list", "hook of the model_fn", "asked every other step", "higher",),
        _VARIANT,
        "test_hooks_train_the_same::test_hooks_train_the_same[own hook that looks at the loss]",
    ),
    Waiting(
        "test_input_functions_that_draw_train_the_same", "test_they_train_on_the_same_data",
        ("one after the other", "an object",),
        _VARIANT,
        "test_input_functions_that_draw_train_the_same::test_they_train_on_the_same_data[a loop]",
    ),
    Waiting(
        "test_interrupted_trainings_go_on", "test_the_training_goes_on_from_the_newest_checkpoint",
        ("handed",),
        _VARIANT,
        "test_interrupted_trainings_go_on::test_the_training_goes_on_from_the_newest_checkpoint[driver]",
    ),
    Waiting(
        "test_interrupted_trainings_go_on", "test_it_goes_on_at_the_rate_that_the_program_gives_now",
        ("handed",),
        _VARIANT,
        "test_interrupted_trainings_go_on::test_it_goes_on_at_the_rate_that_the_program_gives_now[loop]",
    ),
    Waiting(
        "test_keras3_trains_the_same", "test_embeddings",
        ("tf.train.RMSPropOptimizer(0.01)",),
        _VARIANT,
        "test_keras3_trains_the_same::test_embeddings[tf.train.AdamOptimizer(0.005)]",
    ),
    Waiting(
        "test_keras3_trains_the_same", "test_a_loop_of_its_own",
        ("two-replicas",),
        _VARIANT,
        "test_keras3_trains_the_same::test_a_loop_of_its_own[one-device]",
    ),
    Waiting(
        "test_keras3_trains_the_same", "test_replicas_that_fit",
        ("saves",),
        _VARIANT,
        "test_keras3_trains_the_same::test_replicas_that_fit[trains]",
    ),
    Waiting(
        "test_keras3_trains_the_same", "test_metrics",
        ("classes",),
        _VARIANT,
        "test_keras3_trains_the_same::test_metrics[truth values and curves with weights]",
    ),
    Waiting(
        "test_layers_train_the_same", "test_trains_and_evaluates_the_same",
        (
            "convolutions and poolings of one and three dimensions", "batch normalization whose updates never run",
            "batch normalization whose updates are read before there are any",
            "batch normalization that does not know of the training", "batch normalization that always trains",
            "dropouts of tf.nn and of the training branch",
        ),
        _VARIANT,
        "test_layers_train_the_same::test_trains_and_evaluates_the_same[convolutions of two dimensions]",
    ),
    Waiting(
        "test_losses_train_the_same", "test_trains_and_evaluates_the_same",
        (
            "an autoencoder: the features are the labels", "weights, zeros among them, by example and by element",
            "reductions", "a cross entropy of classes by hand",
        ),
        _VARIANT,
        "test_losses_train_the_same::"
        "test_trains_and_evaluates_the_same[two heads, labels by key, a loop over terms]",
    ),
    Waiting(
        "test_metrics_train_the_same", "test_evaluates_the_same",
        ("errors of an output with one axis", "errors with weights, and a tensor inside the network",),
        _VARIANT,
        "test_metrics_train_the_same::test_evaluates_the_same[truth values and curves with weights]",
    ),
    Waiting(
        "test_mirrored_becomes_a_mesh", "test_replicas_and_mesh",
        ("a loop that was emitted",),
        _VARIANT,
        "test_mirrored_becomes_a_mesh::test_replicas_and_mesh[fit, of a model that is built by its data]",
    ),
    Waiting(
        "test_own_loops_train_the_same", "test_a_loop_of_its_own",
        ("a-class-on-one-device", "two-workers-that-draw",),
        _VARIANT,
        "test_own_loops_train_the_same::test_a_loop_of_its_own[a-function-on-two-replicas]",
    ),
    Waiting(
        "test_own_loops_train_the_same", "test_replicas_that_draw_whole_batches",
        ("tf.distribute.experimental.CentralStorageStrategy([\"/cpu:0\", \"/cpu:1\"], \"/cpu:0\")",),
        _VARIANT,
        "test_own_loops_train_the_same::"
        "test_replicas_that_draw_whole_batches[tf.distribute.MirroredStrategy([\"/cpu:0\", \"/cpu:1\"])]",
    ),
    Waiting(
        "test_partitioners_split_the_same", "test_a_cluster_holds_the_same_shards",
        (
            "set in the scope, where there are several servers", "chosen by an if, and an elif that is not so",
            "one for each of two scopes, and none for the third", "told to the scope in it",
        ),
        _VARIANT,
        "test_partitioners_split_the_same::"
        "test_a_cluster_holds_the_same_shards[the input layer's, or as many as servers]",
    ),
    Waiting(
        "test_programs_train_the_same", "test_trains_and_evaluates_the_same",
        ("a partial and dicts",),
        _VARIANT,
        "test_programs_train_the_same::test_trains_and_evaluates_the_same[a builder and a module of helpers]",
    ),
    Waiting(
        "test_ready_models_train_the_same", "test_replicas_train_the_same",
        (
            'tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])-"adam"-tf.keras.losses.Huber()-driver1-False',
            'tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])-"rmsprop"-summed-estimator.train(input_fn)-True',
        ),
        _VARIANT,
        "test_strategies_train_the_same::test_a_chosen_strategy_trains_the_same[if-0]",
    ),
    Waiting(
        "test_rebinding_trains_the_same", "test_names_of_all_kinds",
        ("by a with statement", "deleted and made anew",),
        _VARIANT,
        "test_rebinding_trains_the_same::test_names_of_all_kinds[in a loop]",
    ),
    Waiting(
        "test_repeated_trainings_count_the_same", "test_a_batch_that_is_looked_for_is_no_step",
        ("read",),
        _VARIANT,
        "test_repeated_trainings_count_the_same::test_a_batch_that_is_looked_for_is_no_step[kept]",
    ),
    Waiting(
        "test_rules_train_the_same", "test_trains_and_evaluates_the_same",
        (
            "huber, root mean squared error", "mean of tf.nn sparse softmax with a cast",
            "regularizer that never counted", "label expanded to a column",
        ),
        _VARIANT,
        "test_rules_train_the_same::test_trains_and_evaluates_the_same[softmax with smoothing of one-hot labels]",
    ),
    Waiting(
        "test_several_optimizers_train_the_same", "test_trains_the_same",
        ("a head that is trained alone, clipped by the norm of its gradients",),
        _VARIANT,
        "test_several_optimizers_train_the_same::"
        "test_trains_the_same[Ftrl on the wide part, Adagrad on the deep one]",
    ),
    Waiting(
        "test_several_optimizers_train_the_same", "test_sums_of_gradients_train_the_same",
        ("tf.train.MomentumOptimizer(0.1, 0.9)-loss / 3.0-total-step",),
        _VARIANT,
        "test_several_optimizers_train_the_same::"
        "test_sums_of_gradients_train_the_same[tf.train.AdamOptimizer(0.05)-loss-total / 3.0-(step + 1)]",
    ),
    Waiting(
        "test_strategies_train_the_same", "test_a_chosen_strategy_trains_the_same",
        ("function-2",),
        _VARIANT,
        "test_strategies_train_the_same::test_a_chosen_strategy_trains_the_same[if-0]",
    ),
    Waiting(
        "test_tapes_train_the_same", "test_trains_the_same",
        ("iterations that are the global step",),
        _VARIANT,
        "test_tapes_train_the_same::test_trains_the_same[a tape and a checkpoint]",
    ),
    Waiting(
        "test_training_trains_the_same", "test_trains_the_same",
        ("Ftrl", "an optimizer that a function makes", "a sum of decays",),
        _VARIANT,
        "test_training_trains_the_same::test_trains_the_same[RMSProp, centered, with momentum]",
    ),
    Waiting(
        "test_training_trains_the_same", "test_embeddings_train_the_same",
        ("Ftrl", "Adadelta",),
        _VARIANT,
        "test_training_trains_the_same::test_embeddings_train_the_same[Momentum]",
    ),
    Waiting(
        "test_variables_by_name_train_the_same", "test_a_loss_over_variables_trains_the_same",
        ("variables of numbered layers",),
        _VARIANT,
        "test_variables_by_name_train_the_same::test_a_loss_over_variables_trains_the_same[variables of scopes]",
    ),
    Waiting(
        "test_bridges_train_the_same", "test_a_program_on_the_bridge_trains_the_same",
        (
            "a bidirectional network and cells of three kinds, trained by a helper",
            "feature columns, shared embeddings",
        ),
        _VARIANT,
        "test_bridges_train_the_same::test_a_program_on_the_bridge_trains_the_same[a condition around the update]",
    ),
    Waiting(
        "test_guides", "test_a_migrated_guide_runs_by_itself",
        ("S1_tf2_ps", "S3_guide", "S4_article",),
        _CLUSTER,
        "test_guides::test_a_migrated_guide_runs_by_itself[S1_notebook]",
    ),
    Waiting(
        "test_guides", "test_a_guide_for_a_tpu_runs_on_the_stand_in",
        ("S5_p_run",),
        _CLUSTER,
        "test_guides::test_a_guide_for_a_tpu_runs_on_the_stand_in[S5_p_loop]",
    ),
    Waiting(
        "test_guides", "test_a_guide_is_equivalent",
        ("S1_tf2_ps",),
        _CLUSTER,
        "test_guides::test_servers_of_tensorflow_2_are_compared_on_their_cluster",
    ),
    Waiting(
        "test_pairs", "test_what_programs_compute_decides",
        ("gru", "towers",),
        _VARIANT,
        "test_pairs::test_what_programs_compute_decides[pixels]",
    ),
    Waiting(
        "test_recording_runs", "test_a_dropout_counts_where_it_is_at_work",
        ("plain", "always on",),
        _VARIANT,
        "test_recording_runs::test_a_dropout_counts_where_it_is_at_work[switched off]",
    ),
    Waiting(
        "test_recording_runs", "test_layers_of_both_programs",
        ("compiled",),
        _VARIANT,
        "test_recording_runs::test_layers_of_both_programs[own train step]",
    ),
    Waiting(
        "test_recording_runs", "test_clipping_is_a_setting",
        ("computed-expected5",),
        _VARIANT,
        "test_recording_runs::test_clipping_is_a_setting[norm-expected1]",
    ),
    Waiting(
        "test_recording_runs", "test_evaluations_of_a_cluster",
        ("parameter servers",),
        _VARIANT,
        "test_recording_runs::test_evaluations_of_a_cluster[mirrored]",
    ),
    Waiting(
        "test_recording_sessions", "test_a_session_that_trains_is_recorded",
        ("plain", "supervised",),
        _VARIANT,
        "test_recording_sessions::test_a_session_that_trains_is_recorded[monitored]",
    ),
    Waiting(
        "test_recording_loops", "test_replicas_train_as_one_device_does",
        ("4",),
        _VARIANT,
        "test_recording_loops::test_replicas_train_as_one_device_does[2]",
    ),
    Waiting(
        "test_recording_loops", "test_recorded_batches_take_the_place_of_others",
        ("1",),
        _VARIANT,
        "test_recording_loops::test_recorded_batches_take_the_place_of_others[2]",
    ),
    Waiting(
        "test_workers", "test_workers_train_as_processes_of_horovod_did",
        ("1-Estimator", "2-session",),
        _VARIANT,
        "test_workers::test_workers_train_as_processes_of_horovod_did[1-session]",
    ),
    Waiting(
        "test_default_graph", "test_drivers_with_operations_of_their_own",
        ("",),
        _VARIANT,
        "test_default_graph::test_drivers_with_operations_of_their_own[mirrored]",
    ),
    Waiting(
        "test_cluster_faults", "test_faults_of_real_clusters",
        ("original-ps:1-SIGKILL", "migrated-chief:0-spin",),
        "each fault of each role is tried without TensorFlow too",
        "test_cluster_faults::test_faults_of_real_clusters[migrated-worker:1-SIGSTOP]",
    ),
    Waiting(
        "test_weight_averages_train_the_same", "test_averages_of_the_weights",
        ("Momentum with a rate that changes, counted-3",),
        _VARIANT,
        "test_weight_averages_train_the_same::test_averages_of_the_weights[Adam, clipped, before the step-3]",
    ),
)
# fmt: on


def find(file: str, name: str) -> Waiting | None:
    """What says that the test of this name in this file waits, whether its files have changed or not."""
    known = _by_name()
    return known.get((file, name)) or known.get((file, f"{name.partition('[')[0]}[*]"))


@cache
def _by_name() -> dict[tuple[str, str], Waiting]:
    return {(one.file, name): one for one in WAITING for name in one.tests}


@cache
def recorded() -> dict[str, str]:
    """The digests of when all tests were last green, by pattern."""
    found: dict[str, str] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found


@cache
def digest(pattern: str) -> str:
    """Of the files of some patterns, names and bytes.

    A support file in a fixture is the text of the bridge's library: its modules and a bridged program have tests of
    their own, and a word of it that changes makes no fixture another program.
    """
    made = hashlib.sha256()
    for path in sorted({path for one in pattern.split() for path in ROOT.glob(one)}):
        if path.is_file() and "__pycache__" not in path.parts and path.name != SUPPORT:
            made.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return made.hexdigest()


def places() -> list[str]:
    """All patterns of files that tests wait for."""
    return sorted({one.place(name) for one in WAITING if one.content for name in one.tests})


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({place: digest(place) for place in places()}, indent=2) + "\n", encoding="utf-8")
