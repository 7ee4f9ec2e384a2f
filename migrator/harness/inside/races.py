"""Updates of a graph that nothing keeps from running before a gradient that is still to be taken.

A variable of TensorFlow 1 is changed in place. `Optimizer.minimize` waits for all gradients, `tf.gradients` and
`apply_gradients` do not: an update may change a weight that the gradient of another one, further back in the network,
still reads. Which of the two is first nobody has decided, and it changes from run to run. Programs that are compared
take their gradients first, as the others do.

The same holds for a count of the steps that is raised beside the updates (`tf.group(train_op, step.assign(...))`): a
schedule may read the step before that, or after. It reads first in programs that are compared.
"""

from tracing import ancestors

_STORED = ("VariableV2", "Variable")
_PASSING = ("Identity", "Enter", "Switch")
_HANDLE = "VarHandleOp"
_CHANGING = ("Assign", "AssignAdd", "AssignSub", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")


def _tensor(gradient):
    return getattr(gradient, "values", gradient)


def _readers(operation):
    """The operations that read a variable where it is stored."""
    found, waiting = [], list(operation.outputs)
    while waiting:
        for consumer in waiting.pop().consumers():
            if consumer.type in _PASSING:
                waiting.extend(consumer.outputs[:1] if consumer.type != "Switch" else consumer.outputs)
            else:
                found.append(consumer)
    return found


def _of_which(graph, tensors):
    """For every operation a number whose bits say which of some tensors depend on it."""
    bits = {}
    for place, tensor in enumerate(tensors):
        bits[tensor.op] = bits.get(tensor.op, 0) | 1 << place
    # Operations come after what they depend on, but for those of loops, which come round.
    for operation in reversed(graph.get_operations()):
        own = bits.get(operation, 0)
        if own:
            for before in [tensor.op for tensor in operation.inputs] + list(operation.control_inputs):
                bits[before] = bits.get(before, 0) | own
    return bits


def racing(pairs):
    """The names of the variables that an update may change before a gradient of another variable has read them."""
    pairs = [(_tensor(gradient), variable) for gradient, variable in pairs if gradient is not None]
    if len(pairs) < 2 or not all(hasattr(gradient, "graph") for gradient, _ in pairs):
        return []
    graph = pairs[0][0].graph
    operations = [getattr(variable, "op", None) for _, variable in pairs]
    if not any(getattr(one, "type", None) in _STORED for one in operations):
        return []
    bits = _of_which(graph, [gradient for gradient, _ in pairs])
    found = []
    for place, operation in enumerate(operations):
        if operation is None or operation.type not in _STORED or operation.graph is not graph:
            continue
        read = [bits.get(reader, 0) for reader in _readers(operation)]
        if any(depending and not depending >> place & 1 for depending in read):
            found.append(operation.name)
    return found


def gated(tf, pairs):
    """The same gradients, none of which is ready before all are."""
    return list(zip(tf.tuple([gradient for gradient, _ in pairs]), [variable for _, variable in pairs]))


def count_last(train_op, step):
    """Lets what a training reads of its step come before the step is changed, where nothing else does; returns whether
    there was such a thing.
    """
    train, counter = getattr(train_op, "op", train_op), getattr(step, "op", None)
    kind, stored = getattr(counter, "type", None), getattr(counter, "outputs", None)
    # The step of a bridge is no operation of a graph: it is changed where its program says so.
    if not stored or kind not in (*_STORED, _HANDLE) or getattr(train, "graph", None) is not counter.graph:
        return False
    reached = ancestors([train])
    # Each read of a resource is an operation of its own: what a read gave stays, but the reads have no order.
    found = _readers(counter) if kind != _HANDLE else [one for tensor in stored for one in tensor.consumers()]
    readers = [one for one in dict.fromkeys(found) if one.name in reached and _is_plain(one)]
    raced = False
    for writer in [one for one in readers if one.type in _CHANGING and one.inputs[0].op is counter]:
        before = ancestors([writer])
        late = [one for one in readers if one.name not in before and writer.name not in ancestors([one])]
        late = [one for one in late if one.type not in _CHANGING]
        if late:
            writer._add_control_inputs(late)
            raced = True
    return raced


def _is_plain(operation):
    """Whether it stands in no branch and no loop: an edge to those cannot be drawn from outside."""
    return operation._get_control_flow_context() is None
