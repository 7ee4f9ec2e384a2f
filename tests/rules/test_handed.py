"""Estimators that do not stay in the function that makes them: what becomes of them, and where they are lost."""

from __future__ import annotations

import ast

import pytest

from migrator.findings import Finding, Severity
from tests.rules.programs import program, run, run_project

ESTIMATOR = 'tf.estimator.Estimator(model_fn, params={"rate": 0.1})'
BUILD = f"def build():\n    return {ESTIMATOR}\n\n\n"


def handed(driver: str, build: str = BUILD) -> str:
    """The program with its Estimator made by a function `build`, and driven by `driver`."""
    return program(driver=build + driver).replace(f"estimator = {ESTIMATOR}\n", "")


def manual(findings: list[Finding]) -> list[tuple[str, int]]:
    return [(f.code, f.line) for f in findings if f.severity is Severity.MANUAL]


def migrated(text: str) -> str:
    new, findings = run(text)
    assert not manual(findings), findings
    assert [f.code for f in findings].count("TFM180") == 1
    ast.parse(new)
    assert "tf.estimator" not in new
    return new


TRAIN = "estimator.train(input_fn, steps=3)"
#: What is done with an Estimator, which stays as it is.
DRIVERS = {
    "given to a name": f"estimator = build()\n{TRAIN}",
    "in a function": f"def main():\n    estimator = build()\n    {TRAIN}\n\n\nmain()",
    "without a name": "build().train(input_fn, steps=3)",
    "in a chain": "build().train(input_fn, steps=3).evaluate(input_fn)",
    "given to a function": f"def go(estimator, n):\n    for _ in range(n):\n        {TRAIN}\n\n\ngo(build(), n=3)",
    "given on": f"def go(estimator):\n    {TRAIN}\n\n\ndef start(one):\n    go(one)\n\n\nstart(build())",
    "in a list": f"for estimator in [build(), build()]:\n    {TRAIN}",
    "in a dict": f'both = {{"a": build()}}\nboth["b"] = build()\nfor name, estimator in both.items():\n    {TRAIN}',
    "in a list that grows": f"every = []\nevery.append(build())\nfor i, estimator in enumerate(every):\n    {TRAIN}",
    "in a tuple": f"estimator, other = build(), 3\n{TRAIN}",
    "in an object": "class Go:\n    def __init__(self):\n        self.one = build()\n\n    def run(self):\n"
    "        self.one.train(input_fn, steps=3)\n\n\nGo().run()",
    "a property": "class Go:\n    @property\n    def one(self):\n        return build()\n\n\nGo().one.train(input_fn)",
    "a class that is given it": "class Go:\n    def __init__(self, one):\n        self.one = one\n\n\n"
    "go = Go(build())\ngo.one.train(input_fn)",
    "in an object, given on": "class Go:\n    def __init__(self):\n        self.one = build()\n\n\n"
    "def run(estimator):\n    estimator.train(input_fn)\n\n\nrun(Go().one)",
    "in an attribute of a class": "class Go:\n    one = build()\n\n    def run(self):\n"
    "        self.one.train(input_fn)\n\n\nGo().run()",
    "in an object of a derived class": "class Base:\n    def run(self):\n        self.one.train(input_fn)\n\n\n"
    "class Go(Base):\n    def __init__(self):\n        self.one = build()\n\n\nGo().run()",
    "on a condition": f"estimator = None\nif go:\n    estimator = build()\nif estimator is not None:\n    {TRAIN}",
    "evaluated first": f"estimator = build()\nwhile estimator.evaluate(input_fn)['loss'] > 1:\n    {TRAIN}",
}


@pytest.mark.parametrize("name", DRIVERS)
def test_what_is_done_with_it_stays(name: str) -> None:
    new = migrated(handed(DRIVERS[name]))
    assert new.endswith(f'\ndef build():\n    return Trainer(model_fn, params={{"rate": 0.1}})\n\n\n{DRIVERS[name]}\n')


#: What is done with an Estimator -> the text of the line where it is lost.
LOST = {
    "to foreign code": ("estimator = build()\nforeign.go(estimator)", "foreign.go"),
    "a foreign function of its own": ("go = foreign.go\nestimator = build()\ngo(estimator)", "go(estimator)"),
    "its variables": ("estimator = build()\nprint(estimator.get_variable_names())", "get_variable_names"),
    "another object's attribute": ("estimator = build()\nother.one = estimator", "other.one"),
    "a stranger": (f"def go(estimator):\n    {TRAIN}\n\n\ngo(build())\ngo(other)", "go(other)"),
    "another value": (f"estimator = build()\nestimator = other\n{TRAIN}", "estimator = other"),
    "its maker is handed on": (f"estimator = build()\n{TRAIN}\nrun(build)", "run(build)"),
    "in the body of a class": ("class Go:\n    one = build()\n    foreign.go(one)", "one = build()"),
    "in an object, to foreign code": (
        "class Go:\n    def __init__(self):\n        self.one = build()\n\n\nforeign.go(Go().one)",
        "foreign.go",
    ),
    "in an object, with hooks of a base": (
        "class Base:\n    def run(self):\n        self.one.train(input_fn, hooks=foreign)\n\n\n"
        "class Go(Base):\n    def __init__(self):\n        self.one = build()\n\n\nGo().run()",
        "",
    ),
    "a lambda": ("go = lambda: build()\ngo().train(input_fn)", "go = lambda"),
    "a star": ("def go(one):\n    one.train(input_fn)\n\n\ngo(*[build()])", "go(*[build()])"),
    "its config": ("estimator = build()\nprint(estimator.config)\nestimator.train(input_fn)", ".config"),
    "nothing": ("estimator = build()", "Estimator("),
}


@pytest.mark.parametrize("name", LOST)
def test_where_it_is_lost_is_named(name: str) -> None:
    driver, part = LOST[name]
    text = handed(driver)
    new, findings = run(text)
    assert new == text
    lines = [text.splitlines()[line - 1] for code, line in manual(findings) if code in ("TFM103", "TFM110")]
    assert lines and any(part in line for line in lines), findings


def test_tensors_of_an_input_function_far_away() -> None:
    text = handed("class Data:\n    def tensors(self):\n        return x, y\n\n\nbuild().train(Data().tensors)")
    text = text.replace("return x, y", "return tf.zeros([3]), tf.ones([3])")
    assert [code for code, _ in manual(run(text)[1])] == ["TFM601"]


def test_the_maker_is_decorated() -> None:
    text = handed(f"estimator = build()\n{TRAIN}", "@cached\n" + BUILD)
    assert [code for code, _ in manual(run(text)[1])] == ["TFM103"]


def test_a_file_that_does_not_say_estimator() -> None:
    files = {
        "making.py": handed("").rstrip() + "\n",
        "main.py": "from making import build, input_fn\n\nmodel = build()\nmodel.train(input_fn, hooks=[], steps=3)\n",
    }
    results = run_project(files)
    assert results["main.py"][0].endswith("\nmodel.train(input_fn, steps=3)\n")
    assert "return Trainer(" in results["making.py"][0]


def test_a_derived_class_behind_an_import_of_everything() -> None:
    head, _, tail = derived().partition("\n\n\nown = ")
    files = {"making.py": head + "\n", "main.py": "from making import *\n\nown = " + tail}
    results = run_project(files)
    assert results["main.py"][0] == files["main.py"]
    assert "class Own(Trainer):" in results["making.py"][0]


def test_a_config_of_another_function() -> None:
    build = f"def build(rate, config, n=1):\n    return {ESTIMATOR}\n\n\n".replace(
        "params={", "config=config, params={"
    )
    driver = "config = tf.estimator.RunConfig({})\nbuild(1, config, n=2).train(input_fn)"
    new = migrated(handed(driver.format("save_summary_steps=5"), build))
    made = 'def build(rate, n=1):\n    return Trainer(model_fn, params={"rate": 0.1})\n'
    assert new.endswith(f"{made}\n\nbuild(1, n=2).train(input_fn)\n")
    refused = handed(driver.format("tf_random_seed=5"), build)
    assert [code for code, _ in manual(run(refused)[1])] == ["TFM108"]


def test_what_a_config_says_is_given_in_its_place() -> None:
    build = f"def build(model_dir=None, config=None):\n    return {ESTIMATOR}\n\n\n"
    build = build.replace("params={", "model_dir=model_dir, config=config, params={")
    driver = 'build(config=tf.estimator.RunConfig(model_dir="m", keep_checkpoint_max=2)).train(input_fn)'
    assert migrated(handed(driver, build)).endswith('\nbuild(model_dir="m").train(input_fn)\n')
    both = driver.replace("build(", 'build("n", ')
    assert migrated(handed(both, build)).endswith('\nbuild("n").train(input_fn)\n')


def test_checkpoints_between() -> None:
    config = 'config=tf.estimator.RunConfig(save_checkpoints_steps=2), model_dir="m", params={'
    new = migrated(handed("build().train(input_fn, steps=3)", BUILD.replace("params={", config)))
    assert "save_every=2" in new and "save_freq=self.save_every" in new


SERVING = """\
def serving():
    x = tf.placeholder(tf.float32, [None, 1])
    return tf.estimator.export.ServingInputReceiver({"x": x}, x)


estimator = build()
"""


def exported(driver: str) -> str:
    text = handed(SERVING + driver)
    return text.replace("train_op=train_op)", "train_op=train_op, predictions={'out': logits})")


def test_an_export_after_a_training() -> None:
    new = migrated(exported(f"{TRAIN}\nif go:\n    print(estimator.export_savedmodel('out', serving))"))
    assert new.endswith("\n    print(estimator.export_saved_model('out', serving))\n")
    assert "def serving(predictor):" in new and "serve = serving(self.predictor)" in new


EARLY = {
    "alone": "estimator.export_savedmodel('out', serving)",
    "before": f"estimator.export_savedmodel('out', serving)\n{TRAIN}",
    "on another condition": f"if go:\n    {TRAIN}\nestimator.export_savedmodel('out', serving)",
}


@pytest.mark.parametrize("name", EARLY)
def test_an_export_without_data(name: str) -> None:
    text = exported(EARLY[name])
    new, findings = run(text)
    assert new == text and [code for code, _ in manual(findings)] == ["TFM142"]


def test_horovod_is_named_whatever_else_is_in_the_way() -> None:
    text = "import horovod.tensorflow as hvd\n" + handed(LOST["its config"][0])
    assert [code for code, _ in manual(run(text)[1])] == ["TFM160", "TFM103"]


def test_a_program_for_npus_is_told_so_and_stays() -> None:
    text = handed(f"estimator = build()\n{TRAIN}")
    assert run(text)[0] != text
    for adapter in ("from npu_bridge.npu_init import *\n", "import npu_bridge\n"):
        new, findings = run(adapter + text)
        assert new == adapter + text and manual(findings)[0][0] == "TFM182"
    assert run("npu_bridge = 1\n" + text)[0] != "npu_bridge = 1\n" + text


def test_an_estimator_of_npus_is_told_so() -> None:
    text = handed(f"estimator = build()\n{TRAIN}").replace("tf.estimator.Estimator(", "NPUEstimator(")
    assert "NPUEstimator(" in text
    module = "from npu_bridge.estimator.npu.npu_estimator import NPUEstimator\n"
    for adapter in ("from npu_bridge.npu_init import *\n", module):
        new, findings = run(adapter + text)
        assert new == adapter + text
        line = next(i for i, one in enumerate((adapter + text).splitlines(), 1) if "NPUEstimator(" in one)
        assert [(f.code, f.line) for f in findings if f.severity is Severity.MANUAL] == [("TFM182", line)]


TRIED = "try:\n    from npu_bridge.npu_config import NPURunConfig\nexcept ImportError:\n    NPURunConfig = None\n"


def test_an_adapter_for_npus_that_is_tried_counts_where_it_is_used() -> None:
    text = handed(f"estimator = build()\n{TRAIN}")
    new, findings = run(TRIED + text)
    assert new != TRIED + text and manual(findings) == []
    used = TRIED + text + "if NPURunConfig is not None:\n    print(NPURunConfig())\n"
    new, findings = run(used)
    assert new == used and manual(findings)[0][0] == "TFM182"


PRIVATE = "from tensorflow.python.estimator import estimator as estimators\n"


def test_estimators_of_private_modules() -> None:
    text = handed(f"estimator = build()\n{TRAIN}").replace("tf.estimator.Estimator(", "estimators.Estimator(")
    new = migrated(text.replace("import tensorflow as tf\n", "import tensorflow as tf\n" + PRIVATE))
    assert "tensorflow.python" not in new


DERIVED = """\
class Own(tf.estimator.Estimator):
    def __init__(self, rate, model_dir=None, config=None):
        {own}
        super().__init__(model_fn, config=config, params=dict(rate=rate), model_dir=model_dir)

    def show(self):
        print(self.{read})


own = Own(0.1)
own.train(input_fn, steps=3)
own.show()
"""


def derived(own: str = "self.x = 1", read: str = "params", **changes: str) -> str:
    text = handed("", "").rstrip() + "\n\n\n" + DERIVED.format(own=own, read=read)
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def test_a_derived_class_keeps_its_shape() -> None:
    new = migrated(derived(read="_params"))
    assert "class Own(Trainer):\n    def __init__(self, rate, model_dir=None):\n" in new
    assert "super().__init__(model_fn, params=dict(rate=rate), model_dir=model_dir)" in new
    assert "print(self.params)" in new


DERIVED_REFUSED = {
    "reads what is not there": (derived(read="_config"), "TFM103"),
    "keeps a model of its own": (derived(own="self.model = 3"), "TFM103"),
    "no super": (derived(super="other"), "TFM181"),
    "evaluates by itself": (derived(show="evaluate"), "TFM103"),
    "a canned one": (derived(**{"tf.estimator.Estimator": "tf.estimator.BaselineClassifier"}), "TFM102"),
    "no object": (derived(**{"own = Own(0.1)\n": "own = None\n"}), "TFM103"),
    "derived from again": (derived() + "\n\nclass More(Own):\n    pass\n", "TFM103"),
}


@pytest.mark.parametrize("name", DERIVED_REFUSED)
def test_derived_classes_that_are_refused(name: str) -> None:
    text, code = DERIVED_REFUSED[name]
    new, findings = run(text)
    assert new == text
    assert code in [c for c, _ in manual(findings)], findings


LOOP = """\
def run(make, n):
    estimator = make()
    for _ in range(n):
        estimator.train(input_fn, steps=3)
    if n:
        export(estimator)


def export(one):
    one.export_savedmodel("out", serving)


"""


def test_a_function_that_makes_it_is_given_to_another() -> None:
    text = exported(LOOP + "run(make=build, n=2)\n").replace("estimator = build()\n", "")
    new, findings = run(text)
    assert not manual(findings), findings
    assert sorted(f.code for f in findings if f.code in ("TFM117", "TFM180")) == ["TFM117", "TFM180"]
    assert "    estimator = make()\n" in new and "run(make=build, n=2)" in new and "return Trainer(" in new
    kept = text.replace("    estimator = make()", "    keep(make)\n    estimator = make()")
    assert "TFM103" in [code for code, _ in manual(run(kept)[1])]
    other = text.replace("run(make=build, n=2)", "def other():\n    return 3\n\n\nrun(build, 2)\nrun(other, 2)")
    assert "TFM103" in [code for code, _ in manual(run(other)[1])]
    unknown = text.replace("run(make=build, n=2)", "run(build, 2)\nrun(lambda: None, 2)")
    assert "TFM103" in [code for code, _ in manual(run(unknown)[1])]
