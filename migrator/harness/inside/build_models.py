"""Builds the models of migrated programs without training them: run by the interpreter of their environment.

    python build_models.py JOB.json ANSWERS.json

The job names the scripts, below a folder that is a copy of the project, and its support files. To each of these a line
is added that calls `install`, so that an Estimator builds the model of a mode on its data's own element_spec, and does
nothing else. A script that keeps its session takes its first step. Standard library and TensorFlow only.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import linecache
import os
import re
import runpy
import sys
import tempfile
import traceback
import types

import stand_ins

_BUILT: list = []  # what this process built: (mode, error or None, place)
_ROOT = ""
_LACKING: list = []  # operations of the cores of a TPU that no TPU has: (type, what it lacks, place)
_APPLIES = re.compile("(Resource)?(Sparse)?Apply")  # operations of optimizers
_SESSION = ("session", None, None)
_RUNS = 30  # of sessions that train nothing, until a program is taken for one that runs


class Nothing(dict):
    """The result of an evaluation that did not take place: every number is 0."""

    def __missing__(self, key):
        return 0.0


def install(namespace):
    """Lets the Estimators of a support file build their models only."""
    stand_ins.support_files.add(namespace["__file__"])
    for name in [name for name in namespace if name.startswith("layers_sparse_column_with_")]:
        namespace[name] = stand_ins.noting_words(namespace[name])
    if "Estimator" not in namespace:  # it has functions alone
        return
    modes = types.SimpleNamespace(TRAIN="train", EVAL="eval", PREDICT="infer")
    estimator = namespace["Estimator"]
    if "tpu_strategy" in namespace:  # no TPU is here: models are built on what stands in for one
        _stand_in_for_a_tpu()

    @namespace.get("eagerly", lambda function: function)  # as the methods that it stands for: out of the driver's graph
    def build(self, input_fn, mode):
        try:
            self._model(input_fn, mode, None)
        except Exception as error:
            _BUILT.append((mode, *_told(error)))
        else:
            _BUILT.append((mode, None, None))

    def train(self, input_fn, *args, **kwargs):
        build(self, input_fn, modes.TRAIN)
        return self

    def evaluate(self, input_fn, *args, **kwargs):
        build(self, input_fn, modes.EVAL)
        return Nothing(global_step=0)

    def predict(self, input_fn, *args, **kwargs):
        build(self, input_fn, modes.PREDICT)
        return iter(())

    def export(self, export_dir_base, *args, **kwargs):
        return os.fsencode(tempfile.mkdtemp())

    def train_and_evaluate(estimator, train_spec, eval_spec):
        build(estimator, train_spec.input_fn, modes.TRAIN)
        build(estimator, eval_spec.input_fn, modes.EVAL)
        return Nothing(global_step=0), []

    def evaluate_rows(self, x=None, y=None, input_fn=None, *args, **kwargs):
        return evaluate(self, input_fn or namespace["rows_input_fn"](x, y))

    def predict_rows(self, x=None, input_fn=None, *args, **kwargs):
        return predict(self, input_fn or namespace["rows_input_fn"](x))

    classes = [value for value in namespace.values() if isinstance(value, type) and issubclass(value, estimator)]
    for one in classes:
        methods = {"train": train, "evaluate": evaluate, "predict": predict}
        if hasattr(one, "fit"):  # those of tf.contrib.learn take arrays, too
            methods.update(evaluate=evaluate_rows, predict=predict_rows)
        for name, method in methods.items():
            if one is estimator or name in vars(one):
                setattr(one, name, method)
        for name in ("export_saved_model", "export_savedmodel", "experimental_export_all_saved_models"):
            if hasattr(one, name):
                setattr(one, name, export)
    if "train_and_evaluate" in namespace:
        namespace["train_and_evaluate"] = train_and_evaluate


def _stand_in_for_a_tpu():
    """Installs it; the modules that it is made of give their names back, which the project may have files of."""
    own = os.path.dirname(os.path.abspath(__file__))
    before = set(sys.modules)
    others = {name: sys.modules.pop(name) for name in ("cores", "parts", "replicas") if name in sys.modules}
    sys.path.insert(0, own)
    try:
        stand_in = importlib.import_module("tpu_stand_in")
        stand_in.install({"tpu_cores": 1}, types.SimpleNamespace(write_json=lambda *args: None), "migrated")
        _note_what_cores_lack()
    finally:
        sys.path.remove(own)
        for name in {"tpu_stand_in", "cores", "parts", "replicas"} - before:
            sys.modules.pop(name, None)
        sys.modules.update(others)


def _note_what_cores_lack():
    """Notes what a model computes on the cores of the stand-in that a TPU has no operation for."""
    import tensorflow as tf

    lacking = importlib.import_module("cores").lacking
    kind = tf.distribute.TPUStrategy
    make = kind.__new__

    def make_noting(cls, *args, **kwargs):
        strategy = make(cls, *args, **kwargs)
        run = strategy.run

        def run_noting(*args, **kwargs):
            graph = tf.compat.v1.get_default_graph()
            before = set(graph.get_operations())
            result = run(*args, **kwargs)
            for operation in graph.get_operations():
                what = "" if operation in before else lacking(operation)
                if what:
                    place = _place(operation.traceback)
                    if (operation.type, what, place) not in _LACKING:
                        _LACKING.append((operation.type, what, place))
            return result

        strategy.run = run_noting
        return strategy

    kind.__new__ = make_noting


def watch_sessions(leave):
    """Calls ``leave`` behind the first step of a training by a session, or when so many other runs have gone well.

    Returns the list of what was run so far, which grows.
    """
    session = importlib.import_module("tensorflow.python.client.session").BaseSession
    original, ended = session.run, []

    def run(self, fetches, *args, **kwargs):
        result = original(self, fetches, *args, **kwargs)
        ended.append(fetches)
        if len(ended) == _RUNS or _trains(self.graph, fetches):
            leave({"built": [_SESSION], "ended": None, "absent": ""})
        return result

    session.run = run
    return ended


def _trains(graph, fetches):
    """Whether some of what was asked for applies gradients."""
    waiting, seen = [fetches], set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, (list, tuple)):
            waiting.extend(one)
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif one is not None and id(one) not in seen:
            seen.add(id(one))
            operation = getattr(one, "op", one)
            if isinstance(one, str):
                operation = graph.as_graph_element(one)
                operation = getattr(operation, "op", operation)
            if _APPLIES.match(getattr(operation, "type", "")):
                return True
            if hasattr(operation, "control_inputs"):
                waiting.extend(tensor.op for tensor in operation.inputs)
                waiting.extend(operation.control_inputs)
    return False


def _told(error):
    """What an error says, and the line of the project that it comes from."""
    place = _place(traceback.extract_tb(error.__traceback__))
    lines = [line.strip() for line in str(error).strip().split("\n") if line.strip()] or [""]
    text = lines[-1 if lines[0] == "in user code:" else 0]
    if isinstance(error, AssertionError) and not text and place:
        text = linecache.getline(os.path.join(_ROOT, place[0]), place[1]).strip()
    text = re.sub(r" at 0x[0-9a-f]+", "", text)  # which differs in each run
    said = "%s: %s" % (type(error).__name__, text[:300])
    return said, place


def _place(frames):
    """The last line of the project among some frames: the file below the root, and the number of the line."""
    own = [frame for frame in frames if os.path.abspath(frame.filename).startswith(_ROOT + os.sep)]
    own = [frame for frame in own if not frame.filename.endswith("keras_estimator.py")] or own
    return (os.path.relpath(own[-1].filename, _ROOT), own[-1].lineno) if own else None


class Needed(Exception):
    """A package that is not here would have been called."""


class _Absent(type):
    """What an absent package holds: it may be imported, named and derived from, and says so when it is called."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(name, (), {"__module__": cls.__module__})

    def __call__(cls, *args, **kwargs):
        raise Needed("No module named '%s'" % cls.__module__.partition(".")[0])


class _Absentees(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports packages that are not here as empty ones, whose contents can be named."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        def look_up(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return _Absent(name, (), {"__module__": module.__name__})

        module.__getattr__ = look_up


def run(asked):
    """Runs a script as the main module; what it built, and how it ended."""
    script = os.path.join(_ROOT, asked["script"])
    folder = os.path.join(_ROOT, asked["folder"])
    os.chdir(folder)
    sys.argv = [script, *asked["arguments"]]
    sys.path[0] = folder if asked["module"] else os.path.dirname(script)
    sys.path[1:1] = [path for path in (os.path.join(_ROOT, one) for one in asked["paths"]) if path != sys.path[0]]
    sys.meta_path.append(_Absentees(asked["absent"]))
    if asked.get("made_up"):
        stand_ins.make_up(_ROOT)
    ended, absent = None, ""
    try:
        if asked["module"]:
            runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        ended = ("SystemExit: %s" % error.code, None) if error.code else None
    except BaseException as error:
        ended = _told(error)
        if isinstance(error, ModuleNotFoundError):
            absent = (error.name or "").partition(".")[0]
    return {"built": _BUILT, "ended": ended, "absent": absent, "lacking": _LACKING}


def _in_child(asked, answer, seconds):
    """Runs a script in a process of its own, forked from this one; its answer."""
    child = os.fork()
    if not child:
        import signal

        def leave(done):
            with open(answer, "w", encoding="utf-8") as file:
                json.dump(done, file)
            os._exit(0)

        signal.alarm(seconds)
        try:
            os.dup2(os.open(os.devnull, os.O_RDWR), 0)
            os.dup2(os.open(answer + ".log", os.O_CREAT | os.O_WRONLY), 1)
            os.dup2(1, 2)
            ran = watch_sessions(leave) if asked.get("session") else []
            done = run(asked)
            leave({**done, "built": [_SESSION]} if ran and done["ended"] is None else done)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    try:
        with open(answer, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {"built": [], "ended": ["it did not end within %d seconds" % seconds, None], "absent": ""}


def main(job, answers):
    """Runs each script in a process of its own, all forked from one that has imported TensorFlow.

    A package that a script lacks is a stand-in when it runs again, since what builds the model may not need it.
    """
    global _ROOT
    with open(job, encoding="utf-8") as file:
        asked = json.load(file)
    _ROOT = asked["root"]
    sys.modules["build_models"] = sys.modules["__main__"]
    import tensorflow as tf

    tf.keras.layers.Dense  # noqa: B018 - lazily imported, once for all
    found = []
    for number, script in enumerate(asked["scripts"]):
        absent = []
        while True:
            answer = "%s.%d.%d" % (answers, number, len(absent))
            done = _in_child({**script, "absent": absent}, answer, asked["seconds"])
            name = done["absent"]
            own = not name or name in absent or name in script["own"] or name in ("tensorflow", "keras", "tf_keras")
            if own or len(absent) == 12:
                break
            absent.append(name)
        made_up = False
        if not any(error is None for _, error, _ in done["built"]):
            again = _in_child({**script, "absent": absent, "made_up": True}, answer + ".made", asked["seconds"])
            made_up = bool(again["built"]) and all(error is None for _, error, _ in again["built"])
            done = again if made_up else done
        found.append({**done, "absent": absent, "made_up": made_up})
        with open(answers + ".part", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.replace(answers + ".part", answers)  # what is known when time is up


if __name__ == "__main__":
    main(*sys.argv[1:])
