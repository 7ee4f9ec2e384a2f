"""Entry of the recorder: installs it into a training process, before the user's script runs.

This folder is put on ``sys.path`` of the user's interpreter, so everything here is Python 3.7, standard
library, numpy and TensorFlow only.
"""

import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SIBLINGS = (
    "appended",
    "batch_losses",
    "batches",
    "bridge_servers",
    "callback_variables",
    "capture",
    "cores",
    "drawn",
    "edited_rate",
    "effects",
    "estimator_patches",
    "even",
    "exports",
    "folder",
    "generators",
    "halves",
    "keras_optimizers",
    "keras_patches",
    "keras_variables",
    "lines",
    "loop_trainings",
    "loss_scales",
    "mutate",
    "mutate_keras3",
    "nudged",
    "origins",
    "own_optimizers",
    "parts",
    "points",
    "predictions",
    "races",
    "record_bridge",
    "record_estimator",
    "record_keras",
    "record_keras3",
    "record_loop",
    "record_mesh",
    "record_plain",
    "record_scheduled",
    "record_session",
    "redirect",
    "replicas",
    "sample",
    "shuffles",
    "signs",
    "sources",
    "step_hook",
    "step_parts",
    "tpu_stand_in",
    "tracing",
    "turns",
    "v1_optimizers",
    "virtual_devices",
)


def preload(program):
    """Imports what ``install`` will need, so that a fork server pays for it once. Starts no TensorFlow
    runtime.

    ``program`` is "original" or "migrated"; v2 behaviour must already be switched as the script will see it.
    """
    if program == "original":
        for name in (
            "tensorflow.compat.v1",
            "tensorflow_estimator.python.estimator.estimator",
            "tensorflow_estimator.python.estimator.training",
            "tensorflow.python.training.session_manager",
        ):
            importlib.import_module(name)
        return
    tf = importlib.import_module("tensorflow")
    base = tf.keras.Model.__module__.split(".")[0]
    if is_keras3(tf):
        for name in ("models.model", "optimizers", "layers", "callbacks", "losses", "metrics"):
            importlib.import_module("keras.src." + name)
        return
    for name in ("engine.training", "optimizers.optimizer", "layers.regularization.dropout", "callbacks"):
        importlib.import_module(base + ".src." + name)


def is_keras3(tf):
    """Whether ``tf.keras`` is Keras 3."""
    return getattr(tf.keras, "__version__", "2").startswith("3.")  # tf_keras has no version there


def seed_graphs(seed):
    """Gives a seed to every graph to which the program gives none: its random numbers are the same in each run."""
    graph = importlib.import_module("tensorflow").compat.v1.Graph
    own = graph.seed
    graph.seed = property(lambda self: seed if own.fget(self) is None else own.fget(self), own.fset)


def install(plan):
    """Makes this process obey ``plan`` and record itself. The keys of the plan:

    - ``record``, ``model_dir``: folders to write to; every checkpoint path of the script is moved into the
      second
    - ``task``: {"type", "index"} of this process; ``trainers``: the tasks that train and wait for each other
    - ``steps``: global steps after which training ends, or None
    - ``only_training``: a Keras program that trains by itself, not on a cluster, ends after those steps
    - ``state_steps``: steps after which weights and slots, and of which the gradients, are recorded
    - ``initial``: npz of whole weights by this program's variable names, to start from, or None
    - ``draw_initial``: whether initial values are drawn further times (see drawn.py)
    - ``initial_awaited``: a Keras program shows its variables (program.json) and waits for that file
    - ``seed``: of the random numbers of a TensorFlow 1 program in the graphs for which it sets none, or None
    - ``generators``: a number of which Python's and NumPy's generators and random operations of datasets are seeded
      where the program does not do it (see generators.py), or None
    - ``ulp_seed``: moves every float initial value to a neighbouring one, and likewise what is cast to half precision,
      or None
    - ``learning_rate_factor``: multiplies every rate that is used
    - ``edited_rate``: multiplies the rates that the program gives its optimizers, as its user would by editing it, or
      None; see edited_rate.py
    - ``replay``: record folder of a run whose batches replace the program's own, or None
    - ``record_batches``, ``evaluate``: whether to record batches and results of evaluation
    - ``keep_batches``: whether the batches are kept whole, for replay, beside their digests
    - ``evaluate_weights``: [{"step", "path"}], npz files of whole weights; at every evaluation a Keras program
      also evaluates the one of its own step (or the nearest)
    - ``evaluation_control``: whether a Keras program then also evaluates the weights that the run began with
    - ``evaluation_noise``: whether the first evaluations are repeated with weights moved by one ulp
    - ``predict_weights``: [{"step", "path"}] for each call of the original that predicts: the weights of which a Keras
      program is to predict the same, too
    - ``pin_dropout``: what dropouts drop in steps of the training is decided by the place in an example, or, for
      "features", by that along its last axis (see even.py)
    - ``anew``: and by which step of the training it is
    - ``turns``: the trainers of parameter servers step one after another, and the numbers of states and
      gradients are those of all their steps
    - ``tpu_cores``: how many virtual CPUs stand in for a TPU that the program asks for, or None
    - ``training``: which of the models that the program trains, one after another, is recorded (0: the first)
    - ``apart``: whether loops that train other variables are other trainings (see loop_trainings.py)
    - ``first_batch``: which of the batches that a program asks its data sets for is the first that an eager loop trains
      on, as an earlier run has told, or None (see record_plain.py)
    - ``kill_after``: the step after which the process ends as if it were killed, or None
    - ``devices``: how many virtual CPUs a program sees, if more than one
    - ``data_sample``: the most batches of a data set that an evaluation takes, or None
    - ``lines``: whether to note which lines of the user's files run (see lines.py)
    - ``points``: the step that each step of this run is, and what to start it from (see points.py), or None
    - ``mutant``: a known mistake to make in a Keras program while it runs, or None

    The program kind is ``plan["program"]`` ("original" or "migrated") when given; else a process that was
    told to use Keras 2 is a migrated one. Runs no TensorFlow op: strategies must still be able to configure
    the runtime. Raises RuntimeError when the plan cannot be obeyed.
    """
    added = HERE not in sys.path
    if added:
        sys.path.insert(0, HERE)
    try:
        modules = {name: importlib.import_module(name) for name in SIBLINGS}
    finally:
        if added:
            sys.path.remove(HERE)
    program = plan.get("program") or ("migrated" if os.environ.get("TF_USE_LEGACY_KERAS") == "1" else "original")
    folder = modules["folder"].TaskFolder(plan, program)
    modules["generators"].install(plan)
    if plan.get("ulp_seed") is not None:
        modules["halves"].move_casts(int(plan["ulp_seed"]))
    modules["tpu_stand_in"].install(plan, folder, program)
    modules["virtual_devices"].install(plan, program)
    kind = "record_estimator"
    if program != "original":
        kind = "record_keras3" if is_keras3(importlib.import_module("tensorflow")) else "record_keras"
    recorder = bridge = modules[kind].install(plan, folder)
    modules["signs"].install(importlib.import_module("tensorflow"), folder)
    if plan.get("edited_rate") is not None and program != "original":
        tf = importlib.import_module("tensorflow")
        modules["edited_rate"].install(tf, float(plan["edited_rate"]), folder, kind == "record_keras3")
    if plan.get("shuffle_seed") is not None:
        modules["shuffles"].give_seed(int(plan["shuffle_seed"]), bool(plan.get("one_order")))
    if plan.get("in_place"):
        modules["shuffles"].leave_in_place(importlib.import_module("tensorflow"))
    if program == "original":
        modules["record_session"].install(recorder)
        if plan.get("seed") is not None:
            seed_graphs(int(plan["seed"]))
    else:
        loops = modules["record_loop"].install(recorder)
        if kind == "record_keras":
            bridge = modules["record_bridge"].install(plan, folder, recorder)
            modules["record_session"].install(bridge)  # of a program that keeps its graph
    first = "tensorflow.compat.v1" if program == "original" else "tensorflow"
    over = None if program == "original" else lambda: recorder.ended() or loops.over()
    modules["sample"].install(importlib.import_module(first), plan, program, over)
    if plan.get("evaluate", True):
        recorders = (recorder, bridge)
        steps = lambda: max(one.steps_done for one in recorders)  # noqa: E731
        weights = {"weights": recorder.held} if kind == "record_keras" else {}
        recorder.effects = bridge.effects = modules["effects"].Effects(folder, steps, **weights)
        modules["effects"].install(recorder.effects)
        modules["exports"].install(folder, recorder.effects)
        if program != "original":
            tf = importlib.import_module("tensorflow")
            modules["effects"].install_keras(recorder.effects, tf.keras.Model)
    if plan.get("mutant"):
        if program == "original":
            raise RuntimeError("a mutant is a mistake in a Keras program, and this one is not")
        tf = importlib.import_module("tensorflow")
        modules["mutate_keras3" if is_keras3(tf) else "mutate"].install(tf, plan, folder)
    if plan.get("lines"):
        modules["lines"].install(folder)  # the last: what is above is not the program's
    else:
        modules["lines"].leave_unnoted()
    # A user's own module may bear one of these plain names; ours live on through the patches.
    for name in SIBLINGS:
        sys.modules.pop(name, None)
