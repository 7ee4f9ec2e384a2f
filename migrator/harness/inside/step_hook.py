"""The session hook that writes one record per training step of a TensorFlow 1 program."""

import os

import batches
import halves
import numpy as np
import parts
import points
import replicas
from capture import PLACE, component, counts, whole_name
from tracing import ancestors, pack_activations, thresholds, within


def together(tf, captures):
    """The batch of all local replicas, and how many of its examples each of them has (None: there is one)."""
    data = (captures[0].features, captures[0].labels)
    if len(captures) == 1:
        return data, None
    leaves = list(zip(*[tf.nest.flatten((one.features, one.labels)) for one in captures]))
    whole = [values[0] if values[0] is None else replicas.joined(tf, list(values)) for values in leaves]
    return tf.nest.pack_sequence_as(data, whole), replicas.sizes_of(tf, leaves)


def activations_of(tf, captures):
    """The outputs of the layers with weights, of all local replicas one after the other."""
    found = [one.layers.activations(tf, one.graph, whole_name, ancestors([one.loss])) for one in captures]
    if len(found) == 1:
        return found[0]
    return [(same[0][0], replicas.joined(tf, [tensor for _, tensor in same])) for same in zip(*found)]


def constants_of(rate):
    """The whole numbers that a rate is computed of: steps at which a schedule may change."""
    if rate is None or not hasattr(rate, "graph"):
        return []
    found = set()
    for name in ancestors([rate]):
        operation = rate.graph.get_operation_by_name(name)
        if operation.type == "Const" and operation.outputs[0].dtype.name in ("int32", "int64", "float32", "float64"):
            value = parts.constant(operation)
            found.update(float(one) for one in value.reshape(-1)[:100])
    return sorted(int(one) for one in found if 2 <= one < 1e12 and one == int(one))


def averaging(graph):
    """The operations that move the averages of batch normalizations.

    Those of `tf.layers` are in the collection UPDATE_OPS; an Estimator of a Keras model runs them without one.
    """
    return [
        op
        for op in graph.get_operations()
        if op.type.startswith("Assign") and op.inputs[0].op.name.endswith(("/moving_mean", "/moving_variance"))
    ]


def is_source(operation):
    """Whether an operation gives a step its data."""
    return operation.type.startswith(("IteratorGetNext", "QueueDequeue", "Placeholder"))


def ahead_of_data(train, model):
    """Those parts of a model that the operation ``train`` assigns whatever its data are, as a vector that follows the
    weights: a run that finds no more data may still have moved them.
    """
    graph = getattr(train, "graph", None)  # a variable outside of graphs, as a strategy's replicas give it, has none
    if graph is None:
        return []
    moved = set()
    for operation in map(graph.get_operation_by_name, ancestors([train])):
        if operation.type.startswith("Assign") and operation.inputs:
            reached = map(graph.get_operation_by_name, ancestors([operation]))
            if not any(is_source(one) for one in reached):
                moved.add(operation.inputs[0].op.name)
    return [part for part in model if any(name_in_graph(component(one)) in moved for one in part.copies)]


def name_in_graph(variable):
    """The name of a variable's operation; None of one outside of graphs, which comes into one by a placeholder, as data
    do: nothing is said of it.
    """
    return getattr(getattr(getattr(variable, "handle", variable), "op", None), "name", None)


def dense(tf, gradient, variable):
    """A gradient with a row for each of the variable's."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows = component(variable).shape.as_list()[0]
    return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, rows)


def make_hook(recorder, hooks=()):
    """The session hook that writes one record per training step of this task. ``hooks`` is the list of all
    hooks of the call, which may still grow.
    """
    return hook_class(recorder, hooks)()


def hook_class(recorder, hooks):
    """The class of such a hook."""
    tf = recorder.tf
    folder = recorder.folder

    # Synchronous replicas wait for each other within a step.
    turns = recorder.turns if recorder.replicas == 1 else None

    class StepHook(tf.train.SessionRunHook):
        goes_on = False  # whether the call is a further part of a step, as only sessions of a program's own make them
        in_parts = False  # whether further parts may follow

        def begin(self):
            capture = self.capture = recorder.capture
            self.model = capture.model_parts(tf)
            self.slots = capture.slot_parts(tf, self.model)
            self.ahead = ahead_of_data(capture.train_op, self.model) if turns is None else []
            self.behind = {}  # what those of them held behind the last step
            by_name = {part.variable.op.name: part for part in self.model}
            self.gradient_parts = []
            gradients = []
            pairings = [one.gradients() if one.local is None else [(None, one.local)] for one in capture.replicas]
            for place, (_, pairs) in enumerate(pairings[0]):
                for number, (_, variable) in enumerate(pairs):
                    every = [dense(tf, *one[place][1][number]) for one in pairings]
                    self.gradient_parts.append(by_name[component(variable).op.name])
                    gradients.append(every[0] if len(every) == 1 else tf.add_n(every))
            loss = tf.cast(tf.reshape(capture.loss if capture.reduced is None else capture.reduced, []), tf.float32)
            rate = recorder.rate_tensor()
            fields = [("loss", loss)]
            if rate is not None:
                fields.append(("learning_rate", tf.cast(rate, tf.float32)))
            header = {"fields": [name for name, _ in fields]}
            tensors = [tensor for _, tensor in fields]
            self.kept, self.kept_bytes = {}, 0
            if recorder.plan.get("record_batches", True):
                data, sizes = together(tf, capture.replicas)
                header["components"], described = batches.describe(tf, data)
                tensors += described
                self.kept["batch"] = batches.pack_batch(tf, data, sizes)
            self.every = {"step": batches.pack(tf, header, tensors)}
            self.some = {"gradients": gradients}
            self.first = {}
            regular = capture.graph.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
            reached = ancestors([capture.loss])
            activations = activations_of(tf, capture.replicas)
            if activations:
                self.first["activations"] = pack_activations(tf, activations)
            self.regular = [getattr(term, "_master_tensor", term) for term in regular if counts(term, reached)]
            if self.regular:
                self.first["regular"] = self.regular
            trained = ancestors([capture.train_op])
            updates = capture.graph.get_collection(tf.GraphKeys.UPDATE_OPS) or averaging(capture.graph)
            self.program = {
                "program": recorder.program,
                "tensorflow": tf.__version__,
                "keras": recorder.keras,
                "variables": parts.describe(self.model),
                "optimizer": recorder.optimizer_settings(),
                "raw_slots": False,
                "regularizers": len(self.regular),
                "regularization": None,
                "update_ops": len({getattr(op, "op", op).name for op in updates} & trained),
                "dropout_rates": [rate for rate, _, _ in capture.dropouts],
                "dropout_inputs": [shape for _, shape, _ in capture.dropouts],
                "dropout_after": [before.weights(self.model) for _, _, before in capture.dropouts],
                "dropout_loops": within(capture.loss, capture.dropouts, capture.draw_loops),
                "draws": capture.draws,
                "anew": hasattr(capture.graph, PLACE),
                "training": max(0, len(recorder.trained) - 1),
                "before": recorder.before,
                "sources": recorder.source_lines(self.model),
                "replicas": recorder.replicas,
                "in_step": recorder.in_step,
                "conditional": capture.conditional,
                "racing": capture.racing,
                "rate_constants": constants_of(rate),
                "slot_variables": {
                    "%s|%s" % (part.name, slot): variable.op.name
                    for slot, (owners, variables) in self.slots.items()
                    for part, variable in zip(owners, variables)
                    if part.shape == part.whole
                },
                "thresholds": thresholds(capture.graph, trained),
                "halves": halves.formats(capture.graph, trained),
                "shuffles": recorder.shuffles,
                "replicas_of_batch": recorder.local_replicas,
                "gradients": "local",
            }
            self.recorded_state = None
            self.joined = False
            self.number = recorder.steps_done

        def after_create_session(self, session, coord):
            self.program["origins"] = recorder.origin
            folder.write_json("program.json", self.program)
            folder.begin_training(recorder.steps_done)
            folder.barrier("start")
            # A session that was lost and made again goes on in the same circle.
            if turns is not None and not self.joined:
                turns.join()
                self.joined = True

        def at_last_step(self, session):
            """Whether all trainers together have taken the steps that were asked for."""
            stops = [hook for hook in hooks if isinstance(hook, tf.train.StopAtStepHook)]
            return any(session.run(hook._global_step_tensor) >= hook._last_step for hook in stops)

        def before_run(self, run_context):
            if turns is None:
                self.number = recorder.steps_done + (not self.goes_on)
            else:
                self.number = turns.take()
                # Estimator would look at the global step after one more step only.
                if turns.departed() and self.at_last_step(run_context.session):
                    raise tf.errors.OutOfRangeError(None, None, "another trainer took the last step")
            point = recorder.points.at(recorder.steps_done)
            if point is not None and not self.goes_on:
                place = recorder.steps_done
                session = run_context.session
                points.of_session(tf, point, place, recorder.points, session, self.capture, self.model, self.slots)
            place = getattr(self.capture.graph, PLACE, None)
            return tf.train.SessionRunArgs(
                self.fetches(), None if place is None else {place: recorder.points.before(self.number - 1)}
            )

        def fetches(self):
            """What is asked for with the step."""
            fetches = dict(self.every)
            if self.kept_bytes < batches.limit(recorder.plan):
                fetches.update(self.kept)
            if self.number in recorder.state_steps:
                fetches.update(self.some)
            if recorder.steps_done == 0:
                fetches.update(self.first)
            return fetches

        def after_run(self, run_context, run_values):
            results = run_values.results
            recorder.steps_done += 1
            number = recorder.steps_done
            stamp = folder.stamp()
            if "batch" in results:
                self.kept_bytes += len(results["batch"])
                folder.append("batches", stamp, results["batch"])
            folder.append("steps", stamp, results["step"])
            if "activations" in results:
                parts.atomic_write(folder.file("activations", "%08d" % number), results["activations"])
            if self.ahead:
                values = run_context.session.run([part.copies for part in self.ahead])
                self.behind = {id(part): copies for part, copies in zip(self.ahead, values)}
            self.saw_regular(results)
            if "gradients" in results:
                whole = parts.join(self.gradient_parts, results["gradients"])
                folder_file = folder.file("gradients", "%08d.npz" % self.number)
                parts.write_arrays(folder_file, whole)
            if self.number in recorder.state_steps:
                self.record_state(run_context.session, self.number)
            if recorder.points.over(number) and not self.in_parts:
                raise SystemExit(0)
            if number == 1:
                folder.note_cpu(number)
            if number == recorder.plan.get("kill_after"):
                os._exit(0)
            if turns is not None:
                turns.stepped()
            elif number == 1:
                # A short asynchronous training could be over before a slow starter took its first step.
                folder.barrier("first-step")

        def saw_regular(self, results):
            if "regular" in results:
                total = np.float32(0)
                for value in results["regular"]:
                    total = np.float32(total + value)
                self.program["regularization"] = float(total)
                folder.write_json("program.json", self.program)

        def record_state(self, session, number):
            # Whoever takes the turn reads the variables, but one folder holds them all.
            place = folder.file if turns is None else folder.leader_file
            if turns is None and not folder.leads():
                return
            self.recorded_state = number
            slots = {name: values for name, (_, values) in self.slots.items()}
            values, slots = session.run([[part.copies for part in self.model], slots])
            values = [self.behind.get(id(part), copies) for part, copies in zip(self.model, values)]
            whole = parts.join(self.model, [parts.of_replicas(copies) for copies in values])
            parts.write_arrays(place("states", "%08d.npz" % number), whole)
            whole = {}
            for name, (owners, _) in self.slots.items():
                for variable, value in parts.join(owners, slots[name]).items():
                    whole[variable + "|" + name] = value
            parts.write_arrays(place("slots", "%08d.npz" % number), whole)

        def end(self, session):
            folder.arrive("first-step")
            if turns is not None:
                number = turns.steps()
                known = os.path.exists(folder.leader_file("states", "%08d.npz" % number))
                if number and not known and (turns.alone() or self.at_last_step(session)):
                    self.record_state(session, number)
            elif recorder.steps_done and self.recorded_state != recorder.steps_done:
                self.record_state(session, recorder.steps_done)
            folder.note_cpu(recorder.steps_done)
            folder.end_training()

    return StepHook
