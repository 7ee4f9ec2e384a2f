"""How far rounding alone moves the metrics of an evaluation: the same one again, its weights moved by one ulp."""

import halves
import parts
from capture import components

#: Evaluations of a run that are repeated, and how often each: metrics of later ones are rounded as theirs are.
EVALUATIONS, TIMES = 2, 2


class Nudging(object):
    """Counts the evaluations of one process that were repeated."""

    def __init__(self, plan):
        self.left = EVALUATIONS if plan.get("evaluation_noise") else 0

    def results(self, evaluate):
        """[metrics] of `evaluate(seed)`, for the evaluations that are to be repeated; else nothing."""
        if self.left <= 0:
            return []
        self.left -= 1
        found = [parts.numbers(evaluate(seed)) for seed in range(1, TIMES + 1)]
        return [{name: value for name, value in one.items() if name != "global_step"} for one in found]


def make_hook(tf, seed):
    """A hook that moves every float variable of a new session to a neighbouring number."""

    class Nudge(tf.train.SessionRunHook):
        batches = 0

        def after_run(self, context, values):
            self.batches += 1

        def after_create_session(self, session, coord):
            # Those of all replicas, one by one: what reads or sets all at once would be new in the graph.
            variables = [components(one) for one in tf.global_variables() if one.dtype.is_floating]
            values = dict(zip([one[0].name for one in variables], session.run([one[0] for one in variables])))
            half = halves.coarsest(halves.formats(session.graph))
            moved = parts.moved_one_ulp(values, seed, halves.DIGITS.get(half))
            every = [(copy, one[0].name) for one in variables for copy in one]
            assignments = [parts.first_assignment(copy) for copy, _ in every]
            feed = {given: moved[name] for (_, given), (_, name) in zip(assignments, every)}
            session.run([operation for operation, _ in assignments], feed)

    return Nudge()


def again(tf, run, estimator, checkpoint_path, scaffold, update_op, eval_dict, all_hooks, folder, seed):
    """The results of `Estimator._evaluate_run` with moved weights; hooks of the program's own are not called again.

    Nothing where the data can be read only once, as those of `numpy_input_fn`: of no batch every metric is zero.
    """
    graph = tf.get_default_graph()
    own = [hook for hook in all_hooks or [] if type(hook).__module__.startswith("tensorflow")]
    graph._unsafe_unfinalize()  # a second evaluation counts its batches by an operation of its own
    try:
        hook = make_hook(tf, seed)
        results = run(estimator, checkpoint_path, scaffold, update_op, eval_dict, [hook, *own], folder)
        return results if hook.batches else {}
    finally:
        graph.finalize()
