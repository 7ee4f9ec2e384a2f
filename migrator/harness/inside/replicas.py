"""Several replicas in one process: what each shows of a step, put together to what one device would have shown."""

# What a stand-in for another strategy bears as a mark.
STAND_IN = "_tf_migrate_stand_in"


def is_stand_in(strategy):
    """Whether a strategy stands in for one that this machine has no devices for."""
    return getattr(strategy, STAND_IN, False)


def local(strategy):
    """How many of a strategy's replicas this process has."""
    count = int(strategy.num_replicas_in_sync)
    several = getattr(strategy.extended, "_in_multi_worker_mode", None)  # TensorFlow 1.15 does not say
    if several is not None and not several():
        return count
    return max(1, count // max(1, int(getattr(strategy.extended, "_num_workers", 1))))


class Shown(object):
    """What a step of training shows, at tracing time.

    ``loss`` is what is minimised here, ``gradients`` are [(part, tensor)], summed over all replicas already, and
    ``activations`` are [(name, tensor)]. ``sizes`` says how many of the examples each of several replicas has.
    """

    def __init__(self, loss, rate, iteration, data, gradients, activations, sizes=None):
        self.loss = loss
        self.rate = rate
        self.iteration = iteration
        self.data = data
        self.gradients = gradients
        self.activations = activations
        self.sizes = sizes


def joined(tf, values):
    """What replicas have of one tensor as one: examples one after the other."""
    if len(values) == 1 or getattr(values[0], "shape", None) is None or values[0].shape.ndims == 0:
        return values[0]
    if isinstance(values[0], tf.SparseTensor):
        return tf.sparse.concat(0, values)
    return tf.concat(values, 0)


def sizes_of(tf, leaves):
    """How many examples each replica has, from what they have of every tensor of a batch; None where none has any."""
    for values in leaves:
        dense = all(isinstance(value, tf.Tensor) and value.shape.ndims != 0 for value in values)
        if len(values) > 1 and dense:
            return tf.stack([tf.shape(value, out_type=tf.int64)[0] for value in values])
    return None


def together(tf, shown, write):
    """Calls ``write`` once, with what all replicas of this process show: each calls this at the same place."""
    leaves = tf.nest.flatten(shown.data)

    def merge(strategy, given):
        def every(value):
            return strategy.experimental_local_results(value)

        write(
            Shown(
                loss=None if shown.loss is None else tf.add_n(list(every(given["loss"]))),
                rate=None if shown.rate is None else every(given["rate"])[0],
                iteration=None if shown.iteration is None else every(given["iteration"])[0],
                data=tf.nest.pack_sequence_as(shown.data, [joined(tf, every(leaf)) for leaf in given["data"]]),
                gradients=[(part, every(g)[0]) for (part, _), g in zip(shown.gradients, given["gradients"])],
                activations=[
                    (name, joined(tf, every(a))) for (name, _), a in zip(shown.activations, given["activations"])
                ],
                sizes=sizes_of(tf, [every(leaf) for leaf in given["data"]]),
            )
        )

    given = {
        "loss": shown.loss,
        "rate": shown.rate,
        "iteration": shown.iteration,
        "data": leaves,
        "gradients": [gradient for _, gradient in shown.gradients],
        "activations": [tensor for _, tensor in shown.activations],
    }
    tf.distribute.get_replica_context().merge_call(merge, args=(given,))


def spec_of_one(tf, dataset):
    """What an element of a dataset is for one replica: a distributed one describes all local ones, which are alike."""
    return tf.nest.map_structure(lambda spec: getattr(spec, "_value_specs", (spec,))[0], dataset.element_spec)
