"""What stands around a model_fn and only tells something is left out: those that stay first."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.program.around_models import without_what_only_tells
from migrator.program.parsed import ParsedFile

TOP = "import contextlib\nimport functools\nimport time\nimport tensorflow as tf\n\n\n"
SPEC = "return tf.estimator.EstimatorSpec(mode, loss=f(features))"
TRIED = (
    TOP
    + "def model_fn(features, labels, mode):\n    try:\n        "
    + SPEC
    + "\n    except ValueError as error:\n        print(error)\n        raise\n"
)
TIMED = (
    TOP + "@contextlib.contextmanager\ndef timed(what):\n    start = time.time()\n    yield\n    print(what, start)\n"
)
ENTERS = TIMED + '\n\ndef model_fn(features, labels, mode):\n    with timed("net"):\n        ' + SPEC + "\n"
DECORATES = (
    TOP
    + "def told(what):\n    def decorate(function):\n        @functools.wraps(function)\n"
    + "        def inner(features, labels, mode):\n            print(what, function.__name__)\n"
    + "            return function(features, labels, mode)\n        return inner\n    return decorate\n\n\n"
    + '@told("net")\ndef model_fn(features, labels, mode):\n    '
    + SPEC
    + "\n"
)
PLAIN = "def model_fn(features, labels, mode):\n    " + SPEC + "\n"
TIMER = (
    "class Timer(object):\n    def __init__(self, what):\n        self.what = what\n\n"
    + "    def __enter__(self):\n        self.start = time.time()\n        return self\n\n"
    + "    def __exit__(self, *args):\n        print(self.what, time.time() - self.start)\n"
)

STAYS = {
    "an error that is caught, and more behind": TRIED.replace("        raise\n", "") + "    return backup(mode)\n",
    "an error that is caught in a function that is called": TRIED.replace("        raise\n", "")
    + "\n\nspec = model_fn({}, 1, 'train') or backup\n",
    "an error that is caught, and another loss": TRIED.replace("        raise\n", "        return backup(mode)\n"),
    "a handler that changes something": TRIED.replace("print(error)", "counts.append(1)"),
    "a handler that calls something": TRIED.replace("print(error)", "print(close())"),
    "a try with an else": TRIED + "    else:\n        print(1)\n",
    "a `finally` that changes something": TRIED + "    finally:\n        session.close()\n",
    "a `finally` that gives a name": TRIED.replace(SPEC, "loss = f(features)")
    .replace("        raise\n", f"        raise\n    finally:\n        loss = 1\n    {SPEC}\n")
    .replace("loss=f(features)", "loss=loss"),
    "a try elsewhere": TRIED.replace("EstimatorSpec", "TrainSpec") + "\n\nEstimatorSpec = 1\n",
    "a context manager of a library": ENTERS.replace("def timed", "def other").replace(
        "import time\n", "import timed\n"
    ),
    "a context manager that gives something": ENTERS.replace("    yield\n", "    yield what\n").replace(
        'with timed("net"):', 'with timed("net") as net:'
    ),
    "a context manager that opens something": ENTERS.replace("time.time()", "open(what)"),
    "a context manager that catches": ENTERS.replace(
        "    yield\n", "    try:\n        yield\n    except ValueError:\n        print(1)\n"
    ),
    "a context manager of TensorFlow": ENTERS.replace("    start", "    tf.set_random_seed(1)\n    start"),
    "a context manager that is another one": ENTERS.replace("def model_fn", "timed = other\n\n\ndef model_fn"),
    "a class that suppresses": ENTERS.replace(
        "@contextlib.contextmanager",
        TIMER.replace("args):\n", "args):\n        return True\n").replace("Timer", "timed"),
    ).replace("def timed", "def not_timed"),
    "a decorator that changes the features": DECORATES.replace(
        "return function(features", "return function(2 * features"
    ),
    "a decorator that changes their order": DECORATES.replace("inner(features, labels", "inner(labels, features"),
    "a decorator that changes a parameter": DECORATES.replace(
        "            return", "            labels = 1\n            return"
    ),
    "a decorator that changes the result": DECORATES.replace("return function(", "return other(function)("),
    "a decorator that calls it twice": DECORATES.replace(
        "            return", "            function(features, labels, mode)\n            return"
    ),
    "a decorator that does not always call it": DECORATES.replace(
        "            return", "            if what:\n                return None\n            return"
    ),
    "a decorator that keeps the function": DECORATES.replace(
        "        return inner", "        KNOWN.append(function)\n        return inner"
    ),
    "a decorator of a library": DECORATES.replace('@told("net")', '@other.told("net")'),
    "a `finally` that changes the object": TRIED + "    finally:\n        self.k = 1\n",
}


def said(text: str) -> tuple[str, list[str]]:
    file, remarks = without_what_only_tells(ParsedFile.parse(Path("train.py"), text))
    return file.module.code, [one.code for one in remarks]


@pytest.mark.parametrize("name", STAYS)
def test_what_stays(name: str) -> None:
    assert said(STAYS[name]) == (STAYS[name], [])


GOES = {
    "a try that raises again": TRIED,
    "a try that prints an error, so that no spec is returned": TRIED.replace("        raise\n", ""),
    "a try that raises another error": TRIED.replace(
        "        raise\n", '        raise RuntimeError("net") from error\n'
    ),
    "a try with a `finally`": TRIED + "    finally:\n        print(1)\n",
    "a timer": ENTERS,
    "a timer with a `finally`": ENTERS.replace(
        "    yield\n    print(what, start)\n", "    try:\n        yield\n    finally:\n        print(what, start)\n"
    ),
    "a timer that is a class": TOP
    + TIMER
    + '\n\ndef model_fn(features, labels, mode):\n    with Timer("net"):\n        '
    + SPEC
    + "\n",
    "a context of nothing": ENTERS.replace('timed("net")', "contextlib.nullcontext()"),
    "a decorator with arguments": DECORATES,
    "a decorator that prints the result": DECORATES.replace(
        "return function(features, labels, mode)",
        "spec = function(features, labels, mode=mode)\n            print(spec)\n            return spec",
    ),
    "a decorator of everything": DECORATES.replace(
        "features, labels, mode):\n            p", "*args, **kwargs):\n            p"
    ).replace("function(features, labels, mode)", "function(*args, **kwargs)"),
}


@pytest.mark.parametrize("name", GOES)
def test_what_goes(name: str) -> None:
    text, codes = said(GOES[name])
    assert text.endswith(PLAIN)
    assert codes == ["TFM116"]
