"""Weights that the two programs keep in another form, against what the cells themselves compute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy_programs import Program, migrated_of, run

from migrator.harness.protocol import l1_variables, name_map, weight_map
from migrator.harness.recording import Array, Variable

RANDOM = np.random.RandomState(0)


def variables(*shapes: tuple[str, tuple[int, ...]]) -> tuple[Variable, ...]:
    return tuple(Variable(name, shape, "float32", True, place, 1) for place, (name, shape) in enumerate(shapes))


def values(of: tuple[Variable, ...]) -> dict[str, Array]:
    return {one.name: RANDOM.normal(size=one.shape).astype(np.float32) for one in of}


def sigmoid(value: Array) -> Array:
    made: Array = 1.0 / (1.0 + np.exp(-value))
    return made


def paired(ours: tuple[Variable, ...], theirs: tuple[Variable, ...], given: dict[str, Array]) -> dict[str, Array]:
    """The migrated program's weights, once they have gone there and back unchanged."""
    found = weight_map.find(ours, theirs, {})
    back: dict[str, Array] = {}
    made = found.initial(given, {name: name for name in given})
    for group in found.groups:
        names = [one.name for one in group.original]
        back |= dict(zip(names, group.to_original(made, weights=True).values(), strict=True))
    for name, value in back.items():
        np.testing.assert_array_equal(value, given[name])
    assert set(back) == set(given)
    return made


def test_an_lstm_cell_of_tensorflow_1_is_that_of_keras() -> None:
    ours = variables(("rnn/lstm_cell/kernel", (5, 8)), ("rnn/lstm_cell/bias", (8,)))
    theirs = variables(("l/cell/kernel", (3, 8)), ("l/cell/recurrent_kernel", (2, 8)), ("l/cell/bias", (8,)))
    given = values(ours)
    made = paired(ours, theirs, given)
    x, h, c = (RANDOM.normal(size=(4, n)).astype(np.float32) for n in (3, 2, 2))
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ given["rnn/lstm_cell/kernel"] + given["rnn/lstm_cell/bias"], 4, 1)
    wanted = sigmoid(f) * c + sigmoid(i) * np.tanh(j)
    z = x @ made["l/cell/kernel"] + h @ made["l/cell/recurrent_kernel"] + made["l/cell/bias"]
    ki, kf, kc, ko = np.split(z, 4, 1)
    np.testing.assert_allclose(sigmoid(kf) * c + sigmoid(ki) * np.tanh(kc), wanted, rtol=1e-5)
    np.testing.assert_allclose(sigmoid(ko), sigmoid(o), rtol=1e-5)


def test_a_table_with_more_rows() -> None:
    ours = variables(("table", (3, 2)), ("dense/kernel", (2, 1)))
    theirs = variables(("embedding/embeddings", (5, 2)), ("dense/kernel", (2, 1)))
    found = weight_map.find(ours, theirs, {})
    given = values(ours)
    made = found.initial(given, {"dense/kernel": "dense/kernel"})
    np.testing.assert_array_equal(made["embedding/embeddings"][2:], given["table"])
    # The others are no row of the table and tell nothing.
    np.testing.assert_allclose(made["embedding/embeddings"][:2], np.tile(given["table"].mean(0), (2, 1)), rtol=1e-6)
    (group,) = found.with_more_rows
    back = group.to_original(made, weights=True)
    np.testing.assert_array_equal(back["embedding/embeddings"], given["table"])
    assert found.told() == ("table: 2 rows more in embedding/embeddings",)
    # As it was found by gradients, in the place of what was taken for granted.
    last = found.with_rows([(ours[0], theirs[0])], {"table": np.array([0, 1, 2, -1, -1])})
    np.testing.assert_array_equal(last.initial(given, {})["embedding/embeddings"][:3], given["table"])
    assert len(last.groups) == 1
    # Fewer rows, other columns, or a kernel for a bias are no such tables.
    for other in (("embedding/embeddings", (2, 2)), ("embedding/embeddings", (5, 3)), ("bias", (5,))):
        assert not weight_map.find(ours, variables(other, ("dense/kernel", (2, 1))), {}).with_more_rows


def test_a_gru_cell_of_tensorflow_1_is_that_of_keras() -> None:
    ours = variables(
        ("rnn/gru_cell/gates/kernel", (5, 4)),
        ("rnn/gru_cell/gates/bias", (4,)),
        ("rnn/gru_cell/candidate/kernel", (5, 2)),
        ("rnn/gru_cell/candidate/bias", (2,)),
    )
    theirs = variables(("g/kernel", (3, 6)), ("g/recurrent_kernel", (2, 6)), ("g/bias", (6,)))
    given = values(ours)
    made = paired(ours, theirs, given)
    x, h = (RANDOM.normal(size=(4, n)).astype(np.float32) for n in (3, 2))
    both = np.concatenate([x, h], 1) @ given["rnn/gru_cell/gates/kernel"] + given["rnn/gru_cell/gates/bias"]
    r, u = np.split(sigmoid(both), 2, 1)
    candidate = np.concatenate([x, r * h], 1) @ given["rnn/gru_cell/candidate/kernel"]
    candidate = np.tanh(candidate + given["rnn/gru_cell/candidate/bias"])
    wanted = u * h + (1 - u) * candidate
    kernel, recurrent, bias = (np.split(made[f"g/{name}"], 3, -1) for name in ("kernel", "recurrent_kernel", "bias"))
    z, keras_r = (sigmoid(x @ kernel[n] + h @ recurrent[n] + bias[n]) for n in (0, 1))
    hh = np.tanh(x @ kernel[2] + (keras_r * h) @ recurrent[2] + bias[2])
    np.testing.assert_allclose(z * h + (1 - z) * hh, wanted, rtol=1e-5)


def test_the_forget_bias_is_in_the_weight_of_keras() -> None:
    ours = variables(("rnn/lstm_cell/kernel", (5, 8)), ("rnn/lstm_cell/bias", (8,)))
    theirs = variables(("l/kernel", (3, 8)), ("l/recurrent_kernel", (2, 8)), ("l/bias", (8,)))
    start = {"rnn/lstm_cell/bias": np.zeros(8, np.float32)}
    own = {"l/bias": np.repeat(np.float32([0, 1, 0, 0]), 2)}
    found = weight_map.find(ours, theirs, {}).with_offsets(start, own)
    bias = next(group for group in found.groups if group.migrated[0].name == "l/bias")
    np.testing.assert_array_equal(bias.to_migrated(start)["l/bias"], own["l/bias"])
    np.testing.assert_array_equal(bias.to_migrated(start, weights=False)["l/bias"], np.zeros(8))
    back = bias.to_original(own, weights=True)
    np.testing.assert_array_equal(next(iter(back.values())), np.zeros(8))


@pytest.mark.parametrize("units", [3, 4])
def test_a_cell_without_gates_has_no_forget_bias(units: int) -> None:
    """Its bias, of as many numbers as it has units, is that of Keras as it stands, whatever it begins with."""
    ours = variables(("rnn/cell/kernel", (2 + units, units)), ("rnn/cell/bias", (units,)))
    theirs = variables(
        ("simple/kernel", (2, units)), ("simple/recurrent_kernel", (units, units)), ("simple/bias", (units,))
    )
    start = {"rnn/cell/bias": np.zeros(units, np.float32)}
    begun = np.where(np.arange(units) == 1, 1, 0).astype(np.float32)
    found = weight_map.find(ours, theirs, {}).with_offsets(start, {"simple/bias": begun})
    assert [len(group.migrated) for group in found.groups] == [2, 1] and not any(group.offset for group in found.groups)


def test_heads_may_stand_apart() -> None:
    ours = variables(("query/kernel", (8, 8)), ("query/bias", (8,)), ("out/kernel", (8, 8)), ("out/bias", (8,)))
    theirs = variables(
        ("mha/query/kernel", (8, 2, 4)),
        ("mha/query/bias", (2, 4)),
        ("mha/attention_output/kernel", (2, 4, 8)),
        ("mha/attention_output/bias", (8,)),
    )
    found = weight_map.find(ours, theirs, {})
    assert [(g.original[0].name, g.migrated[0].name) for g in found.groups] == [
        ("query/kernel", "mha/query/kernel"),
        ("query/bias", "mha/query/bias"),
        ("out/kernel", "mha/attention_output/kernel"),
    ]


def test_a_kernel_is_not_a_bias_of_as_many_numbers() -> None:
    ours = variables(("dense/kernel", (4, 2)), ("dense/gamma", (8,)))
    theirs = variables(("dense/bias", (8,)), ("dense/kernel", (2, 2, 2)))
    assert not weight_map.find(ours, theirs, {}).groups


def test_nothing_is_grouped_where_the_variables_fit() -> None:
    ours = variables(("a/kernel", (4, 4)), ("a/bias", (4,)))
    assert weight_map.find(ours, ours, {}) == weight_map.WeightMap()
    assert name_map.build(ours, ours).complete


@pytest.mark.parametrize("kind", ["average", "sum"])
def test_slots_in_variables_of_its_own_are_those_of_the_original(kind: str) -> None:
    """Values reasoned out: a number beside each weight, kept as a slot by one and as a variable by the other."""
    program = Program(steps=2)
    ours, theirs = run(program), run(migrated_of(program))
    names = name_map.build(ours.variables, theirs.variables)
    kept = {(a, kind): 0.5 * ours.initial[a] for a, _ in names.pairs}
    ours = replace(ours, slots={1: kept})
    own = [
        replace(one, name=f"shadow_{place}", trainable=False, order=100 + place)
        for place, one in enumerate(theirs.variables)
    ]
    shadows = dict(zip((one.name for one in own), (a for a, _ in names.pairs), strict=True))
    state = {**theirs.initial, **{name: 0.5 * ours.initial[a] for name, a in shadows.items()}}
    apart = replace(theirs, variables=(*theirs.variables, *own), states={1: state}, slots={1: {}})

    found = weight_map.with_slots(ours, apart, weight_map.WeightMap(), {})
    assert {name: weight for name, (weight, _, _) in found.slots.items()} == shadows
    seen = found.translate(apart)
    assert seen.variables == theirs.variables and set(seen.states[1]) == set(theirs.initial)
    np.testing.assert_equal({(names.to_original()[b], slot): v for (b, slot), v in seen.slots[1].items()}, kept)
    assert l1_variables.slots_in_use(seen)[theirs.variables[0].name] == {kind}
    # Averages begin as the weights do, sums as the program has them, unless a point says what they had come to.
    given = found.initial(ours.initial, names.to_migrated())
    assert {name: given.get(name) for name in shadows} == {
        name: ours.initial[a] if kind == "average" else None for name, a in shadows.items()
    }
    assert set(found.begin_as_made) == (set() if kind == "average" else set(shadows))
    assert set(found.slots_as_variables({a: value for (a, _), value in kept.items()}, kind)) == set(shadows)
    assert not found.slots_as_variables({a: value for (a, _), value in kept.items()}, "m")

    # An original without such slots has none to pair; nor are variables of another shape slots.
    assert not weight_map.with_slots(replace(ours, slots={1: {}}), apart, weight_map.WeightMap(), {}).slots
    odd = replace(apart, variables=(*theirs.variables, *(replace(one, shape=(7,)) for one in own)))
    assert not weight_map.with_slots(ours, odd, weight_map.WeightMap(), {}).slots


def test_variables_that_only_the_migrated_program_has_are_its_own() -> None:
    program = Program(steps=2)
    ours, theirs = run(program), run(migrated_of(program))
    counter = replace(theirs.variables[-1], name="seen", shape=(), trainable=False, order=200)
    states = {1: {**theirs.initial, "seen": np.float32(3.0)}}
    counting = replace(
        theirs,
        variables=(*theirs.variables, counter),
        initial={**theirs.initial, "seen": np.float32(0.0)},
        states=states,
    )
    found = weight_map.with_own(ours.variables, counting, weight_map.WeightMap(), {})
    assert found.own == ("seen",) and found.translate(counting).variables == theirs.variables
    # One that is trained decides something; one beside a variable that only the original has may be that.
    trained = replace(counting, variables=(*theirs.variables, replace(counter, trainable=True)))
    assert not weight_map.with_own(ours.variables, trained, weight_map.WeightMap(), {}).own
    more = (
        *ours.variables,
        replace(ours.variables[-1], name="moving", shape=(), order=200, trainable=False, dtype="int64"),
    )
    assert not weight_map.with_own(more, counting, weight_map.WeightMap(), {}).own
    idle = replace(counting, states={1: counting.initial})
    assert weight_map.with_own(more, idle, weight_map.WeightMap(), {}).own == ("seen",)


def test_slots_of_an_optimizer_of_its_own_are_told_by_what_they_hold() -> None:
    original = run(Program(optimizer="adam", steps=12))
    theirs = {"first_moment": "mean", "second_moment": "squares"}
    other = migrated_of(Program(optimizer="adam", steps=12))
    migrated = run(other)
    renamed = replace(
        migrated,
        slots={
            step: {(name, theirs.get(kind, kind)): value for (name, kind), value in values.items()}
            for step, values in migrated.slots.items()
        },
    )
    names = name_map.build(original.variables, renamed.variables)
    rename = names.to_original()
    assert l1_variables.judge(original, renamed, names).status.value == "DIFFERENT"
    found = weight_map.with_kinds(original, renamed, weight_map.WeightMap(), rename)
    assert found.kinds == {"mean": "first_moment", "squares": "second_moment"}
    assert l1_variables.judge(original, found.translate(renamed), names).status.value == "EQUIVALENT"
    assert 'slots "mean" of the migrated program hold what slots "first_moment" do' in found.told()
    # What holds something else stays as it is.
    wrong = replace(
        renamed, slots={s: {key: value * 2.0 for key, value in of.items()} for s, of in renamed.slots.items()}
    )
    assert weight_map.with_kinds(original, wrong, weight_map.WeightMap(), rename) == weight_map.WeightMap()


def test_which_variables_stand_for_which_slots_is_told_by_what_they_hold() -> None:
    """An optimizer by hand whose variables were made in another order than that of the names of the slots."""
    original = run(Program(optimizer="adam", steps=12))
    other = run(migrated_of(Program(optimizer="adam", steps=12)))
    names = name_map.build(original.variables, other.variables)
    weights = [one for one in other.variables if one.trainable]
    kinds = ("second_moment", "average", "first_moment")  # in the order in which the variables are made
    own = {
        f"{kind}_{place}": (weight, kind, 100 + 10 * n + place)
        for n, kind in enumerate(kinds)
        for place, weight in enumerate(weights)
    }
    average = {(names.to_original()[one.name], "average"): 0.5 * other.initial[one.name] for one in weights}
    ours = replace(original, slots={step: {**values, **average} for step, values in original.slots.items()})

    def value(step: int, weight: Variable, kind: str) -> Array:
        return 0.5 * other.initial[weight.name] if kind == "average" else other.slots[step][weight.name, kind]

    begun = {
        name: other.initial[w.name] if kind == "average" else 0.0 * other.initial[w.name]
        for name, (w, kind, _) in own.items()
    }
    theirs = replace(
        other,
        variables=(*other.variables, *(replace(w, name=n, trainable=False, order=o) for n, (w, _, o) in own.items())),
        initial={**other.initial, **begun},
        states={
            step: {**values, **{name: value(step, w, kind) for name, (w, kind, _) in own.items()}}
            for step, values in other.states.items()
        },
        slots={step: {} for step in other.slots},
    )
    known = weight_map.with_slots(ours, theirs, weight_map.WeightMap(), {})
    assert all(kind == "average" for name, (_, _, kind) in known.slots.items() if name.startswith("average"))
    found = weight_map.with_kinds(ours, known.translate(theirs), known, names.to_original())
    assert {name: kind for name, (_, _, kind) in found.slots.items()} == {n: kind for n, (_, kind, _) in own.items()}
    # Where they hold what no slot does, the order stays, and the numbers say that it differs.
    wrong = replace(theirs, states={s: {k: 3.0 * v for k, v in of.items()} for s, of in theirs.states.items()})
    assert weight_map.with_kinds(ours, known.translate(wrong), known, names.to_original()) == known
