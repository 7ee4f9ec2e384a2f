"""A program in other words comes out as before: the same form, and where only its words differ the same text.

Which fixtures a rewording is tried on rotates, three each; `python -m tests.rewording.measure` tries all of them.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache

import pytest

from tests.rewording.measure import Said, cases, said
from tests.rewording.rewordings import reword
from tests.rewording.training import REWORDINGS

# Single programs, with what is lacking.
BRIDGED = {
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


@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("rewording", REWORDINGS)
def test_outcome(rewording: str, turn: int) -> None:
    if turn >= len(fitting(rewording)):
        pytest.skip("fewer fixtures have what this rewording says otherwise")
    fixture = fitting(rewording)[turn]
    before = of_original(fixture)
    after = said(cases()[fixture], lambda module: reword(ast.unparse(module), rewording) or ast.unparse(module))
    if (rewording, fixture) in BRIDGED:
        assert after.form in (before.form, "bridge")
        return
    assert after.form == before.form, (fixture, after.why)
    if rewording in SAME_TEXT and before.form == "native":
        assert after.text == before.text, fixture


def test_there_are_enough() -> None:
    assert len(REWORDINGS) >= 104 and not set(SAME_TEXT) - set(REWORDINGS)


def test_two_at_once() -> None:
    case = replace(cases()["classifier"])
    after = said(case, lambda module: reword(ast.unparse(module), "second_names", "keywords_of_a_named_dict") or "")
    assert after == of_original("classifier")
