"""What `make test` leaves to `make test-all`, which a release has to pass: why, and what covers its kind meanwhile.

Two sorts wait. One is variants: the same code of the tool as another test that stays, with another parameter, or a long
run on a cluster whose kind a shorter one covers. For end-to-end tests this was chosen by data: each line of the codemod
that any test runs on the way to a training is run on the way to one in `make test` as well. The other sort compares
TensorFlow with files that seldom change, a fixture or a table of names: such a test waits only while its files are as
they were when `make test-all` was last green. Their digests are in release.json; `python -m tests.release` writes them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECORDED = Path(__file__).with_name("release.json")


@dataclass(frozen=True)
class Waiting:
    """Tests of `file` that wait: the function or method `test`, in these `cases` (none: all of it).

    `instead` is a test that stays. `content` is a pattern of the files that the test is about, {case} for the case:
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
        _CLUSTER, "test_guides::test_a_guide_is_equivalent[S1_tf2_mwms]",
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
        "test_bridges_are_verified::test_batches_of_replicas_are_replayed[mirrored]",
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
        _VARIANT, "test_bridges_are_verified::test_a_bridged_program_on_servers_is_equivalent[as they are]",
    ),
    Waiting(
        "test_bridges_are_verified", "test_batches_of_replicas_are_replayed", ("evaluator",), _CLUSTER,
        "test_bridges_are_verified::test_batches_of_two_workers_are_replayed",
    ),
    Waiting(
        "test_bridges_are_verified", "test_a_bridged_program_on_servers_is_equivalent", ("random",), _CLUSTER,
        "test_bridges_are_verified::test_a_bridged_program_on_servers_is_equivalent[as they are]",
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
        "test_fixtures::test_fixture_is_equivalent[towers]", "fixtures/{case}/**/*",
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
        "test_executions_train_the_same::test_an_execution_of_many_steps_is_those_steps[servers]",
    ),
    Waiting(
        "test_mutate", "test_settings_seen_and_unseen",
        ("adam batches-epsilon-0.001", "momentum batches-momentum-0.5"),
        _VARIANT,
        "test_mutate::test_settings_seen_and_unseen[adam batches-beta_2-0.5]",
    ),
    Waiting(
        "test_mutate", "test_the_last_batch_of_an_epoch",
        ("examples-whole1-left1",),
        _VARIANT,
        "test_mutate::test_the_last_batch_of_an_epoch[generator-whole2-left2]",
    ),
    Waiting(
        "test_mutate", "test_nothing_to_change",
        ("sparse_rows", "loss_reduction", "batch_norm_updates", "stale_evaluation"),
        _VARIANT,
        "test_mutate::test_nothing_to_change[nesterov]",
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
        "test_fixtures::test_fixture_is_equivalent[partitioned_embedding]",
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
        "test_clusters_train_the_same[train_distribute=tf.distribute.experimental.MultiWorkerMirroredStrategy()-worker=2]",
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
)
# fmt: on


def find(file: str, name: str) -> Waiting | None:
    """What says that the test of this name in this file waits, whether its files have changed or not."""
    return _by_name().get((file, name))


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
    """Of the files of a pattern, names and bytes."""
    made = hashlib.sha256()
    for path in sorted(ROOT.glob(pattern)):
        if path.is_file() and "__pycache__" not in path.parts:
            made.update(f"{path.relative_to(ROOT)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return made.hexdigest()


def places() -> list[str]:
    """All patterns of files that tests wait for."""
    return sorted({one.place(name) for one in WAITING if one.content for name in one.tests})


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({place: digest(place) for place in places()}, indent=2) + "\n", encoding="utf-8")
