"""Records a TensorFlow 1 program that trains by hand: in a MonitoredTrainingSession, in a session of a Supervisor, or
in a plain one.

A step is a call of ``run`` that applies gradients. What an Estimator's hook records of a step is asked for in the same
call; the batch is what of an iterator or of placeholders the loss depends on.

Where several operations apply gradients, as those of the two networks of a GAN do, and a call runs some of them, what
is called one after the other with the same batch are the parts of one step, as one call of all of them is: its loss is
the sum of theirs. See record_loop.py, which says the same of functions of TensorFlow 2.
"""

import atexit
import importlib
import json
import os
import sys

import batches
import loss_scales
import numpy as np
import parts
import sources
import step_hook
from capture import Capture, component
from step_hook import hook_class
from tracing import ancestors

#: What gives the gradients of several workers, in any kind of accumulator.
_TAKEN_FROM_WORKERS = "AccumulatorTakeGradient"


KNOWN = "_recorded_by_hand"


class ByHand(object):
    """What is known of one graph that no Estimator made."""

    def __init__(self, graph):
        self.graph = graph
        self.capture = Capture(graph, None, None)
        self.losses = []  # what compute_gradients was asked for
        self.asked = []  # of these, what no optimizer was given the gradients of so far
        self.of_stepper = {}  # name of what applies gradients -> (losses, optimizer, [(gradient, variable)])
        self.step_of = set()  # the operations that were run in the step under way
        self.fed = {}  # and what was fed for it
        self.gradients = []  # what tf.gradients was asked for by the program itself
        self.taken = {}  # id of a loss -> the gradients of it
        self.gets = []  # (structure of an iterator's next element, line)
        self.steppers = []  # names of the operations that apply gradients
        self.hook = None
        self.parts = []  # a Part for each operation that applies gradients, where there are several
        self.hooks = []
        self.session = None
        self.ended = False
        self.managed = False  # whether its session ends in good order when a step raises OutOfRangeError
        self.limited = False  # whether a hook of ours ends its session
        self.components = []
        self.stands = {}  # whether a fetch trains
        self.collected = None  # see collects; None where nobody asked so far

    def loss(self, tf):
        """The loss of a step: the mean of the towers' where there are several, and the sum over all that trains."""
        if self.several():
            return tf.add_n([_mean(tf, self.meant(losses)) for losses, _, _ in self.of_stepper.values()])
        return _mean(tf, self.meant(self.losses or self.gradients))

    def meant(self, losses):
        """The losses without the scales whose gradients are divided by them again."""
        return [loss_scales.unscaled(one, self.taken.get(id(one), [])) for one in losses]

    def several(self):
        """Whether several operations train, each by losses of its own."""
        return len(self.steppers) > 1 and all(losses for losses, _, _ in self.of_stepper.values())

    def collects(self):
        """Whether gradients are applied that earlier calls have added up: in variables, the batches are gone. The loss
        of such a call would need a batch of its own, or what nobody feeds any more. What workers add up in an
        accumulator is of this call.
        """
        if self.collected is None:
            applied = ancestors([pair[0] for _, _, pairs in self.of_stepper.values() for pair in pairs])
            types = {self.graph.get_operation_by_name(name).type for name in applied}
            of_workers = any(_TAKEN_FROM_WORKERS in one for one in types)
            of_losses = self.of_batches(ancestors(self.losses or self.gradients))
            self.collected = bool(applied and of_losses) and not of_workers and not self.of_batches(applied)
        return self.collected

    def of_batches(self, reached):
        """Which of some operations give what a program trains on."""
        given = {one.op.name for get, _ in self.gets for one in _flat(get)}
        placeholders = [one for one in self.graph.get_operations() if one.type == "Placeholder"]
        return reached & (given | {one.name for one in placeholders if one.outputs[0].shape.ndims != 0})

    def data(self, reached):
        """(features, labels) that the operations ``reached`` depend on."""
        found = [get for get, _ in self.gets if any(one.op.name in reached for one in _flat(get))]
        if len(found) == 1:
            pair = found[0]
            plain = isinstance(pair, (tuple, list)) and not hasattr(pair, "_fields")
            if plain and len(pair) == 2:
                return pair[0], pair[1]
            return (pair[0] if plain and len(pair) == 1 else pair), None
        if found:
            return tuple(found), None
        placeholders = [
            operation.outputs[0]
            for operation in self.graph.get_operations()
            if operation.type == "Placeholder" and operation.name in reached and operation.outputs[0].shape.ndims != 0
        ]
        if len(placeholders) < 2:
            return (placeholders[0] if placeholders else None), None
        features = placeholders[:-1]
        return (features[0] if len(features) == 1 else tuple(features)), placeholders[-1]


def _flat(structure):
    tf = importlib.import_module("tensorflow")
    return [one for one in tf.nest.flatten(structure, expand_composites=True) if hasattr(one, "op")]


def _mean(tf, losses):
    if len(losses) == 1:
        return losses[0]
    return tf.add_n([tf.cast(tf.reshape(one, []), tf.float32) for one in losses]) / float(len(losses))


class Part(object):
    """What one of several operations that apply gradients trains by, and what is asked for when it is run."""

    def __init__(self, name, loss, optimizer, pairs, data):
        self.name = name
        self.loss = loss
        self.optimizer = optimizer
        self.pairs = pairs
        self.data = data
        self.step = None  # a packed record
        self.batch = None
        self.owners, self.gradients = [], []

    def draws(self, known):
        """Whether it takes its batch from an iterator."""
        names = {one.op.name for get, _ in known.gets for one in _flat(get)}
        return any(leaf.op.name in names for leaf in _flat(self.data))


def parts_hook(recorder, hooks, known):
    """The hook of a session's steps, some of which may be made in several calls."""
    tf = recorder.tf
    folder = recorder.folder

    class Hook(hook_class(recorder, hooks)):
        chosen = ()  # the Parts of this call; none where it is a whole step
        first_part = None  # the first Part of the step under way

        def begin(self):
            super(Hook, self).begin()
            self.parts = known.parts
            by_name = {part.variable.op.name: part for part in self.model}
            for part in self.parts:
                fields = [("loss", tf.cast(tf.reshape(part.loss, []), tf.float32))]
                rate = recorder.rate_tensor(part.optimizer)
                if rate is not None:
                    fields.append(("learning_rate", tf.cast(rate, tf.float32)))
                header, tensors = {"fields": [name for name, _ in fields]}, [tensor for _, tensor in fields]
                if recorder.plan.get("record_batches", True):
                    header["components"], described = batches.describe(tf, part.data)
                    tensors += described
                    part.batch = batches.pack_batch(tf, part.data)
                part.step = batches.pack(tf, header, tensors)
                part.owners = [by_name[component(variable).op.name] for _, variable in part.pairs]
                part.gradients = [step_hook.dense(tf, *pair) for pair in part.pairs]

        def choose(self, names, goes_on):
            """Which operations the coming call runs, and whether it goes on with the step under way."""
            whole = not goes_on and len(names) >= len(self.parts)
            self.chosen = [] if whole else [part for part in self.parts if part.name in names]
            self.goes_on = goes_on
            self.in_parts = bool(self.chosen)
            if not goes_on:
                self.first_part = self.chosen[0] if self.chosen else None

        def components(self):
            """(path, tensor) of the batch of the step under way."""
            return known.components if self.first_part is None else batches.leaves(tf, self.first_part.data)

        def fetches(self):
            if not self.chosen:
                return super(Hook, self).fetches()
            found = {"part%d" % place: part.step for place, part in enumerate(self.chosen)}
            batch = None if self.goes_on else self.chosen[0].batch
            if batch is not None and self.kept_bytes < batches.limit(recorder.plan):
                found["batch"] = batch
            if self.number in recorder.state_steps:
                found.update(("gradients%d" % place, part.gradients) for place, part in enumerate(self.chosen))
            return found

        def after_run(self, run_context, run_values):
            if not self.chosen:
                super(Hook, self).after_run(run_context, run_values)
                return
            results = run_values.results
            before = len(known.step_of) - len(self.chosen)
            for place, part in enumerate(self.chosen):
                behind = before + place
                if behind:
                    folder.append("more", self.number, results["part%d" % place])
                if "gradients%d" % place in results:
                    whole = parts.join(part.owners, results["gradients%d" % place])
                    name = "%08d%s.npz" % (self.number, "+%d" % behind if behind else "")
                    parts.write_arrays(folder.file("gradients", name), whole)
            if self.goes_on:
                self.recorded_state = None  # the step has not ended where it was looked at
                if self.number in recorder.state_steps:
                    self.record_state(run_context.session, self.number)
                return
            run_values.results = {"step": results["part0"]}
            if "batch" in results:
                run_values.results["batch"] = results["batch"]
            super(Hook, self).after_run(run_context, run_values)

    return Hook()


class Context(object):
    """What a hook is told about a call of ``run``."""

    def __init__(self, session):
        self.session = session
        self.results = None


class SessionRecorder(object):
    """State of the recording of programs that train by hand; ``recorder`` is that of the process."""

    def __init__(self, recorder):
        self.tf = recorder.tf
        self.recorder = recorder
        self.inside = False

    @staticmethod
    def of(graph):
        """What is known of a graph; None where nothing was seen of it."""
        return getattr(graph, KNOWN, None)

    @property
    def building(self):
        """What is known of the graph that is being built; None inside an Estimator, or where there is no graph."""
        if self.recorder.estimating or self.tf.executing_eagerly():
            return None
        graph = self.tf.get_default_graph()
        if getattr(graph, "building_function", False):
            return None
        if self.of(graph) is None:
            setattr(graph, KNOWN, ByHand(graph))  # goes with the graph
        return self.of(graph)

    # -- while the graph is built --
    def apply_gradients(self, original, optimizer, pairs, in_order, scaled, *args, **kwargs):
        """An optimizer at work, which is given its ``pairs`` as they are ``in_order`` (see races.py); ``scaled`` is a
        context in which its rate is what the plan asks for.
        """
        known = self.building
        if known is None:
            raise RuntimeError("gradients are applied outside of a graph")
        capture = known.capture
        self.recorder.capture = capture
        self.recorder.saw_gradients(optimizer, pairs)
        depth = len(capture.applied)
        with scaled:
            result = original(optimizer, in_order, *args, **kwargs)
        if len(capture.applied) == depth:
            kept = [(gradient, variable) for gradient, variable in pairs if gradient is not None]
            capture.applied.append((optimizer, kept))
        self.recorder.settle(known.graph, known.asked or known.losses or known.gradients)
        step = kwargs.get("global_step", args[0] if args else None)
        if step is not None:
            capture.counters.add(step.op.name)
        name = getattr(result, "op", result).name
        known.steppers.append(name)
        known.of_stepper[name] = (known.asked, optimizer, [pair for pair in pairs if pair[0] is not None])
        known.asked = []
        return result

    def prepare(self, known):
        """Adds to a graph what a step is to show. Nothing may be added to it afterwards."""
        if known.hook is not None or not known.steppers:
            return
        tf, capture = self.tf, known.capture
        with known.graph.as_default(), tf.control_dependencies(None), known.graph.device(None):
            train = [known.graph.get_operation_by_name(name) for name in known.steppers]
            losses = known.losses or known.gradients
            place = next((one.device for one in losses if one.device), "") if losses else ""
            with tf.device(_worker(place)):
                if not losses:
                    raise RuntimeError("the loss of this training is not known: no compute_gradients, no tf.gradients")
                capture.loss = known.loss(tf)
                capture.train_op = train[-1]
                reached = ancestors([*train, capture.loss])
                capture.features, capture.labels = known.data(reached)
                known.components = batches.leaves(tf, (capture.features, capture.labels))
                known.parts = self.parts_of_step(known) if known.several() else []
                for get, line in known.gets:
                    if line is not None and any(one.op.name in reached for one in _flat(get)):
                        self.recorder.sources.setdefault("input", line)
                self.recorder.capture = capture
                known.hook = parts_hook(self.recorder, known.hooks, known)
                known.hook.begin()

    def parts_of_step(self, known):
        """A Part for each operation that applies gradients."""
        found = []
        for name, (losses, optimizer, pairs) in known.of_stepper.items():
            loss = _mean(self.tf, known.meant(losses))
            train = known.graph.get_operation_by_name(name)
            found.append(Part(name, loss, optimizer, pairs, known.data(ancestors([train, loss]))))
        return found

    # -- while it runs --
    def trains(self, session, fetches):
        """What is known of the graph of a session, and which of its operations that apply gradients the fetches run;
        None where they run none.
        """
        known = self.of(session.graph)
        if self.inside or known is None or not known.steppers:
            return None, frozenset()
        chosen = frozenset().union(*(self._stands(known, one) for one in _leaves(fetches)))
        if chosen and known.session is None and known.collects():
            self.recorder.folder.note_unrecorded(
                "gradients that earlier calls of its session add up", sources.user_line()
            )
            return None, frozenset()
        return (known if chosen else None), chosen

    def _stands(self, known, fetch):
        try:
            if fetch not in known.stands:
                element = known.graph.as_graph_element(fetch, allow_tensor=True, allow_operation=True)
                known.stands[fetch] = frozenset(ancestors([element]) & set(known.steppers))
            return known.stands[fetch]
        except (TypeError, ValueError, KeyError):
            return frozenset()

    def run(self, original, session, fetches, feed_dict=None, options=None, run_metadata=None):
        known, chosen = self.trains(session, fetches)
        if known is None:
            return original(session, fetches, feed_dict, options, run_metadata)
        self.inside = True
        try:
            goes_on = self._goes_on(known, chosen, feed_dict)
            context = self._begin(known, session, goes_on)
            known.hook.choose(chosen, goes_on)
            asked = known.hook.before_run(context)
            feed = self._replayed(known, feed_dict)
            if asked.feed_dict:
                feed = dict(feed or {})
                feed.update(asked.feed_dict)
            result, context.results = original(session, [fetches, asked.fetches], feed, options, run_metadata)
            known.step_of = known.step_of | chosen if goes_on else chosen
            known.fed = {**known.fed, **feed_dict} if goes_on and feed_dict else dict(feed_dict or {})
            known.hook.after_run(context, context)
            return result
        finally:
            self.inside = False

    def _goes_on(self, known, chosen, feed_dict):
        """Whether a call is a further part of the step under way: other networks, on what was fed before."""
        if not known.step_of or chosen & known.step_of or not known.hook.parts:
            return False
        if any(part.draws(known) for part in known.hook.parts if part.name in chosen):
            return False  # a batch of its own from an iterator
        both = [key for key in feed_dict or {} if key in known.fed]
        return all(known.fed[key] is feed_dict[key] or np.array_equal(known.fed[key], feed_dict[key]) for key in both)

    def _begin(self, known, session, goes_on=False):
        recorder = self.recorder
        limit = recorder.plan.get("steps")
        if limit is not None and not known.limited and not goes_on and self._steps() >= limit:
            if not known.managed:
                raise SystemExit(0)
            raise self.tf.errors.OutOfRangeError(None, None, "as many steps as were asked for")
        if recorder.points.over(recorder.steps_done) and not goes_on:
            raise SystemExit(0)
        first = known.session is None
        known.session = session  # a session that was lost is made again
        if first:
            self.prepare(known)
            recorder.capture = known.capture
            line = sources.user_line()
            if line is not None:
                known.hook.program["sources"]["train"] = line
            if recorder.folder.leads():
                recorder.start_values(session)
            known.hook.after_create_session(session, None)
            atexit.register(self.at_exit, known)
        return Context(session)

    def _steps(self):
        """How many steps were taken, by all trainers together where they take turns."""
        turns = self.recorder.turns
        return self.recorder.steps_done if turns is None else turns.steps()

    def _replayed(self, known, feed_dict):
        """What is fed to a step: in a replay the recorded batch, whatever the program's own is."""
        folder = self.recorder.folder.replay
        if folder is None:
            return feed_dict
        names = sorted(name for name in os.listdir(folder) if name.isdigit())
        place = self.recorder.steps_done - known.hook.goes_on
        if place >= len(names):
            raise self.tf.errors.OutOfRangeError(None, None, "no further batch was recorded")
        feed = dict(feed_dict or {})
        components = known.hook.components()
        values = _read(os.path.join(folder, names[place]), components)
        given = [(leaf, value) for (_, leaf), value in zip(components, values)]
        if known.hook.goes_on:  # what this part does not take of the batch is not fed
            given = [(leaf, value) for leaf, value in given if any(key is leaf or key == leaf.name for key in feed)]
        for key in list(feed):
            if any(key is leaf or key == leaf.name for leaf, _ in given):
                del feed[key]
        feed.update(given)
        return feed

    def close(self, known, session):
        """The end of a training, before its session is closed."""
        if known.session is not session or known.ended:
            return
        known.ended = True
        self.inside = True
        try:
            known.hook.end(session)
        except (self.tf.errors.OpError, RuntimeError):
            return  # of a session that failed there is no more to be had
        finally:
            self.inside = False
        if self.recorder.turns is not None:
            self.recorder.turns.leave()

    def at_exit(self, known):
        """The end of a training whose session is never closed."""
        if not known.ended:
            self.close(known, known.session)
            self.leave()

    def leave(self):
        """Where a server of this process still serves others, which train on: waits for them."""
        self.recorder.folder.barrier("end")


def _leaves(fetches):
    if isinstance(fetches, dict):
        return [leaf for value in fetches.values() for leaf in _leaves(value)]
    if isinstance(fetches, (list, tuple)):
        return [leaf for value in fetches for leaf in _leaves(value)]
    if hasattr(fetches, "fetches") and not hasattr(fetches, "op"):  # SessionRunArgs
        return _leaves(fetches.fetches)
    return [] if fetches is None else [fetches]


def _worker(device):
    """The CPU of the task that a device belongs to; an operation without a place may land on any server."""
    task = [part for part in device.split("/") if part.startswith(("job:", "replica:", "task:"))]
    return "/" + "/".join([*task, "device:CPU:0"]) if task else None


def _read(path, components):
    """The values of a recorded batch, for each component of this program's."""
    tensor_pb2 = importlib.import_module("tensorflow.core.framework.tensor_pb2")
    tensor_util = importlib.import_module("tensorflow.python.framework.tensor_util")
    with open(path, "rb") as stream:
        vector = tensor_pb2.TensorProto.FromString(stream.read()).string_val
    places = batches.match(json.loads(vector[0].decode("utf-8")), components)
    return [tensor_util.MakeNdarray(tensor_pb2.TensorProto.FromString(vector[1 + place])) for place in places]


def install(recorder):
    """Makes ``recorder`` see programs that train by hand; an Estimator's sessions stay its own."""
    tf = recorder.tf
    ours = SessionRecorder(recorder)
    recorder.sessions = ours
    optimizers = importlib.import_module("tensorflow.python.training.optimizer")
    session = importlib.import_module("tensorflow.python.client.session")
    ops = importlib.import_module("tensorflow.python.framework.ops")
    monitored = importlib.import_module("tensorflow.python.training.monitored_session")

    def compute_gradients(original, self, loss, *args, **kwargs):
        known = ours.building
        if known is not None and hasattr(loss, "op"):
            known.asked.append(loss)
            if all(loss is not one for one in known.losses):
                known.losses.append(loss)
        pairs = original(self, loss, *args, **kwargs)
        if known is not None and hasattr(loss, "op"):
            known.taken.setdefault(id(loss), []).extend(gradient for gradient, _ in pairs)
        return pairs

    parts.wrap(optimizers.Optimizer, "compute_gradients", compute_gradients)

    def gradients(original, ys, xs, *args, **kwargs):
        known = ours.building
        if known is not None and hasattr(ys, "op") and all(ys is not one for one in known.gradients):
            known.gradients.append(ys)
        found = original(ys, xs, *args, **kwargs)
        if known is not None and hasattr(ys, "op"):
            known.taken.setdefault(id(ys), []).extend(found)
        return found

    for module in {id(one): one for one in (tf, importlib.import_module("tensorflow"))}.values():
        if hasattr(module, "gradients"):
            parts.wrap(module, "gradients", gradients)

    def get_next(original, self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        known = ours.building
        if known is not None:
            known.gets.append((result, sources.user_line()))
        return result

    parts.wrap(importlib.import_module("tensorflow.python.data.ops.iterator_ops").Iterator, "get_next", get_next)

    def finalize(original, self):
        known = ours.of(self)
        if known is not None:
            ours.prepare(known)
        return original(self)

    parts.wrap(ops.Graph, "finalize", finalize)
    parts.wrap(session.BaseSession, "run", ours.run)

    def close(original, self):
        known = ours.of(self.graph)
        if known is not None and known.session is self:
            ours.close(known, self)
            original(self)
            ours.leave()
            return
        original(self)

    parts.wrap(session.BaseSession, "close", close)

    def make_monitored(original, self, session_creator, hooks, *args, **kwargs):
        known = ours.building
        if known is not None:
            known.managed = True
            for hook in hooks or []:
                if recorder.effects is not None:
                    recorder.effects.watch_hook(hook)
            limit = recorder.plan.get("steps")
            if limit is not None and known.steppers and tf.train.get_global_step(known.graph) is not None:
                # Of the steps of all trainers, as the program's own hooks count them.
                hooks = [*(hooks or []), tf.train.StopAtStepHook(last_step=limit)]
                known.limited = True
            known.hooks.extend(hooks or [])
        return original(self, session_creator, hooks, *args, **kwargs)

    parts.wrap(monitored._MonitoredSession, "__init__", make_monitored)

    supervisor = importlib.import_module("tensorflow.python.training.supervisor").Supervisor

    def supervise(original, self, *args, **kwargs):
        known = ours.building
        if known is not None:
            known.managed = True
        original(self, *args, **kwargs)

    parts.wrap(supervisor, "__init__", supervise)

    _patch_synchronous(ours)
    _patch_places(recorder.redirect)


def _patch_synchronous(ours):
    module = importlib.import_module("tensorflow.python.training.sync_replicas_optimizer")
    kind = module.SyncReplicasOptimizer

    def apply_gradients(original, self, grads_and_vars, *args, **kwargs):
        pairs = list(grads_and_vars)
        known = ours.building
        if known is None:
            return original(self, pairs, *args, **kwargs)
        # What is applied is the mean over the replicas, each of which adds its share.
        share = 1.0 / int(self._replicas_to_aggregate)
        scale = ours.tf.scalar_mul
        known.capture.local = [(scale(share, gradient), one) for gradient, one in pairs if gradient is not None]
        ours.recorder.capture = known.capture
        ours.recorder.saw_gradients(self, pairs)
        result = original(self, pairs, *args, **kwargs)
        # The gradients of all replicas are applied by another thread of the chief's.
        known.steppers[:] = [getattr(result, "op", result).name]
        ours.recorder.replicas = int(self._replicas_to_aggregate)
        ours.recorder.in_step = True
        return result

    parts.wrap(kind, "apply_gradients", apply_gradients)

    def get_init_tokens_op(original, self, num_tokens=-1):
        # A token for nothing lets each worker compute one gradient that is thrown away as stale.
        return original(self, max(0, self._replicas_to_aggregate - self._total_num_replicas))

    parts.wrap(kind, "get_init_tokens_op", get_init_tokens_op)


def _of_users(change):
    """``change`` for calls in the user's files: TensorFlow's own (model_to_estimator) find their files as they are."""

    def changed(path):
        caller = sys._getframe(2)  # of the wrapped method
        return change(path) if sources.is_users(caller.f_code.co_filename) else path

    return changed


def _patch_places(redirect):
    from redirect import patch_argument

    tensorflow = importlib.import_module("tensorflow")
    found = [importlib.import_module("tensorflow.compat.v1").train, getattr(tensorflow, "train", None)]
    for train in {id(one): one for one in found if one is not None}.values():
        patch_argument(train, "MonitoredTrainingSession", "checkpoint_dir", redirect.folder)
    saver = importlib.import_module("tensorflow.python.training.saver").Saver
    patch_argument(saver, "save", "save_path", _of_users(redirect.file))
    patch_argument(saver, "restore", "save_path", _of_users(redirect.reading))
    supervisor = importlib.import_module("tensorflow.python.training.supervisor").Supervisor
    patch_argument(supervisor, "__init__", "logdir", redirect.folder)
    hooks = importlib.import_module("tensorflow.python.training.basic_session_run_hooks")
    patch_argument(hooks.CheckpointSaverHook, "__init__", "checkpoint_dir", redirect.folder)
    patch_argument(hooks.SummarySaverHook, "__init__", "output_dir", redirect.folder)
