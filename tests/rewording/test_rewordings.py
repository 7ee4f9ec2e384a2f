"""A program in other words comes out as before: the same form, and where only its words differ the same text.

Which fixtures a rewording is tried on rotates, one or two each; `python -m tests.rewording.measure` tries all of them.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache

import pytest

from tests.rewording.measure import Said, cases, said
from tests.rewording.newcomers import LACKING, REWORDINGS
from tests.rewording.rewordings import reword

# Single programs, with what is lacking.
BRIDGED = {
    (
        "numbers_of_static_methods",
        "two_files",
    ): "what a metric does with its labels may call nothing of the file's own",
    ("numbers_of_a_function", "two_files"): "what a metric does with its labels may call nothing of the file's own",
    ("numbers_cached", "two_files"): "what a metric does with its labels may call nothing of the file's own",
    **{
        ("numbers_cached", f"parameter_server_{name}"): "a partitioner's numbers are not those of a function's calls"
        for name in ("fixed_shards", "max_size", "min_size")
    },
    **{
        (rewording, name): "Python's own functions are not tried on a mesh"
        for rewording in ("numbers_cached", "values_debugged", "values_traced", "values_before_dead_code")
        for name in ("mesh_module", "partitioned_embedding")
    },
    **{
        (rewording, name): "variables that the program makes itself are told of"
        for rewording in ("values_debugged", "values_traced", "values_of_star_arguments")
        for name in ("own_weights", "recurrent")
    },
    **{
        (rewording, "tpu_convnet"): "the driver of a TPUEstimator becomes a bridge here; why, was not looked for"
        for rewording in ("driver_of_graph_reset", "driver_in_a_comprehension", "estimators_made_late")
    },
    ("values_of_a_loop", "mirrored_replicas"): "a loop of one turn that gives a name a test of the mode stays a loop",
    ("values_traced", "two_files"): "a helper gives the labels back, and a metric reads them",
    ("values_traced", "mirrored_replicas"): "a helper gives what is there in some modes only",
    ("semicolons", "towers"): "programs without Estimators are read before their words are made plain",
    (
        "numbers_by_vars",
        "parameter_server_min_size",
    ): "a partitioner's numbers are not evaluated: `vars` may do anything",
}
# Rewordings of which nothing is left in the new program.
SAME_TEXT = (
    *("chained_assignments", "unpacked_assignments", "walrus_assignments", "other_alias", "no_alias", "second_alias"),
    *("estimator_classes", "layers_module", "keywords_of_a_dict", "keywords_of_a_dict_call", "loss_by_helper"),
    *("keywords_of_a_named_dict", "spec_by_position", "lambda_model_fns", "one_return", "else_for_return"),
    *("modes_reversed", "modes_in_tuples", "modes_not_unequal", "modes_as_strings", "modes_named", "asserted_shapes"),
    *("results_named", "estimators_in_a_list", "estimators_in_a_dict", "estimators_by_builder", "specs_in_a_function"),
    *("partial_estimators", "layers_by_getattr", "starred_assignments", "values_by_lambda"),
    *("keywords_of_merged_dicts", "keywords_of_an_updated_dict", "arguments_of_a_tuple", "specs_by_walrus"),
    *("train_op_by_condition", "semicolons", "backslashes", "comments"),
    *("import_in_the_model_fn", "import_under_try"),
    *("gradients_apart", "gradients_one_by_one", "gradients_zipped_again", "gradients_mapped"),
    *("steps_grouped", "steps_of_a_list", "steps_by_bound_method", "steps_by_keyword"),
    *("optimizers_of_a_table", "losses_of_a_table", "modes_by_match"),
    *("model_fns_with_other_keywords", "bodies_under_a_device", "modes_by_dict", "specs_replaced"),
    *("driver_calls_bound", "configs_replaced", "behaviour_disabled"),
    *("compat_of_tensorflow", "driver_calls_of_a_dict", "driver_calls_with_hooks", "steps_bound", "steps_of_a_dict"),
    *("modes_of_the_module", "modes_imported", "modes_of_contrib_learn", "modes_by_walrus", "specs_grown"),
    *("global_steps_created", "bodies_under_try", "bodies_under_finally"),
    *("values_of_an_iterator", "values_swapped", "values_popped"),
    *("values_by_or", "values_of_the_end", "values_by_get", "values_kept_in_a_dict", "values_kept_in_a_list"),
)
PLAIN: dict[str, Said] = {}


def of_original(name: str) -> Said:
    """What a fixture becomes as it is, but for its layout and comments."""
    if name not in PLAIN:
        PLAIN[name] = said(cases()[name], ast.unparse)
    return PLAIN[name]


@cache
def fitting(rewording: str) -> list[str]:
    """The fixtures that a rewording says otherwise, beginning with another one than for the rewording before it."""
    found = [
        name
        for name, case in cases().items()
        if any(reword(path.read_text(encoding="utf-8"), rewording) for path in case.original_files)
    ]
    first = list(REWORDINGS).index(rewording) % len(found)
    return found[first:] + found[:first]


#: The older half is tried on two fixtures each, the newer on one.
TURNS = [(one, turn) for turn in range(2) for one in list(REWORDINGS)[: None if turn == 0 else 108]]


@pytest.mark.parametrize(("rewording", "turn"), TURNS)
def test_outcome(rewording: str, turn: int) -> None:
    if turn >= len(fitting(rewording)):
        pytest.skip("fewer fixtures have what this rewording says otherwise")
    fixture = fitting(rewording)[turn]
    before = of_original(fixture)
    after = said(cases()[fixture], lambda module: reword(ast.unparse(module), rewording) or ast.unparse(module))
    if (rewording, fixture) in BRIDGED or rewording in LACKING:
        # Where a strategy or a loop is asked for, there are no bridges.
        is_free = cases()[fixture].options.strategy == "auto"
        assert after.form in (before.form, "bridge" if is_free else "refused"), after.why
        return
    assert after.form == before.form, (fixture, after.why)
    if rewording in SAME_TEXT and before.form == "native":
        assert after.text == before.text, fixture


def test_there_are_enough() -> None:
    assert len(REWORDINGS) - len(LACKING) >= 360 and not set(SAME_TEXT) - set(REWORDINGS)


def test_two_at_once() -> None:
    case = replace(cases()["classifier"])
    after = said(case, lambda module: reword(ast.unparse(module), "second_names", "keywords_of_a_named_dict") or "")
    assert after == of_original("classifier")
