"""The half of `tf-migrate checkpoint` that runs in the user's interpreter.

    python carry.py JOB.json

The user's program runs up to the first call that trains, evaluates, predicts or restores. Facts about the model and
the checkpoints go to the folder of the job; then a line is read from standard input, and what the folder holds by
then is written as a checkpoint, and read back.
"""

import importlib
import json
import os
import re
import runpy
import signal
import sys
import traceback

import child
import guard
import keras_optimizers
import numpy as np
import views

_REACHING = (
    *("fit", "evaluate", "predict", "predict_on_batch", "train_on_batch", "test_on_batch"),
    *("load_weights", "save_weights", "save"),
)
_NUMBERS = "biuf"
_SLOT = "add_variable_from_reference"
REFUSED = "tf-migrate checkpoint keeps the program from changing your files before it uses its model"


class Reached(BaseException):
    """The program has come to use its model. No Exception, so that the program does not handle it."""


class Watch(object):
    """What the program was seen to do."""

    def __init__(self):
        self.compiled = []
        self.model = None
        self.folder = None
        self.slots = []  # (model variable, slot name, slot variable)


def install(tf, watch):
    Model = tf.keras.Model

    def reaching(original):
        def method(self, *args, **kwargs):
            watch.model = self if self in watch.compiled or not watch.compiled else watch.compiled[-1]
            raise Reached()

        return method

    for name in _REACHING:
        setattr(Model, name, reaching(getattr(Model, name)))
    compile_model = Model.compile

    def compile_and_note(self, *args, **kwargs):
        result = compile_model(self, *args, **kwargs)
        watch.compiled.append(self)
        return result

    Model.compile = compile_and_note

    def latest_checkpoint(checkpoint_dir, latest_filename=None):
        watch.folder = watch.folder or os.path.abspath(os.fspath(checkpoint_dir))

    for name in ("tensorflow", "tensorflow.compat.v2", "tensorflow.compat.v1"):
        importlib.import_module(name).train.latest_checkpoint = latest_checkpoint

    def noting(original):
        def make_and_note(self, *args, **kwargs):
            made = original(self, *args, **kwargs)
            model_variable, variable_name = keras_optimizers.slot_asked(*args, **kwargs)
            if not any(made is known for _, _, known in watch.slots):  # the same one when asked again
                watch.slots.append((model_variable, variable_name, made))
            return made

        return make_and_note

    for optimizer, name in ((tf.keras.optimizers.Adam, _SLOT), (tf.keras.optimizers.legacy.Adam, "add_slot")):
        base = next(kind for kind in optimizer.__mro__ if name in vars(kind))
        setattr(base, name, noting(getattr(base, name)))


def run_script(job, watch):
    """Runs the program; a message where it does not come to use a model."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != here]
    for name in ("child", "guard", "keras_asked", "keras_optimizers", "views"):
        sys.modules.pop(name, None)  # what the user calls by such a name is the user's
    sys.argv = [job["script"], *job["arguments"]]
    sys.path.insert(0, os.path.dirname(os.path.realpath(job["script"])))
    try:
        runpy.run_path(job["script"], run_name="__main__")
    except Reached:
        return None
    except SystemExit as end:
        if watch.model is None:
            return "the program ended (%s) before it used a model" % (end.code,)
    except BaseException as error:
        if watch.model is None:
            sys.stderr.write("".join(traceback.format_exception(type(error), error, error.__traceback__)))
            return "the program failed before it used a model: %s: %s" % (type(error).__name__, error)
    if watch.model is None:
        return "the program never used a model"
    return None


def creation_order(variable):
    tail = str(getattr(variable, "_unique_id", "")).rpartition("_")[2]
    return int(tail) if tail.isdigit() else 1 << 60


def rate_of(optimizer):
    """The rate of an optimizer as float32 sees it; None for a schedule."""
    value = keras_optimizers.value_of(optimizer, "learning_rate")
    try:
        return float(np.float32(value.numpy() if hasattr(value, "numpy") else value))
    except (TypeError, ValueError):
        return None


class Keras(object):
    """The model's tensors by the names that the tool gives them: weight:<name>, slot:<name>|<slot>, iterations."""

    def __init__(self, watch):
        self.model = model = watch.model
        sums = {id(variable) for metric in model.metrics for variable in metric.variables}
        weights = [variable for variable in model.weights if id(variable) not in sums]
        weights.sort(key=creation_order)
        trainable = {id(variable) for variable in model.trainable_weights}
        self.tensors, self.facts, names, seen = {}, [], {}, set()
        for variable in weights:
            if id(variable) in seen:
                continue
            seen.add(id(variable))
            name = variable.name.partition(":")[0]
            count = sum(one.partition("#")[0] == name for one in names.values())
            name = "%s#%d" % (name, count + 1) if count else name
            names[id(variable)] = name
            self.tensors["weight:" + name] = variable
            self.facts.append(
                {
                    "name": name,
                    "shape": variable.shape.as_list(),
                    "dtype": variable.dtype.base_dtype.name if hasattr(variable.dtype, "base_dtype") else "",
                    "trainable": id(variable) in trainable,
                }
            )
        self.optimizer = getattr(model, "optimizer", None)
        self.slots = []
        if self.optimizer is not None:
            keras_optimizers.build(self.optimizer, model.trainable_variables)
            self.tensors["iterations"] = self.optimizer.iterations
            for reference, slot, variable in watch.slots:
                if id(reference) in names:
                    name = names[id(reference)]
                    self.tensors["slot:%s|%s" % (name, slot)] = variable
                    self.slots.append([name, slot])

    def optimizer_facts(self):
        if self.optimizer is None:
            return None
        kinds = [kind.__name__ for kind in type(self.optimizer).__mro__]
        stock = next(
            (kind for kind in type(self.optimizer).__mro__ if kind.__module__.split(".")[0] in ("keras", "tf_keras")),
            None,
        )
        settings = {}
        for name in ("momentum", "beta_1", "beta_2", "centered"):
            value = keras_optimizers.value_of(self.optimizer, name)
            value = value.numpy().item() if hasattr(value, "numpy") else value
            if isinstance(value, (bool, int, float)):
                settings[name] = value
        own_step = stock is None or keras_optimizers.has_own_step(type(self.optimizer), stock)
        older = keras_optimizers.is_legacy(self.optimizer)
        facts = {"kinds": kinds, "rate": rate_of(self.optimizer), "own_step": own_step, "settings": settings}
        return dict(facts, older=older)

    def values(self):
        return {name: np.asarray(variable.numpy()) for name, variable in self.tensors.items()}

    def assign(self, values):
        for name, variable in self.tensors.items():
            if name in values:
                variable.assign(values[name])

    def clear(self):
        for variable in self.tensors.values():
            variable.assign(np.zeros(variable.shape.as_list(), variable.dtype.as_numpy_dtype))


def resolve(tf, path):
    """The prefix of a checkpoint that is given as a folder, a prefix or one of its files; None if there is none."""
    if os.path.isdir(path):
        return tf.train.latest_checkpoint(path)
    prefix = re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", path)
    return prefix if tf.io.gfile.glob(glob_escape(prefix) + ".index") or os.path.isfile(prefix) else None


def glob_escape(path):
    return re.sub(r"([*?[])", r"[\1]", path)


def read_graph(tf, prefix):
    """Variables in the order in which the graph made them, from the .meta file; None without one."""
    if not os.path.isfile(prefix + ".meta"):
        return None
    meta = tf.compat.v1.MetaGraphDef()
    with open(prefix + ".meta", "rb") as file:
        meta.ParseFromString(file.read())
    definition = importlib.import_module("tensorflow.core.framework.variable_pb2").VariableDef
    found = {}
    for collection in ("variables", "trainable_variables"):
        for content in meta.collection_def[collection].bytes_list.value:
            one = definition()
            one.ParseFromString(content)
            name = one.variable_name.partition(":")[0]
            part = None
            if one.save_slice_info_def.full_name:
                info = one.save_slice_info_def
                part = {"name": name, "offset": list(info.var_offset)}
                name = info.full_name
            entry = found.setdefault(name, {"name": name, "trainable": False, "parts": []})
            entry["trainable"] = entry["trainable"] or collection == "trainable_variables"
            if part is not None and part not in entry["parts"]:
                entry["parts"].append(part)
    return list(found.values())


def read_tf1(tf, path):
    """(facts, values) of a name-based checkpoint; facts say what is wrong with it otherwise."""
    prefix = resolve(tf, path)
    if prefix is None:
        return {"problem": "there is no checkpoint"}, {}
    try:
        reader = tf.train.load_checkpoint(prefix)
        shapes = reader.get_variable_to_shape_map()
        dtypes = reader.get_variable_to_dtype_map()
        if "_CHECKPOINTABLE_OBJECT_GRAPH" in shapes:
            return {"prefix": prefix, "problem": "this is a checkpoint of TensorFlow 2 objects"}, {}
        values, other = {}, []
        for name in sorted(shapes):
            if np.dtype(dtypes[name].as_numpy_dtype).kind in _NUMBERS:
                values[name] = np.asarray(reader.get_tensor(name))
            else:
                other.append(name)
    except Exception as error:
        return {"prefix": prefix, "problem": "it cannot be read: %s" % str(error).split("\n")[0]}, {}
    return {"prefix": prefix, "problem": None, "created": read_graph(tf, prefix), "other": other}, values


def write_tf1(tf, out, values, number):
    name = "model.ckpt-%d" % number
    prefix = os.path.join(out, name)
    names = sorted(values)
    tensors = [tf.constant(values[name]) for name in names]
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)
    with open(os.path.join(out, "checkpoint"), "w") as file:  # by its name alone: it is moved to another folder
        file.write('model_checkpoint_path: "%s"\nall_model_checkpoint_paths: "%s"\n' % (name, name))
    reader = tf.train.load_checkpoint(prefix)
    return prefix, {name: np.asarray(reader.get_tensor(name)) for name in names}


def main():
    """Has a process of its own do the job, which must not change anything but what is in the job's folder."""
    with open(sys.argv[1]) as file:
        job = json.load(file)
    here = os.getcwd()
    view = views.View([job["folder"]], [here, os.path.dirname(job["script"])])
    try:
        if not views.try_out():
            view.make()
    except OSError:
        pass  # then what the program changes is refused
    pid = os.fork()
    if pid:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(pid, signal.SIGKILL))
        try:
            _, status = os.waitpid(pid, 0)
        finally:
            view.close()
        sys.exit(0 if status == 0 else 1)
    child.die_with_parent(signal.SIGKILL)
    view.enter()
    os.chdir(here)  # the view's, or a relative model_dir would be one of the root
    child.die_with_parent(signal.SIGKILL)  # the kernel may forget it when the rights of a process change
    guard.Guard(os.path.join(job["folder"], guard.NOTES), view.own, view.covered, REFUSED).install()
    carry(job)


def carry(job):
    folder = job["folder"]
    answers = os.fdopen(os.dup(0), "r")

    def tell(name, facts):
        with open(os.path.join(folder, name + ".part"), "w") as file:
            json.dump(facts, file)
        os.replace(os.path.join(folder, name + ".part"), os.path.join(folder, name))

    tf = importlib.import_module("tensorflow")
    latest_checkpoint = tf.train.latest_checkpoint
    tf1, values = read_tf1(tf, job["tf1"]) if job["tf1"] else (None, {})
    np.savez(os.path.join(folder, "tf1.npz"), **{"v:" + name: value for name, value in values.items()})
    if str(getattr(tf.keras, "__version__", "2")).startswith("3."):
        tell("facts.json", {"tf1": tf1, "problem": "programs on Keras 3 are not carried over yet"})
        return
    kept = {name: getattr(tf.keras.Model, name) for name in _REACHING}
    watch = Watch()
    install(tf, watch)
    problem = run_script(job, watch)
    for name in kept:
        setattr(tf.keras.Model, name, kept[name])
    tf.train.latest_checkpoint = latest_checkpoint
    facts = {"tf1": tf1, "problem": problem, "folder": watch.folder, "keras_problem": None}
    keras = None
    if problem is None:
        try:
            keras = Keras(watch)
            facts.update(weights=keras.facts, slots=keras.slots, optimizer=keras.optimizer_facts())
            if job["keras"]:
                facts["keras_problem"] = load(tf, keras, job["keras"])
            np.savez(os.path.join(folder, "keras.npz"), **{"v:" + name: one for name, one in keras.values().items()})
        except Exception as error:
            traceback.print_exc()
            facts["problem"] = "its model cannot be looked at: %s" % str(error).split("\n")[0]
    tell("facts.json", facts)
    if not answers.readline().strip() or keras is None:
        return
    with np.load(os.path.join(folder, "values.npz")) as archive:
        given = {name[2:]: archive[name] for name in archive.files}
    made = os.path.join(folder, "made")  # the tool brings it to its place
    os.makedirs(made)
    if job["keras"]:
        prefix, after = write_tf1(tf, made, given, int(given.get(job["step"], 0)))
    else:
        prefix = os.path.join(made, "ckpt")
        keras.assign(given)
        keras.model.save_weights(prefix)
        keras.clear()
        keras.model.load_weights(prefix)
        after = keras.values()
    np.savez(os.path.join(folder, "after.npz"), **{"v:" + name: value for name, value in after.items()})
    tell("done.json", {"prefix": os.path.basename(prefix), "out": job["out"] or watch.folder})


def load(tf, keras, path):
    """Loads a checkpoint of the migrated program; a message where that is not possible."""
    prefix = resolve(tf, path)
    if prefix is None:
        return "there is no checkpoint"
    names = tf.train.load_checkpoint(prefix).get_variable_to_shape_map()
    if "_CHECKPOINTABLE_OBJECT_GRAPH" not in names:
        return "this is a checkpoint of TensorFlow 1, not of the migrated program"
    try:
        keras.clear()
        status = keras.model.load_weights(prefix)
        status.assert_existing_objects_matched()
    except Exception as error:
        return "the program's model does not fit it: %s" % str(error).split("\n")[0]
    return None


if __name__ == "__main__":
    main()
