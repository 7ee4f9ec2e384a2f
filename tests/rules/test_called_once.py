"""Functions that a driver calls once, to make an Estimator or to train one: their lines stand in its own."""

from __future__ import annotations

from migrator.findings import Severity
from tests.rules.programs import program, run

TOP = program(driver="").replace('estimator = tf.estimator.Estimator(model_fn, params={"rate": 0.1})\n\n', "")
BUILDER = '''\
# how it is made
def build(folder, rate=0.1):
    """Builds it."""
    params = {"rate": rate}
    # the Estimator
    made = tf.estimator.Estimator(model_fn, model_dir=folder, params=params)
    print("made", folder)
    return made


'''
TRAINS = """\
def train(estimator, steps, batches):
    rounds = steps
    estimator.train(lambda: input_fn().take(batches), steps=rounds)
    return estimator.evaluate(input_fn)


"""
MAIN = "def main(steps):\n    estimator = build('m')\n    {}\n    print(params)\n\n\nmain(3)\n"


def migrated(text: str) -> str:
    new, findings = run(text)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    compile(new, "new", "exec")
    return new


def refused(text: str) -> bool:
    new, findings = run(text)
    return new == text and any(f.severity is Severity.MANUAL for f in findings)


def stays(text: str) -> bool:
    """Whether the Estimator is used as it was, and another object takes its place."""
    new = migrated(text)
    return " = KerasEstimator(model_fn, model_dir=" in new and "estimator.train(" in new and ".fit(" in new


def test_what_a_builder_does_stands_where_it_was_called() -> None:
    new = migrated(TOP + BUILDER + MAIN.format("params = 1\n    estimator.train(input_fn, steps=steps)"))
    assert "def build" not in new and new.count("# how it is made") == new.count("# the Estimator") == 1
    body = new[new.index("def main") :]
    places = [body.index(one) for one in ("# how it is made", "# the Estimator", "model_fn(", 'print("made"', "fit(")]
    assert places == sorted(places)
    assert "params = 1" in body and "print(params)" in body and 'params_2 = {"rate": 0.1}' in body.replace("'", '"')


def test_what_trains_an_estimator_stands_where_it_was_called() -> None:
    main = MAIN.format("params = 1\n    print(train(estimator, steps + 1, params))")
    assert stays(TOP + BUILDER + TRAINS + main)  # its result is an argument: the call is no line of its own
    main = MAIN.format("params = 1\n    result = train(estimator, steps + 1, params)\n    print(result)")
    new = migrated(TOP + BUILDER + TRAINS + main)
    assert "def train" not in new
    body = new[new.index("def main") :]
    assert "rounds = steps + 1" in body.replace("steps_2", "rounds") and "take(params)" in body and "result = " in body
    # What the data read has its value before the model asks for their shapes.
    assert body.index("params = 1") < body.index("model_fn(")


def test_findings_name_the_lines_as_they_were_written() -> None:
    text = TOP + BUILDER + MAIN.format("params = 1\n    estimator.train(input_fn, steps=steps)")
    _, findings = run(text)
    line = text[: text.index("made = tf.estimator")].count("\n") + 1
    assert line in [f.line for f in findings if f.code == "TFM101"]


def test_a_function_that_does_something_else_there_stays() -> None:
    main = MAIN.format("params = 1\n    estimator.train(input_fn, steps=steps)")
    assert refused(TOP + BUILDER + main.replace("    print", "    keep(build('n'))\n    print"))
    assert stays(TOP + BUILDER.replace("    params =", "    if not folder:\n        return None\n    params =") + main)
    assert refused(TOP + "import functools\n\n\n@functools.lru_cache\n" + BUILDER.partition("\n")[2] + main)
    # `input_fn` is another one in main.
    assert refused(
        TOP
        + BUILDER.replace("params =", "print(input_fn)\n    params =")
        + main.replace("main(steps)", "main(steps, input_fn=1)").replace(
            "train(input_fn", "train(globals()['input_fn']"
        )
    )


TWO = BUILDER.replace("return made", "return made, folder")


def _called(line: str, builder: str = TWO) -> str:
    return TOP + builder + f"folder = 'x'\n{line}\nestimator.train(input_fn, steps=3)\nprint(name, folder)\n"


def test_a_builder_that_returns_something_beside_the_estimator() -> None:
    """A run of this program prints `m x`."""
    new = migrated(_called("estimator, name = build('m')"))
    assert "def build" not in new and "name = 'm'" in new and "print(name, folder)" in new


def test_parts_of_a_result_that_depend_on_each_other_stay() -> None:
    reads = TWO.replace("return made, folder", "return folder + '1', made, [name]")
    assert stays("name = 'old'\n" + _called("name, estimator, more = build('m')", reads))
    other = reads.replace("[name]", "[folder]")
    assert "more = ['m']" in migrated(_called("name, estimator, more = build('m')", other))
    new = migrated(_called("name, estimator = build('m')"))
    assert "estimator = 'm'\nestimator.train(input_fn, steps=3)\n" in new  # which is the folder, as it was
    assert refused(_called("estimator, *name = build('m')"))
    assert refused(_called("estimator, name = build('m')", TWO.replace("made, folder", "one(made)")))
