"""Rules about code beside the training program. The code is in program/beside.py and emit/beside.py."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

#: The code of what stands around a model_fn and only tells something.
AROUND = "TFM116"
RULES = (
    Rule(
        AROUND,
        "code around a model_fn that only reports something",
        Severity.REVIEW,
        """
A timer (`with timed("model"):`), a decorator that prints or logs, and a `try` whose handlers print and raise again, or
whose `finally` prints, change nothing of what a model_fn builds. The new program builds its model once, at another
time, and has none of them. Errors come through as they are. So they do where a `try` around the rest of a model_fn only
printed them: an Estimator fails in any case, as it gets no EstimatorSpec.
""",
    ),
    Rule(
        "TFM117",
        "a constant decides whether there is a value",
        Severity.REVIEW,
        """
`penalty = f(x) if PENALIZED else None`, with `PENALIZED = True` in the file: the new program has the value without the
question, since a Keras model is written for what there is. The constant decides nothing there any more; the original
with another value of it would become another program.
""",
    ),
    Rule(
        "TFM118",
        "a test in TensorFlow 1 code",
        Severity.REVIEW,
        """
A test method (`test...` of a `TestCase`) in a file of the program has nothing to do with the Estimator, and holds
TensorFlow 1 code that would block the program: a session that looks at what an input function gives, say. It is left as
it is, with its symbols spelled for TensorFlow 2, and will fail there until somebody rewrites it: a dataset is iterated
(`next(iter(dataset))`), and its tensors have `numpy()`. Tests that train or evaluate the program are migrated with it.
""",
    ),
    Rule(
        "TFM124",
        "a setting that never had an effect",
        Severity.REVIEW,
        """
A RunConfig that is made, but given to no Estimator, and `config.replace(...)` as a line of its own, whose result (a new
RunConfig) nobody takes: the program ran without these settings, and goes on without. If they were meant to count, give
the RunConfig to the Estimator (`config = config.replace(...)`) and migrate again. In programs without sessions also
`tf.reset_default_graph()` and `tf.summary.FileWriterCache.clear()`: an Estimator creates its own graph each time. A
session in which nothing is run (`sess = tf.InteractiveSession()`) goes as well: an Estimator makes its own. So do `with
tf.Session():`, `with tf.device(...):` and `with tf.Graph().as_default():` around what drives an Estimator and does
nothing else with TensorFlow: none of them counts in the graphs that an Estimator makes. So does an optimizer of a
function that nothing trains with: an Estimator that is not given it takes its own. And so does an Estimator of a
function that is made and not used, where the file has another one.
""",
    ),
    Rule(
        "TFM125",
        "code about the functions of dropped hooks",
        Severity.REVIEW,
        """
A function that makes hooks is left out with these (TFM141). Where a dict gives such functions their names, and other
code reads these names (the help text of a flag, say), the dict becomes a tuple of them. A test of the function has
nothing to test any more and fails: remove it.
""",
    ),
    Rule(
        "TFM171",
        "TensorFlow 1 code that the program does not run",
        Severity.REVIEW,
        """
A function or a class of the program's files that nothing in the given files names (a helper that is not used any more,
an older form of one that is) holds TensorFlow 1 code that would block the program. It is left as it is, with its
symbols spelled so that they mean the same in TensorFlow 2: `tf.compat.v1.get_variable` for `tf.get_variable`. Such code
needs a graph (`with tf.Graph().as_default():`) when it is run there. Remove it if nobody needs it.
""",
    ),
    Rule(
        "TFM172",
        "code that the program does not run, and that TensorFlow 2 cannot run",
        Severity.REVIEW,
        """
As TFM171, but the named symbol does not exist in TensorFlow 2.21, not even in `tf.compat.v1`: `tf.contrib`, or a module
inside TensorFlow. Nothing in the given files names the function, so that the program does not need it; whoever calls it
under TensorFlow 2 gets an AttributeError. Remove it, or replace the symbol.
""",
    ),
    Rule(
        "TFM187",
        "a function that runs its own graph in a session",
        Severity.REVIEW,
        """
The function has nothing to do with the training: it makes a `tf.Graph`, reads a frozen graph into it and runs that in a
session (a benchmark, say). TensorFlow 2 runs such code as it is, under the names of `tf.compat.v1`, also where eager
execution is on, because the graph is named. So it stays. It goes on with the frozen graphs of TensorFlow 1; the new
program writes none.
""",
    ),
)
