"""What is said in a roundabout way is reduced, and nothing else: whole texts, those that stay first."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst
import pytest

from migrator.program.parsed import ParsedFile
from migrator.program.reductions import reduced
from tests.rules.programs import run_project

TOP = "import functools\nimport tensorflow as tf\n\n\n"
MODEL = "def model_fn(features, labels, mode):\n{}    return tf.estimator.EstimatorSpec(mode, loss=loss)\n"


def model(*lines: str) -> str:
    """A file with a model_fn of these lines, which ends with a spec of `loss`."""
    return TOP + MODEL.format("".join(f"    {line}\n" for line in lines))


def reduce(text: str, *elsewhere: str) -> str:
    file = ParsedFile.parse(Path("train.py"), text)
    return reduced(file, elsewhere.__contains__).module.code


OBJECT = "class Made(object):\n    pass\n\n\n"
METHOD = (
    TOP
    + "class Model:\n    def model_fn(self, features, labels, mode):\n{}"
    + "        return tf.estimator.EstimatorSpec(mode, loss=loss)\n"
)


def method(*lines: str) -> str:
    """A file with a class whose model_fn has these lines."""
    return METHOD.format("".join(f"        {line}\n" for line in lines))


FIRST = "def first(x, y=None):\n    return x\n\n\n"
DERIVED = (
    TOP
    + "class Base(object):\n    def model_fn(self, features, labels, mode):\n"
    + "        return tf.estimator.EstimatorSpec(mode, loss=1)\n\n\n"
    + "class Model(Base):\n    rate = 1\n\n    def model_fn(self, features, labels, mode):\n"
    + "        return super(Model, self).model_fn(features, labels, mode)\n"
)


def first(*lines: str) -> str:
    """A model of these lines, with a function that returns its first argument."""
    return model(*lines).replace("def model", FIRST + "def model")


def with_modes(text: str) -> str:
    """A file with an enumeration of the modes."""
    modes = "class Mode(enum.Enum):\n    TRAIN = 'train'\n    EVAL = 'eval'\n    PREDICT = 'infer'\n\n\n"
    return text.replace("import functools", "import enum").replace("def model", modes + "def model")


MADE = TOP + "estimator = tf.estimator.Estimator(f)\n"
DATA = "def data():\n    with tf.device('/{}:0'):\n        return tf.data.Dataset.range(3)\n\n\nestimator.train(data)\n"
TABLED = TOP + "class C:\n    {}\n\n\n"
STAYS = {
    "an object of a class with a base, and of one that is not known": model(
        "loss = Net()(features) + 1", "loss = Other()(features)"
    ).replace("def model", "class Net(Base):\n    def build(self):\n        return 1\n\n\ndef model"),
    "nothing, which a loop may leave": model("loss = None", "for one in labels:", "    loss = f(one)"),
    "nothing, which one branch leaves": model("loss = None", "if features:", "    loss = f(1)"),
    "nothing, which another turn reads": model(
        "turn = 1", "for one in labels:", "    loss = f(turn)", "    turn = None"
    ),
    "nothing, which an error leaves": model(
        "loss = None", "try:", "    loss = f(1)", "except ValueError:", "    print(1)"
    ),
    "nothing, which an error that is suppressed leaves": model(
        "loss = None", "with contextlib.suppress(ValueError):", "    loss = f(1)"
    ),
    "nothing, which a function reads": model("loss = None", "def g():", "    return loss", "loss = f(g)"),
    "nothing, unless": model("loss = None", "features and (loss := f(1))"),
    "names that change places in a loop": model(
        "a = f(1)", "b = f(2)", "for one in labels:", "    (a, b) = (b, a)", "loss = a - b"
    ),
    "a copy of what is read again": model("net = f(1)", "loss = net", "net = g(net)", "loss = loss + net"),
    "a value by a flag": model("loss = None if FLAGS.debug else f(1)"),
    "a value by a name that a function sets": (
        "USED = True\n\n\ndef main():\n    global USED\n    USED = False\n\n\n" + model("loss = f(1) if USED else None")
    ),
    "a value by an entry that a function sets": (
        "USED = {'a': True}\n\n\ndef main():\n    USED['a'] = 0\n\n\n" + model("loss = f(1) if USED['a'] else None")
    ),
    "one of two values": "USED = True\n\n\n" + model("loss = f(1) if USED else f(2)"),
    "a value by the mode": model("loss = f(1) if mode == 'train' else None", "loss = g(loss)").replace(
        "= f(1) if", "= x if"
    ),
    "nothing, by a constant": "USED = False\n\n\n" + model("loss = g(f(1) if USED else None)"),
    "what is said not to be None, and may be": model("loss = f(1) or None", "assert loss is not None"),
    "a parameter that is said not to be None": model("assert labels is not None", "loss = f(labels)"),
    "a loop that may end early": TOP + "for one in [f(1)]:\n    if one:\n        break\n    estimator.train(one)\n",
    "a loop of two turns": TOP + "for one in [f(1), f(2)]:\n    estimator.train(one)\n",
    "a table of a class that its object asks": (
        "class C:\n    KINDS = {'a': tf.losses.log_loss}\n\n    def f(self):\n        return self.KINDS['a']\n\n\n"
        + model("loss = C.KINDS['a'](labels)")
    ),
    "a table of a class that is given away": (
        "class C:\n    KINDS = {'a': tf.losses.log_loss}\n\n\nuse(C.KINDS)\n\n\n" + model("loss = C.KINDS['a'](labels)")
    ),
    "a dict that is asked between": model("more = {}", "more['a'] = f(1)", "print(more)", "loss = g(**more)"),
    "a dict with an entry of itself": model(
        "more = {}", "more['a'] = f(1)", "more['b'] = more['a']", "loss = g(**more)"
    ),
    "a dict with an entry given twice": model("more = {}", "more['a'] = f(1)", "more['a'] = f(2)", "loss = g(**more)"),
    "a dict with an entry of one branch": model(
        "more = {}", "if features:", "    more['a'] = f(1)", "more['b'] = f(2)", "loss = g(**more)"
    ),
    "a class that is chosen by what changes": model(
        *("if n == 1:", "    kind = tf.train.AdamOptimizer", "else:", "    kind = tf.train.FtrlOptimizer"),
        *("n = 2", "train = kind(n)", "loss = f(train, n)"),
    ),
    "a class that is chosen by a call": model(
        *("if f(1):", "    kind = tf.train.AdamOptimizer", "else:", "    kind = tf.train.FtrlOptimizer"),
        *("train = kind(1)", "loss = 1"),
    ),
    "a class that is chosen and called twice": model(
        *("if features:", "    kind = tf.train.AdamOptimizer", "else:", "    kind = tf.train.FtrlOptimizer"),
        *("train = kind(1)", "other = kind(2)", "loss = train + other"),
    ),
    "an iterator that another one is taken of": model("found = iter([f(1), f(2)])", "loss = next(found) - next(found)"),
    "an iterator of several": model("loss = next(iter([f(1), f(2)]))"),
    "one of a function's arguments, by what is not known": model("loss = max([f(1), f(2)])"),
    "a function that prints": first("loss = first(f(1))").replace("    return x", "    print(x)\n    return x"),
    "a function that checks": first("loss = first(f(1))").replace("    return x", "    assert x\n    return x"),
    "a function that notes it": first("loss = first(f(1))").replace(
        "    return x", "    KNOWN.append(x)\n    return x"
    ),
    "a function that notes it in a list of the file": first("loss = first(f(1))")
    .replace("    return x", "    KNOWN.append(x)\n    return x")
    .replace("def first", "KNOWN = []\n\n\ndef first"),
    "a constant that `setattr` may change": (
        "USED = True\n\n\ndef off(module):\n    setattr(module, 'USED', False)\n\n\n"
        + model("loss = f(1) if USED else None")
    ),
    "a function that counts in a dict of the file": first("loss = first(f(1))")
    .replace("    return x", "    KNOWN['n'] += 1\n    return x")
    .replace("def first", "KNOWN = {'n': 0}\n\n\ndef first"),
    "a function that counts in a class of the file": first("loss = first(f(1))")
    .replace("    return x", "    Known.n += 1\n    return x")
    .replace("def first", "class Known:\n    n = 0\n\n\ndef first"),
    "a function that changes an argument": first("loss = first(f(1), features)").replace(
        "    return x", "    y['n'] = 1\n    return x"
    ),
    "a function that computes": first("loss = first(f(1))").replace("return x", "return 2 * x"),
    "a function that is given more to do": first("loss = first(f(1), f(2))"),
    "a list that is asked for what is not known": model("kept = []", "kept.append(f(1))", "loss = kept[features]"),
    "a list that is given away": model("kept = []", "kept.append(f(1))", "g(kept)", "loss = kept.pop()"),
    "a list that a branch fills": model(
        "kept = []", "kept.append(f(1))", "if features:", "    kept.append(f(2))", "loss = kept.pop()"
    ),
    "a list that a loop fills": model(
        "kept = []", "kept.append(f(1))", "for one in labels:", "    kept.append(f(one))", "loss = kept.pop()"
    ),
    "a list that is added up by another library": model("kept = []", "kept.append(f(1))", "loss = sum_of(kept)"),
    "a function inside that counts": model(
        "net = f(1)", "def more():", "    nonlocal net", "    net = g(net)", "more()", "more()", "loss = net"
    ),
    "a function inside that is handed on": model(
        "net = f(1)", "def more():", "    nonlocal net", "    net = g(net)", "h(more)", "loss = net"
    ),
    "a function inside that returns early": model(
        "net = f(1)",
        "def more():",
        "    nonlocal net",
        "    if features:",
        "        return",
        "    net = g(net)",
        "more()",
        "loss = net",
    ),
    "functions inside of one name, called later": model(
        "def g():", "    return f(1)", "later = lambda: g()", "def g():", "    return f(2)", "loss = later() + g()"
    ),
    "a generator that is asked twice": model(
        "def g():", "    yield f(1)", "    yield f(2)", "it = g()", "loss = next(it) - next(it)"
    ),
    "a generator of several that is asked once": model(
        "def g():", "    yield f(1)", "    yield f(2)", "loss = next(g())"
    ),
    "a method that does more than its base": DERIVED.replace(
        "        return super", "        features = f(features)\n        return super"
    ),
    "a method that gives its base something else": DERIVED.replace(
        "(features, labels, mode)\n", "(features, None, mode)\n"
    ),
    "a method of an unknown base": DERIVED.replace("Model(Base)", "Model(other.Base)"),
    "a bound method that is given another": model("run = features.f", "features.f = g", "loss = run(labels)"),
    "a bound method that is handed on": model("run = features.f", "loss = g(run)"),
    "a bound method of what changes": model("net = f(1)", "run = net.f", "net = f(2)", "loss = run(net)"),
    "an object that is handed on": (
        model("made = Made()", "made.net = f(1)", "loss = g(made, made.net)").replace("def model", OBJECT + "def model")
    ),
    "an object that is read before": (
        model("made = Made()", "loss = made.net", "made.net = f(1)").replace("def model", OBJECT + "def model")
    ),
    "an object with more to it": (
        model("made = Made()", "made.net = f(1)", "loss = made.net").replace(
            "def model", OBJECT.replace("pass", "def __setattr__(self, *_): print(_)") + "def model"
        )
    ),
    "an attribute that another method reads": (
        method("self.net = f(features)", "loss = self.net") + "\n    def net_of(self):\n        return self.net\n"
    ),
    "an attribute that is counted up": method("self.count = 1", "self.count += 1", "loss = f(self.count)"),
    "a table of calls, asked for the mode": model("loss = {TRAIN: f(1)}.get(mode, g)"),
    "a table that is asked for something else": model("loss = {TRAIN: f, EVAL: g}[features]()"),
    "a match that takes something apart": model("match features:", "    case [one, *_]:", "        loss = one"),
    "a match with what a call gives": model("match read():", "    case 1:", "        loss = f(1)"),
    "plain": model("net = tf.layers.dense(features, 1)", "loss = tf.reduce_mean(net)"),
    "a list that is looped over": model("nets = [f(1), f(2)]", "loss = sum(net for net in nets)"),
    "a list of constants": model("units = [64, 32]", "loss = f(features, units[0])"),
    "an entry that is not known": model("nets = {'a': f(1)}", "key = g()", "loss = nets[key]"),
    "an entry that is set": model("nets = {'a': f(1)}", "nets['a'] = f(2)", "loss = nets['a']"),
    "a table of losses that is asked by a name": (
        TOP + "LOSSES = {'a': tf.losses.log_loss}\n\n\n" + MODEL.format("    loss = LOSSES[kind](labels)\n")
    ),
    "a table of losses that changes": (
        TOP
        + "LOSSES = {'a': tf.losses.log_loss}\nLOSSES['a'] = own\n\n\n"
        + MODEL.format("    loss = LOSSES['a'](labels)\n")
    ),
    "a dict that is asked": model("nets = {'a': f(1)}", "loss = nets.get(key())"),
    "keywords that are used twice": model("more = {'units': f(1)}", "net = g(**more)", "loss = h(net, **more)"),
    "keywords that change": model("more = {'units': f(1)}", "more[features] = 'x'", "loss = g(**more)"),
    "keywords of unknown names": model("loss = f(**{name: 1})"),
    "keywords that are given twice": model("more = {'units': f(1)}", "loss = g(units=2, **more)"),
    "getattr with a default": model("loss = getattr(tf.losses, 'mine', None)(labels)"),
    "getattr of a mangled name": model("loss = getattr(features, '__x')"),
    "no copy": model("nothing = None", "loss = f(1)"),
    "a copy in a loop": model("for _ in range(2):", "    loss = step", "    step = f(loss)"),
    "a copy of what is bound again": model("net = f(features)", "kept = net", "net = g(net)", "loss = net + kept"),
    "names that change places": model("a, b = f(1)", "(a, b) = (b, a)", "loss = a - b"),
    "a name that is read while another is computed": model(
        "a = f(1)", "def g():", "    return a", "(a, b) = (f(2), g())", "loss = a - b"
    ),
    "a partial that is handed on": model("part = functools.partial(f, g)", "loss = part(1) + h(part)"),
    "a partial called where a name is another": model(
        "units = 1", "part = functools.partial(f, units)", "loss = [part(units) for units in labels]"
    ),
    "a partial that is told twice": model("loss = functools.partial(f, units=1)(units=2)"),
    "a decorator that does something": TOP
    + "def noted(f):\n    print(f)\n    return f\n\n\n@noted\n"
    + MODEL.format("    loss = 1\n")
    + "\n\nuse(model_fn)\n",
    "a function that is called twice": TOP
    + "def make(rate):\n    return tf.estimator.RunConfig(rate)\n\n\na = make(1)\nb = make(2)\n",
    "a function that is given what has an effect": TOP
    + "def make(rate):\n    return tf.estimator.RunConfig(rate, rate)\n\n\na = make(read())\n",
    "an Estimator that one branch does without": TOP
    + "if a:\n    e = tf.estimator.Estimator(f)\nelif b:\n    e = tf.estimator.Estimator(g)\n",
    "an Estimator that is used in its branch": TOP
    + "if a:\n    e = tf.estimator.Estimator(f)\n    e.train(i)\nelse:\n    e = tf.estimator.Estimator(g)\n",
    "a function that returns an Estimator now and then": TOP
    + "def build(kind):\n    for one in kind:\n        if one:\n            return tf.estimator.Estimator(f)\n"
    "    return tf.estimator.Estimator(g)\n\n\nmodel = build(kinds)\n",
    "a function whose names mean something else": TOP
    + "rate = 1\n\n\ndef make():\n    return tf.estimator.RunConfig(rate)\n\n\n"
    + "def main():\n    rate = 2\n    return make(), rate\n",
    "names that are looked up": model("a = f(1)", "b = a", "loss = locals()['b']"),
    "a pair of which the second may fail": model(
        "a = 0", "try:", "    (a, b) = (f(1), g(2))", "except ValueError:", "    b = 1", "loss = h(a, b)"
    ),
    "a pair that functions see": TOP
    + "a = 0\n\n\ndef g():\n    return a\n\n\n"
    + MODEL.format("    global a\n    (a, loss) = (f(1), g())\n"),
    "a text that names what it shows": model("a = f(1)", "b = a", "print(f'{b=}', a)", "loss = h(a)"),
    "a text that shows an entry": model("c = {'a': f(1)}", "loss = f\"{c['a']=}\""),
    "a text that shows a call": model("loss = f\"{getattr(labels, 'b')=}\""),
    "a keyword twice, once in a dict": model("loss = f(units=2, **{'units': 1})"),
    "a dict of one's own": TOP
    + "def dict(**k):\n    return {'z': k}\n\n\n"
    + MODEL.format("    loss = f(**dict(a=1))\n"),
    "a getattr of one's own": model("loss = f(1)").replace("mode):", "getattr):").replace("mode,", "getattr(tf, 'x'),"),
    "a partial whose keywords come first": model("loss = functools.partial(f, a=g(1))(h(2))"),
    "a partial of one or the other": model("loss = functools.partial(f if mode else g, 1)(labels)"),
    "a partial of what is there": model("loss = functools.partial(f or g, 1)(labels)"),
    "a partial of one turn": model(
        "for i in range(3):", "    if i == 0:", "        part = functools.partial(f, i)", "loss = part(2)"
    ),
    "a function whose argument is read later": TOP
    + "def make(n):\n    return tf.estimator.RunConfig(lambda: n)\n\n\nn = 1\na = make(n)\nn = 2\n",
    "a function in a comprehension of its names": TOP
    + "rate = 0\n\n\ndef make():\n    return tf.estimator.RunConfig(rate)\n\n\na = [make() for rate in (1, 2)]\n",
    "an entry that a loop sets": model(
        "c = {'a': f(1)}", "def inner():", "    for c['a'] in (1, 2):", "        pass", "inner()", "loss = c['a']"
    ),
    "a decorator that is a parameter": TOP
    + "def same(f):\n    return f\n\n\ndef outer(same):\n    @same\n    def model_fn(mode):\n"
    + "        return tf.estimator.EstimatorSpec(mode)\n\n    return model_fn\n",
    "a comment in an assignment": model("(loss := f(1)  # how far", ")"),
    "a comment in a pair": model("(a, loss) = (f(1),  # how far", "    f(a))"),
    "a comment in a list": model("c = [", "    # how far", "    f(1),", "]", "loss = c[0]"),
    "a comment in keywords": model("loss = f(**{", "    'w': 1,  # how far", "})"),
    "a comment in keywords with a name": model("more = {", "    # how far", "    'w': g(1),", "}", "loss = f(**more)"),
    "a comment in a function": TOP
    + "def make():\n    # as ever\n    return tf.estimator.RunConfig(1)\n\n\na = make()\n",
    "several statements on a line that call nothing": TOP + "a = 1; b = 2\n" + MODEL.format("    loss = f(a, b)\n"),
    "a choice by something else than the mode": model("loss = f(1) if wide else f(2)"),
    "a choice by the mode of what is not computed": model("rate = 0.5 if mode == 'train' else 0.0", "loss = f(rate)"),
    "a lambda with a parameter": model("loss = (lambda x: f(x))(1)"),
    "a lambda that binds a name": model("loss = (lambda: (net := f(1)))()", "print(net)"),
    "a graph with more in it than an Estimator": TOP
    + "with tf.Graph().as_default():\n    tf.set_random_seed(1)\n    e = tf.estimator.Estimator(f)\n",
    "a graph with a function in it that computes": TOP
    + "def scale():\n    return tf.constant(1.0)\n\n\n"
    + "with tf.Graph().as_default():\n    x = scale()\n    e = tf.estimator.Estimator(f, params=x)\n",
    "a graph that has a name": TOP
    + "with tf.Graph().as_default() as g:\n    e = tf.estimator.Estimator(f)\n    print(g)\n",
    "a global name that is read elsewhere": TOP
    + "def make():\n    global e\n    e = tf.estimator.Estimator(f)\n\n\nmake()\ne.train(g)\n",
    "a global name that is read before": TOP
    + "def make():\n    global e\n    print(e)\n    e = tf.estimator.Estimator(f)\n\n\nmake()\n",
    "an import of TensorFlow alone": "def model_fn(mode):\n    import tensorflow as flow\n"
    + "    return flow.estimator.EstimatorSpec(mode)\n",
    "a helper that does more than to hand on": TOP
    + "def make(f, **more):\n    print(more)\n    return f(**more)\n\n\n"
    + "e = make(tf.estimator.Estimator, model_fn=f)\ng = make(tf.estimator.RunConfig)\n",
    "a helper that is told its own parameter": TOP
    + "def make(f, **more):\n    return f(**more)\n\n\ne = make(f=tf.estimator.Estimator)\n"
    + "g = make(f=tf.estimator.RunConfig)\n",
    "a dict that something computed of is replaced in": model("loss = g(**{**{'a': f(1)}, 'a': f(2)})"),
    "a rest of what is not written out": model("loss, *rest = both"),
    "a nested function with a parameter": model("def make(x):", "    return f(x)", "loss = make(1)"),
    "a text that is filled in with what is not known": model("loss = tf.identity(f(1), name='{}'.format(mode))"),
    "a text of another library's": model("loss = f(1, '{}'.format('a'))"),
    "a dict of values that is read": model("seen = {}", "loss = f(1)", "seen['loss'] = loss", "g(seen)"),
    "a list that is returned": model("seen = []", "loss = f(1)", "seen.append(loss)").replace("loss=loss", "loss=seen"),
    "a list that is given what is computed for it": model("seen = []", "seen.append(f(1))", "loss = f(2)"),
    "a dict of the module": "SEEN = {}\n\n\n" + model("loss = f(1)", "SEEN['loss'] = loss"),
    "a dict that is filled by what is computed": model("seen = {}", "loss = f(1)", "seen[g()] = loss"),
    "a dict that a function inside reads": model(
        *("seen = {}", "loss = f(1)", "seen['loss'] = loss", "def later():", "    return seen", "g(later)")
    ),
    "a name that another one hides": "RATE = 1\n\n\n"
    + model("RATE = 2", "loss = f(RATE, getattr(sys.modules[__name__], 'RATE'))").replace(
        "import tens", "import sys\nimport tens"
    ),
    "keywords that something changes": "MORE = dict(a=1)\nMORE['a'] = 2\n\n\n" + model("loss = f(**MORE)"),
    "keywords that something may change": "MORE = dict(a=1)\nchange(MORE)\n\n\n" + model("loss = f(**MORE)"),
    "a static method that is given another value": (
        "class Own:\n    @staticmethod\n    def f(*args):\n        return tf.identity(*args)\n\n\nOwn.f = g\n\n\n"
        + model("loss = Own.f(1)")
    ),
    "members that are no modes": with_modes(model("if mode == Mode.TRAIN:", "    g()", "loss = f(1)")),
    "a call that may answer otherwise": model("if g(mode):", "    h()", "loss = f(1)"),
    "a list of a comprehension that is kept": MADE + "all_of = [estimator.train(one) for one in range(3)]\n",
    "a comprehension whose name is another's": MADE
    + "one = 1\n[estimator.train(one) for one in range(3)]\nprint(one)\n",
    "a device of an accelerator": MADE + DATA.format("gpu"),
    "a processor of a network": MADE + DATA.format("cpu").replace("data.Dataset.range", "layers.flatten"),
    "a spec with a value that is given twice": TOP
    + "s = tf.estimator.TrainSpec(f, 10)._replace(max_steps=20)\nestimator.train(s)\n",
    "a function that is told another mode": TOP
    + "NAMES = {'train': 'T', 'eval': 'E', 'infer': 'P', 'export': 'X'}\n\n\n"
    + "def main(mode):\n    if NAMES[mode] != 'P':\n        g()\n    tf.estimator.Estimator(f).train(mode)\n",
    "an attribute of a dict": model("loss = f(1)", "made = {'get': loss}", "g(made.get)"),
    "a loop of one turn over a number": model("for units in [8]:", "    loss = f(units)"),
    "a name that is only declared": model("global more", "loss = f(1)", "later: int"),
    "losses that are read twice": model("some = []", "some.append(f(1))", "loss = tf.add_n(some)", "g(some)"),
    "losses of a loop": model("some = []", "for one in labels:", "    some.append(f(one))", "loss = tf.add_n(some)"),
    "losses of a branch": model("some = []", "if features:", "    some.append(f(1))", "loss = tf.add_n(some)"),
    "losses that are put in front": model("some = []", "some.insert(0, f(1))", "loss = tf.add_n(some)"),
    "losses that come after": model("some = []", "loss = tf.add_n(some)", "some.append(f(1))"),
    "names that are given what a loop computes": model("[loss, more] = [f(one) for one in (1, 2)]", "g(more)"),
    "names that are given more than is there": model("loss, more = list(map(f, labels))", "g(more)"),
    "names that are given what may be another": model("loss, more = collections.deque([f(1), g(2)], 1)", "h(more)"),
    "a value or another by what is not known": model("loss = g(labels) or f(1)"),
    "a copy of an object": OBJECT
    + model("a = Made()", "b = copy.copy(a)", "b.rates.append(2)", "loss = f(a.rates)").replace(
        "import functools", "import copy"
    ),
    "no part of a program": "import functools\n\n\nx = functools.partial(f, 1)(2)\ny = getattr(x, 'z')\n",
}


@pytest.mark.parametrize("text", STAYS.values(), ids=STAYS)
def test_stays(text: str) -> None:
    assert reduce(text) == text


CALLED = "class Net(object):\n    def build(self, x):\n        return x\n\n    __call__ = build\n\n\n"


def called(*lines: str, what: str = CALLED) -> str:
    """A model of these lines, with a class whose objects are called."""
    return model(*lines).replace("def model", what + "def model")


CHANGES = {
    "an object without a name": (
        called("loss = Net(f(1))(g(labels), mode)"),
        called("net = Net(f(1))", "loss = net(g(labels), mode)"),
    ),
    "an object without a name that a method is called of": (
        called("net = f(1)", "out, loss = Net().build(net, labels)"),
        called("net = f(1)", "net_2 = Net()", "out, loss = net_2.build(net, labels)"),
    ),
    "a copy of what a function sets": (
        model(
            "net = f(1)",
            "kept = net",
            "def later():",
            "    nonlocal net",
            "    net = g(2)",
            "later()",
            "loss = net + kept",
        ),
        model("kept = f(1)", "net = g(2)", "loss = net + kept"),
    ),
    "nothing, which gets a value": (model("loss = None", "loss = f(1)"), model("loss = f(1)")),
    "nothing, which both ways give a value": (
        model("loss = None", "if features:", "    loss = f(1)", "else:", "    loss = f(2)"),
        model("if features:", "    loss = f(1)", "else:", "    loss = f(2)"),
    ),
    "names that change places": (
        model("(kept, loss) = (f(1), None)", "(kept, loss) = (loss, kept)"),
        model("loss = f(1)"),
    ),
    "a name for what the next line takes": (
        model("net = f(1)", "a = net", "net = f(2)", "loss = a + net"),
        model("a = f(1)", "net = f(2)", "loss = a + net"),
    ),
    "a value by a constant": (
        "USED = True\n\n\n" + model("loss = f(1) if USED else None"),
        "USED = True\n\n\n" + model("loss = f(1)"),
    ),
    "a value by a constant, in blocks": (
        "LEVEL = 3\n\n\n"
        + model("if LEVEL < 2:", "    more = loss = None", "else:", "    more = f(1)", "    loss = more + 1"),
        "LEVEL = 3\n\n\n" + model("more = f(1)", "loss = more + 1"),
    ),
    "the only element of an iterator": (model("loss = next(iter([f(1)]))"), model("loss = f(1)")),
    "the only entry of a dict": (model("loss = g(dict(net=f(1))['net'])"), model("loss = g(f(1))")),
    "the argument that a function returns": (first("loss = first(f(1))"), model("loss = f(1)")),
    "a table of a class": (
        TABLED.format("KINDS = {'a': tf.train.AdamOptimizer}") + MODEL.format("    loss = C.KINDS[features](labels)\n"),
        TOP + "KINDS = {'a': tf.train.AdamOptimizer}\n\n\n" + MODEL.format("    loss = KINDS[features](labels)\n"),
    ),
    "a dict by its lines": (
        model("more = {}", "more['a'] = f(1)", "more['b'] = g(2)", "loss = h(**more)"),
        model("loss = h(a = f(1), b = g(2))").replace(" = f(1),", "=f(1),").replace("b = g", "b=g"),
    ),
    "a class that is chosen": (
        model(
            *("if features:", "    kind = tf.train.AdamOptimizer", "else:", "    kind = tf.train.FtrlOptimizer"),
            *("train = kind(1)", "loss = f(train)"),
        ),
        model(
            *(
                "if features:",
                "    train = tf.train.AdamOptimizer(1)",
                "else:",
                "    train = tf.train.FtrlOptimizer(1)",
            ),
            "loss = f(train)",
        ),
    ),
    "a class that has a name": (
        model("kind = tf.train.AdamOptimizer", "loss = f(kind(1))"),
        model("loss = f(tf.train.AdamOptimizer(1))"),
    ),
    "an element of a list that is made for it": (model("loss = [f(1), features][0]"), model("loss = f(1)")),
    "what is said not to be None": (
        model("loss = f(1)", "assert loss is not None, 'nothing'"),
        model("loss = f(1)"),
    ),
    "a loop of one turn that trains": (
        TOP + "for (one, two) in [(f(1), g(2))]:\n    tf.estimator.train_and_evaluate(estimator, one, two)\n",
        TOP + "one = f(1)\ntwo = g(2)\ntf.estimator.train_and_evaluate(estimator, one, two)\n",
    ),
    "an attribute of a text in parts": (
        model("loss = getattr(tf.losses, 'log' + '_loss')(labels)"),
        model("loss = tf.losses.log_loss(labels)"),
    ),
    "a list as a stack": (
        model("kept = []", "kept.append(f(1))", "kept.append(g(2))", "net = kept.pop()", "loss = h(net, kept.pop())"),
        model("kept_2 = f(1)", "net = g(2)", "loss = h(net, kept_2)"),
    ),
    "a list as a stack in a loop": (
        model("kept = []", "loss = 1", "for one in labels:", "    kept.append(f(one))", "    loss = kept.pop()"),
        model("loss = 1", "for one in labels:", "    loss = f(one)"),
    ),
    "a function inside that gives a value": (
        model(
            "net = None",
            "def make():",
            "    nonlocal net",
            "    one = f(1)",
            "    net = g(one)",
            "make()",
            "loss = net",
        ),
        model("one = f(1)", "loss = g(one)"),
    ),
    "functions inside of one name": (
        model("def make():", "    return f(1)", "net = make()", "def make():", "    return g(net)", "loss = make()"),
        model("net = f(1)", "loss = g(net)"),
    ),
    "a generator": (
        model("def make():", "    yield f(1)", "    yield f(2)", "[net, two] = list(make())", "loss = g(net, two)"),
        model("net = f(1)", "two = f(2)", "loss = g(net, two)"),
    ),
    "a method that does what it inherits": (
        DERIVED,
        DERIVED[: DERIVED.index("\n    def model_fn", DERIVED.index("rate"))],
    ),
    "a bound method": (
        model("run = features.f", "loss = run(1) + run(2)"),
        model("loss = features.f(1) + features.f(2)"),
    ),
    "an object for its attributes": (
        model("made = Made()", "made.net = f(1)", "loss = g(made.net, made.net)").replace(
            "def model", OBJECT + "def model"
        ),
        model("net = f(1)", "loss = g(net, net)").replace("def model", OBJECT + "def model"),
    ),
    "attributes of the method alone": (
        method("self.net = f(features)", "self.net = g(self.net)", "loss = h(self.net, self.rate)"),
        method("net = f(features)", "net = g(net)", "loss = h(net, self.rate)"),
    ),
    "a table that is asked for the mode": (
        model("loss = {TRAIN: f, EVAL: g}[mode](1)"),
        model("if mode == TRAIN:", "    loss = f(1)", "else:", "    loss = g(1)"),
    ),
    "a table with a default": (
        model("loss = {TRAIN: one}.get(mode, two)"),
        model("loss = one if mode == TRAIN else two"),
    ),
    "two names": (
        model("total = f(features)  # all of it", "loss = total"),
        model("loss = f(features)  # all of it"),
    ),
    "two names, both read": (
        model("total = f(features)", "loss = total", "tf.summary.scalar('x', total)"),
        model("total = f(features)", "tf.summary.scalar('x', total)").replace("loss=loss", "loss=total"),
    ),
    "a name that nothing reads": (model("loss = f(1)", "also = loss"), model("loss = f(1)")),
    "two names at once": (model("loss = kept = f(1)", "print(kept)"), model("loss = f(1)", "print(loss)")),
    "nothing, twice": (model("a = b = None", "loss = f(a, b)"), model("a = None", "b = None", "loss = f(a, b)")),
    "pairs": (model("(a, loss) = (f(1), f(2))", "print(a)"), model("a = f(1)", "loss = f(2)", "print(a)")),
    "several statements on a line": (
        model("# both", "net = f(1); loss = g(net)  # of two"),
        model("# both", "net = f(1)", "loss = g(net)  # of two"),
    ),
    "a choice by the mode": (
        model("op = f(1) if mode == 'train' else None", "loss = g(op)"),
        model("if mode == 'train':", "    op = f(1)", "else:", "    op = None", "loss = g(op)"),
    ),
    "a lambda that is called": (model("loss = (lambda: f(1))() + 1"), model("loss = f(1) + 1")),
    "a nested function that is called": (
        model("def make():", "    return f(features)", "loss = 2 * make()"),
        model("loss = 2 * f(features)"),
    ),
    "a pair and a rest": (model("loss, *_ = (f(1), None, 2)"), model("loss = f(1)")),
    "a rest that is looped over": (
        model("first, *rest, last = (f(1), f(2), f(3), f(4))", "loss = first + last + sum(x for x in rest)"),
        model("first = f(1)", "rest = [f(2), f(3)]", "last = f(4)", "loss = first + last + sum(x for x in rest)"),
    ),
    "dicts in a dict": (
        model("loss = g(**{**{'a': f(1)}, **dict(b=2), 'c': f(3)})"),
        model("loss = g(a=f(1), b=2, c=f(3))"),
    ),
    "a dict with more": (model("loss = g(**dict({'a': f(1)}, b=2))"), model("loss = g(a=f(1), b=2)")),
    "a dict with a name in a dict": (
        model("more = {'a': 1, 'b': 2}", "loss = g(**{**more, 'b': 3})"),
        model("loss = g(a=1, b=3)"),
    ),
    "a dict of what changes in a dict": (
        model("net = f(1)", "more = {'a': net, 'b': 2}", "net = g(net)", "loss = g(**{**more, 'c': net})"),
        model("net = f(1)", "more_a = net", "net = g(net)", "loss = g(a=more_a, b=2, c=net)"),
    ),
    "an import in a function below one under try": (
        model("import tensorflow as flow", "loss = flow.reduce_mean(f(1))").replace(
            "import tensorflow as tf", "try:\n    import tensorflow as tf\nexcept ImportError:\n    raise SystemExit(1)"
        ),
        model("loss = tf.reduce_mean(f(1))").replace(
            "import tensorflow as tf", "try:\n    import tensorflow as tf\nexcept ImportError:\n    raise SystemExit(1)"
        ),
    ),
    "a tuple of arguments": (
        model("both = (features, labels)", "loss = g(*both)"),
        model("loss = g(features, labels)"),
    ),
    "a text that is filled in": (
        model("loss = tf.identity(f(1), name='{}_{}'.format('a', 1))"),
        model("loss = tf.identity(f(1), name='a_1')"),
    ),
    "a graph around an Estimator": (
        TOP + "# here\nwith tf.Graph().as_default():\n    tf.logging.info(1)\n    e = tf.estimator.Estimator(f)\n",
        TOP + "# here\ntf.logging.info(1)\ne = tf.estimator.Estimator(f)\n",
    ),
    "a global name of one function": (
        TOP + "def make():\n    global e\n    e = tf.estimator.Estimator(f)\n    e.train(g)\n\n\nmake()\nmake()\n",
        TOP + "def make():\n    e = tf.estimator.Estimator(f)\n    e.train(g)\n\n\nmake()\nmake()\n",
    ),
    "an import in a function": (
        model("import tensorflow as flow", "loss = flow.reduce_mean(f(1))"),
        model("loss = tf.reduce_mean(f(1))"),
    ),
    "a helper that hands on": (
        TOP
        + "def make(f, *args, **more):\n    return f(*args, **more)\n\n\ne = make(tf.estimator.Estimator, g, p={})\n",
        TOP + "def make(f, *args, **more):\n    return f(*args, **more)\n\n\ne = tf.estimator.Estimator(g, p={})\n",
    ),
    "an assignment expression": (model("(loss := f(1))"), model("loss = f(1)")),
    "a list": (
        model("both = [f(1), f(2)]", "loss = both[0] + both[1]"),
        model("both_0 = f(1)", "both_1 = f(2)", "loss = both_0 + both_1"),
    ),
    "a dict": (model("made = {'loss': f(1)}", "loss = made['loss']"), model("loss = f(1)")),
    "keywords": (model("loss = f(labels, **{'weights': g(1)})"), model("loss = f(labels, weights=g(1))")),
    "keywords by dict": (model("loss = f(**dict(a=1), b=2)"), model("loss = f(a=1, b=2)")),
    "keywords with a name": (
        model("more = {'weights': g(1)}", "loss = f(labels, **more)"),
        model("loss = f(labels, weights=g(1))"),
    ),
    "keywords with a name, and a call before": (
        model("more = {'weights': g(1)}", "loss = f(h(2), **more)"),
        model("more_weights = g(1)", "loss = f(h(2), weights=more_weights)"),
    ),
    "positions": (model("loss = f(*[labels, 1])"), model("loss = f(labels, 1)")),
    "getattr": (model("loss = getattr(tf.losses, 'log_loss')(labels)"), model("loss = tf.losses.log_loss(labels)")),
    "a partial": (
        model("loss = functools.partial(f, 1)(labels, weights=2)"),
        model("loss = f(1, labels, weights=2)").replace("import functools\n", ""),
    ),
    "a partial that is called twice": (
        model("part = functools.partial(f, 1, units=2)", "loss = part(part(labels))"),
        model("loss = f(1, f(1, labels, units=2), units=2)").replace("import functools\n", ""),
    ),
    "a partial of what changes": (
        model("rate = 1", "part = functools.partial(f, rate)", "rate = 2", "loss = part(1)"),
        model("part_2 = 1", "loss = f(part_2, 1)").replace("import functools\n", ""),
    ),
    "a partial of what is computed": (
        model("part = functools.partial(f, scale=g(labels))", "loss = part(1) + part(2)"),
        model("part_scale = g(labels)", "loss = f(1, scale=part_scale) + f(2, scale=part_scale)").replace(
            "import functools\n", ""
        ),
    ),
    "a partial with a name": (
        model("part = functools.partial(f, weights=2)", "loss = part(labels)"),
        model("loss = f(labels, weights=2)").replace("import functools\n", ""),
    ),
    "keywords whose values change": (
        model("more = {'w': labels.rate}", "labels.rate = 3", "loss = f(**more)"),
        model("more_w = labels.rate", "labels.rate = 3", "loss = f(w=more_w)"),
    ),
    "a comment behind what goes": (
        model("total = f(features)", "loss = total  # what is trained", "g(loss)"),
        model("loss = f(features)", "# what is trained", "g(loss)"),
    ),
    "a comment at the end of a block": (
        model("loss = f(1)", "if mode:", "    g(1)", "    # as before", "    also = loss", "h(loss)"),
        model("loss = f(1)", "if mode:", "    g(1)", "    # as before", "h(loss)"),
    ),
    "a function of a number below zero": (
        TOP + "def make(rate):\n    return tf.estimator.RunConfig(rate**2, rate)\n\n\na = make(-1)\n",
        TOP + "a = tf.estimator.RunConfig((-1)**2, -1)\n",
    ),
    "a function of a number that is asked": (
        TOP + "def make(rate):\n    return tf.estimator.RunConfig(rate.real)\n\n\na = make(3)\n",
        TOP + "a = tf.estimator.RunConfig((3).real)\n",
    ),
    "a function that makes a pair": (
        TOP + "def make():\n    return tf.estimator.TrainSpec(1), tf.estimator.EvalSpec(2)\n\n\nuse(make())\n",
        TOP + "use((tf.estimator.TrainSpec(1), tf.estimator.EvalSpec(2)))\n",
    ),
    "a function that makes one of two": (
        TOP + "def make():\n    return tf.estimator.RunConfig(1) if c else d\n\n\na = make().x\n",
        TOP + "a = (tf.estimator.RunConfig(1) if c else d).x\n",
    ),
    "a result that nobody takes": (
        TOP + "outcome = tf.estimator.train_and_evaluate(a, b, c)\n",
        TOP + "tf.estimator.train_and_evaluate(a, b, c)\n",
    ),
    "one Estimator of two": (
        TOP + "if wide:\n    # a sum\n    a = tf.estimator.Estimator(f, 'dir', config=c)  # wide\n"
        "else:\n    print('deep')\n    a = tf.estimator.Estimator(model_dir='dir', model_fn=g, config=c)\n",
        TOP + "if wide:\n    # a sum\n    model_fn = f  # wide\nelse:\n    print('deep')\n    model_fn = g\n"
        "a = tf.estimator.Estimator(model_fn=model_fn, model_dir='dir', config=c)\n",
    ),
    "one Estimator of two, or none": (
        TOP + "if a:\n    e = tf.estimator.Estimator(f)\nelif b:\n    e = tf.estimator.Estimator(g, params=p)\n"
        "else:\n    raise ValueError(b)\n",
        TOP + "if a:\n    model_fn = f\n    params = None\nelif b:\n    model_fn = g\n    params = p\n"
        "else:\n    raise ValueError(b)\ne = tf.estimator.Estimator(model_fn=model_fn, params=params)\n",
    ),
    "one Estimator of two, by an expression": (
        TOP + "e = tf.estimator.Estimator(f) if a else tf.estimator.Estimator(g)\n",
        TOP + "if a:\n    model_fn = f\nelse:\n    model_fn = g\ne = tf.estimator.Estimator(model_fn=model_fn)\n",
    ),
    "one Estimator of two, whose arguments are computed in order": (
        TOP + "if a:\n    e = tf.estimator.Estimator(make(1), folder())\n"
        "else:\n    e = tf.estimator.Estimator(make(2), folder())\n",
        TOP + "if a:\n    model_fn = make(1)\n    model_dir = folder()\n"
        "else:\n    model_fn = make(2)\n    model_dir = folder()\n"
        "e = tf.estimator.Estimator(model_fn=model_fn, model_dir=model_dir)\n",
    ),
    "a function that returns one of two Estimators": (
        TOP
        + "def build(kind):\n    c = read()\n    if kind == 1:\n        return tf.estimator.Estimator(f, config=c)\n"
        "    return tf.estimator.Estimator(g, config=c)\n\n\nmodel = build(2)\n",
        TOP + "c = read()\nif 2 == 1:\n    model_fn = f\nelse:\n    model_fn = g\n"
        "model = tf.estimator.Estimator(model_fn=model_fn, config=c)\n",
    ),
    "a dict of values that nobody reads": (
        model("end_points = {}", "loss = f(1)", "end_points['loss'] = loss", "loss = g(loss)"),
        model("loss = f(1)", "loss = g(loss)"),
    ),
    "a list of values that nobody reads": (
        model("seen = []", "loss = f(1)", "seen.append(loss)"),
        model("loss = f(1)"),
    ),
    "members that are made of the mode": (
        with_modes(model("if Mode(mode) is Mode.TRAIN:", "    g()", "loss = f(1)")),
        with_modes(model('if (mode == "train"):', "    g()", "loss = f(1)")),
    ),
    "a table of the modes": (
        "NAMES = {'train': 'T', 'eval': 'E', 'infer': 'P'}\n\n\n"
        + model("if NAMES[mode] != 'P':", "    g()", "loss = f(1)"),
        "NAMES = {'train': 'T', 'eval': 'E', 'infer': 'P'}\n\n\n"
        + model('if (mode in ("eval", "train")):', "    g()", "loss = f(1)"),
    ),
    "a name by its text": (
        "RATE = 1\n\n\n" + model("loss = f(globals()['RATE'])"),
        "RATE = 1\n\n\n" + model("loss = f(RATE)"),
    ),
    "keywords that nobody changes": (
        "MORE = dict(a=1)\nprint(**MORE)\n\n\n" + model("loss = f(**MORE)"),
        "MORE = dict(a=1)\nprint(a=1)\n\n\n" + model("loss = f(a=1)"),
    ),
    "a list that nobody takes": (
        MADE + "[estimator.train(one) for one in range(3)]\n",
        MADE + "for one in range(3):\n    estimator.train(one)\n",
    ),
    "the processor of datasets": (
        MADE + DATA.format("cpu"),
        MADE + "def data():\n    return tf.data.Dataset.range(3)\n\n\nestimator.train(data)\n",
    ),
    "a name that is declared": (model("loss: tf.Tensor", "loss = f(1)"), model("loss = f(1)")),
    "losses in a list": (
        model("some = []", "some.append(f(1))", "g(2)", "some.append(f(3))", "loss = tf.add_n(some)"),
        model("some_1 = f(1)", "g(2)", "some_2 = f(3)", "loss = tf.add_n([some_1, some_2])"),
    ),
    "one loss in a list": (model("some = [f(1)]", "loss = tf.add_n([some[0]])"), model("loss = f(1)")),
    "names that are given a part of a list": (model("[loss] = [f(1), None][:1]"), model("loss = f(1)")),
    "names that are given what there is": (
        model("loss, more = [one for one in (f(1), 2)]", "g(more)"),
        model("loss = f(1)", "more = 2", "g(more)"),
    ),
    "a spec with another value": (
        TOP + "s = tf.estimator.TrainSpec(f)._replace(max_steps=20)\nestimator.train(s)\n",
        TOP + "s = tf.estimator.TrainSpec(f, max_steps=20)\nestimator.train(s)\n",
    ),
    "a function that makes one": (
        TOP + 'def make(rate):\n    """Makes it."""\n    return tf.estimator.RunConfig(rate)\n\n\na = make(rate=3)\n',
        TOP + "a = tf.estimator.RunConfig(3)\n",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_changes(case: str) -> None:
    before, after = CHANGES[case]
    assert reduce(before) == after


def test_comments_stay_where_they_were() -> None:
    before = model("# how far it is off", "total = f(features)", "# what is trained", "loss = total", "# done")
    after = model("# how far it is off", "loss = f(features)", "# what is trained", "# done")
    assert reduce(before) == after


def test_a_name_of_another_file_stays() -> None:
    text = TOP + "made = [tf.estimator.RunConfig()]\nconfig = made[0]\n"
    assert reduce(text, "made") == text
    assert reduce(text) == TOP + "config = tf.estimator.RunConfig()\n"
    assert reduce(text, "config") == TOP + "config = tf.estimator.RunConfig()\n"


def test_places_are_those_of_the_old_text() -> None:
    text = model("made = {'loss': f(1)}", "loss = made['loss']")
    file = ParsedFile.parse(Path("train.py"), text)
    new = reduced(file, lambda name: False)
    function = new.module.body[-1]
    assert isinstance(function, cst.FunctionDef)
    [line, _] = function.body.body
    assert isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], cst.Assign)
    assert new.position(line.body[0].value) == (6, 21)
    assert new.position(line.body[0].targets[0].target) == (6, 5)


BUILDS = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1)


def model_fn(features, labels, mode):
    logits = tf.layers.dense(features, 1)
    loss = tf.losses.mean_squared_error(labels, logits)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)


def build(folder):
    kept = folder
    return tf.estimator.Estimator(model_fn, kept)


model = build("m")
model.train(input_fn, steps=3)
"""


@pytest.mark.parametrize(
    ("other", "moved"),
    [
        ("def build():\n    return 3\n\n\nprint(build())\n", True),
        ("import first\n\nprint(first.build)\n", False),
        ("from second import *\n\nbuild('x')\n", False),
    ],
    ids=["a word of its own", "a name of the file", "a name of the file, through another"],
)
def test_names_that_other_files_may_have(other: str, moved: bool) -> None:
    """The lines of a function come to its only call, but stay where another file may call it, too."""
    texts = {"first.py": BUILDS, "second.py": "from first import *\n", "third.py": other}
    new, _ = run_project(texts)["first.py"]
    assert ("def build(folder):" not in new) == moved


def test_a_match_of_values() -> None:
    cases = (
        ("match mode:", "    case tf.estimator.ModeKeys.TRAIN if big:", "        loss = f(1)"),
        (
            "    # both of the others",
            "    case 'eval' | 'infer':",
            "        loss = f(2)",
            "    case _:",
            "        loss = f(3)",
        ),
    )
    conditions = (
        ("if mode == tf.estimator.ModeKeys.TRAIN and (big):", "    loss = f(1)", "# both of the others"),
        ("elif mode in ('eval', 'infer'):", "    loss = f(2)", "else:", "    loss = f(3)"),
    )
    new = reduce(model(*cases[0], *cases[1]))
    assert "match" not in new
    expected = model(*conditions[0], *conditions[1])
    assert ast.unparse(ast.parse(new)) == ast.unparse(ast.parse(expected)) and "# both of the others" in new


def test_a_table_of_losses() -> None:
    table = "LOSSES = {'a': tf.losses.log_loss, 'b': tf.losses.hinge_loss}\n\n\n"
    new = reduce(TOP + table + MODEL.format("    loss = LOSSES['a'](labels) + LOSSES.get('b')(labels)\n"))
    expected = TOP + MODEL.format("    loss = tf.losses.log_loss(labels) + tf.losses.hinge_loss(labels)\n")
    assert ast.unparse(ast.parse(new)) == ast.unparse(ast.parse(expected))


def test_a_value_by_a_constant_is_told() -> None:
    text = "USED = True\n\n\n" + model("loss = f(1) if USED else None")
    said = reduced(ParsedFile.parse(Path("train.py"), text), lambda name: False).said
    assert [(one.code, one.line) for one in said] == [("TFM117", 9)]


def test_a_value_by_a_constant_that_another_file_names() -> None:
    text = "USED = True\n\n\n" + model("loss = f(1) if USED else None")
    assert reduce(text, "USED") == text
