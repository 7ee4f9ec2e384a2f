"""Builds the models of migrated programs without training them: run by the interpreter of their environment.

    python build_models.py JOB.json ANSWERS.json

The job names the scripts, below a folder that is a copy of the project, and its support files. To each of these a line
is added that calls `install`, so that an Estimator builds the model of a mode on its data's own element_spec, and does
nothing else. Standard library and TensorFlow only.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import tempfile
import traceback

_BUILT: list = []  # what this process built: (mode, error or None, place)
_ROOT = ""


class Nothing(dict):
    """The result of an evaluation that did not take place: every number is 0."""

    def __missing__(self, key):
        return 0.0


def install(namespace):
    """Lets the Estimators of a support file build their models only."""
    modes = namespace["ModeKeys"]
    estimator = namespace["Estimator"]

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

    classes = [value for value in namespace.values() if isinstance(value, type) and issubclass(value, estimator)]
    for one in classes:
        for name, method in (("train", train), ("evaluate", evaluate), ("predict", predict)):
            if one is estimator or name in vars(one):
                setattr(one, name, method)
        for name in ("export_saved_model", "export_savedmodel", "experimental_export_all_saved_models"):
            if hasattr(one, name):
                setattr(one, name, export)
    if "train_and_evaluate" in namespace:
        namespace["train_and_evaluate"] = train_and_evaluate


def _told(error):
    """What an error says, and the line of the project that it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if os.path.abspath(frame.filename).startswith(_ROOT + os.sep)]
    own = [frame for frame in own if not frame.filename.endswith("keras_estimator.py")] or own
    said = "%s: %s" % (type(error).__name__, str(error).strip().split("\n")[0][:300])
    return said, (os.path.relpath(own[-1].filename, _ROOT), own[-1].lineno) if own else None


def run(script, folder):
    """Runs a script as the main module; what it built, and how it ended."""
    os.chdir(folder)
    sys.argv = [script]
    sys.path[0] = os.path.dirname(script)
    ended = None
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        ended = ("SystemExit: %s" % error.code, None) if error.code else None
    except BaseException as error:
        ended = _told(error)
    return {"built": _BUILT, "ended": ended}


def main(job, answers):
    """Runs each script in a process of its own, all forked from one that has imported TensorFlow."""
    global _ROOT
    with open(job, encoding="utf-8") as file:
        asked = json.load(file)
    _ROOT = asked["root"]
    sys.modules["build_models"] = sys.modules["__main__"]
    import tensorflow as tf

    tf.keras.layers.Dense  # noqa: B018 - lazily imported, once for all
    found = {}
    for number, script in enumerate(asked["scripts"]):
        answer = "%s.%d" % (answers, number)
        child = os.fork()
        if not child:
            import signal

            signal.alarm(asked["seconds"])
            code = 1
            try:
                os.dup2(os.open(os.devnull, os.O_RDWR), 0)
                os.dup2(os.open(answer + ".log", os.O_CREAT | os.O_WRONLY), 1)
                os.dup2(1, 2)
                done = run(os.path.join(_ROOT, script), os.path.dirname(os.path.join(_ROOT, script)))
                with open(answer, "w", encoding="utf-8") as file:
                    json.dump(done, file)
                code = 0
            finally:
                os._exit(code)
        os.waitpid(child, 0)
        try:
            with open(answer, encoding="utf-8") as file:
                found[script] = json.load(file)
        except (OSError, ValueError):
            found[script] = {"built": [], "ended": ["it did not end within %d seconds" % asked["seconds"], None]}
    with open(answers, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
