"""The bridge: programs whose code stays as it is, and runs on Keras and tf.distribute through a support file."""

from __future__ import annotations

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM155",
        "the program became a bridge",
        Severity.REVIEW,
        """
The native form, a Keras model of Keras layers, was blocked by the lines that this finding names (or `--style bridge`
was asked for). So the program keeps its code: only names change. `import tensorflow as tf` becomes
`import tensorflow.compat.v1 as tf`, and what TensorFlow 2.21 has no more is taken from a file that is written beside
the program, `keras_estimator.py`: the Estimator, its specs and configuration, on `tf.keras.Model` and `tf.distribute`.
That file holds just the classes that the project uses. It belongs to the project, and imports nothing but TensorFlow.
In a program from standard input it is a section at the top: a function that makes the object `keras_estimator`.

The model_fn runs as TensorFlow 1 code. Variables keep their names, so old checkpoints go on. The file has to be
imported before TensorFlow, for it chooses Keras 2 (`tf_keras` from TensorFlow 2.16 on).

`--style native` refuses such programs instead.
""",
    ),
    Rule(
        "TFM156",
        "a removed symbol without a replacement",
        Severity.MANUAL,
        """
TensorFlow 2.21 has the named symbol neither in `tf` nor in `tf.compat.v1`, and the support file of the bridge (see
TFM155) has nothing to take its place. Every such line of a program is named at once. Replace each by hand, and run
tf-migrate again.
""",
    ),
    Rule(
        "TFM180",
        "a removed symbol in code that may not run",
        Severity.REVIEW,
        """
The named symbol is gone (TFM156), or needs TensorFlow 1 (TFM157), but the program is not known to come to it: a
condition decides, or nothing calls the function. The program goes, and the line stays as it was. If the program comes
there, Python raises an error that names the symbol; nothing else is computed in its place. Replace the line by hand
where it is needed.

Where the program comes to the symbol whatever happens, or where a `try` would catch the error, it is blocked.
""",
    ),
    Rule(
        "TFM157",
        "a library that needs TensorFlow 1",
        Severity.MANUAL,
        """
The program imports a library, or calls a function of one, that runs on TensorFlow 1 only. The finding says what to use
instead.
""",
    ),
    Rule(
        "TFM158",
        "a session that the program creates",
        Severity.REVIEW,
        """
In TensorFlow 1 all code builds one default graph. In TensorFlow 2 operations run at once, but in model functions and
input functions, which the support file of the bridge (see TFM155) calls in a graph of their own. So a function that
makes a session is decorated with `in_default_graph`. Where what needs a graph (`tf.placeholder`, `tf.Session`,
`tf.summary.FileWriter`, `tf.feature_column.shared_embedding_columns`) stands at the top level, or in functions that use
Estimators, too, the support file puts all of the program into the default graph (`build_in_default_graph`), which
Estimators leave. In programs that turn eager execution on, or hand a Keras model over, that is not done: put the lines
that the finding names into `with tf.get_default_graph().as_default():`.

The finding also names files that stay TensorFlow 1 code, because something in them has no successor, and import one
that is bridged.
""",
    ),
    Rule(
        "TFM159",
        "the support file has other definitions",
        Severity.MANUAL,
        """
An earlier run wrote `keras_estimator.py` for other programs of this project. This program needs classes that it has
not, and they need definitions that the file has in another form, because somebody changed them or another version of
tf-migrate wrote them. Move the file away and run tf-migrate again: the new file has what the programs that were
migrated before use of it, too. Then merge your changes into it. What you changed elsewhere in the file is not in the
way.
""",
    ),
    Rule(
        "TFM167",
        "the program needs tf_slim",
        Severity.REVIEW,
        """
`tf.contrib.slim`, and most of `tf.contrib.layers` and `tf.contrib.framework`, live on in a package of their own:
`pip install tf_slim`. Its functions are those of TensorFlow 1, with the same names of variables.
""",
    ),
    Rule(
        "TFM168",
        "a switch that is dropped",
        Severity.REVIEW,
        """
The program turned eager execution off (`tf.disable_v2_behavior()`, say). The support file of the bridge runs on
`tf.distribute`, which needs it, and builds the graphs of the model_fn itself: the call is left out.
""",
    ),
    Rule(
        "TFM169",
        "a model that is not built",
        Severity.MANUAL,
        """
`tf-migrate --try` runs every bridged program in a copy of its project, in the environment of migrated programs. Its
Estimators do not train there: each builds its model, on the data's own types and shapes, in every mode that the program
uses. A program that keeps its sessions (TFM199) runs until one of them has taken a step of the training. This one was
not built, and its program was left as it was. The finding has the error and the line.
""",
    ),
    Rule(
        "TFM177",
        "an untested program",
        Severity.REVIEW,
        """
`tf-migrate --try` (see TFM169) could not run this program up to its models: it wants arguments or data that are not
here, or it ends before. The finding says which, and stands at the line that asked. The program was migrated, but no
model was built. Put the data there (a few rows like them will do) and try again.

A program that wants something that is not there runs once more on stand-ins: the data sets of Keras and MNIST by their
shapes, files of a few numbers, tables with the columns that are asked of them, arguments, weights that are not loaded.
Where that builds the models the finding says so. It says nothing where it does not: the fault may be the stand-in's.
""",
    ),
    Rule(
        "TFM179",
        "a program that cannot be tested here",
        Severity.REVIEW,
        """
`tf-migrate --try` (see TFM169) could not run this program up to its models: it calls a package that could not be
installed, or reads from a network, and stand-ins did not do instead. The program was migrated, but no model was built.

Well-known packages (pandas, scikit-learn, OpenCV, ...) and those that `requirements.txt` names are installed beside
TensorFlow for the trial, in their present versions. A package that is only imported need not be there.
""",
    ),
    Rule(
        "TFM184",
        "gradients that depend on another update",
        Severity.REVIEW,
        """
The generator of a GAN is often trained after its discriminator, in the same step:

    with tf.control_dependencies([discriminator_op]):
      generator_op = optimizer.minimize(generator_loss, var_list=generator_variables)

Here the loss is computed before `discriminator_op` changes variables, and its gradients after it. Variables of
TensorFlow 1 are references (unless `tf.enable_resource_variables()` or `use_resource=True` makes them resources), so
the way back reads the changed weights, and the way forward read the others. Variables of TensorFlow 2 are resources:
both read the weights from before the update, as without the control dependency. The weights differ after the first
step. To train on changed weights, compute the loss inside the block: TensorFlow 2 uses them both ways then.

The same holds without the control dependency where one optimizer changes weights that another one's gradients pass
through, and for optimizers that change weights before they have gradients (`tf.contrib.opt.AdamWOptimizer`): what
TensorFlow 1 reads there depends on which operation comes first. No finding is given for these. `tf-migrate verify`
shows how far the numbers are apart; put `tf.enable_resource_variables()` at the top of the original to see whether this
is why.
""",
    ),
    Rule(
        "TFM149",
        "a graph written by TensorFlow 1 Estimators",
        Severity.REVIEW,
        """
Beside each checkpoint an Estimator of TensorFlow 1 wrote its graph, `model.ckpt-100.meta`, and `graph.pbtxt` once. A
bridge (TFM155) writes the checkpoint alone: its model is no such graph. What reads one with
`tf.train.import_meta_graph` (to freeze the graph, say, or to look at weights) finds no file. Variables have their old
names, so a `.meta` file that the program wrote on TensorFlow 1 goes with the new checkpoints, as long as the model_fn
is the same. Else build the graph where it is read: placeholders for the features, a call of the model_fn with the
mode "infer", and `tf.train.Saver().restore` of the checkpoint. Weights alone come from `tf.train.load_checkpoint`, a
frozen graph also from what `export_saved_model` writes.
""",
    ),
    Rule(
        "TFM185",
        "a TensorFlow 1 file that no program here imports",
        Severity.REVIEW,
        """
Nothing that was given makes an Estimator or a session and imports this file: the program may be elsewhere, find the
file by its name (`importlib.import_module(f"models.{name}")`), or be a test. The file's names are those of
`tf.compat.v1` now, as they are in a bridged program (TFM155, TFM199), and where TensorFlow 2.21 lacks something, the
support file has it. Its functions build a graph as they did. Programs that tf-migrate bridged see to that; another one
has to call `tf.compat.v1.disable_v2_behavior()` before them, and to run with `TF_USE_LEGACY_KERAS=1` where they use
`tf.compat.v1.layers`. Names that mean the same with and without a graph (`tf.gfile`, `tf.python_io`, `tf.to_float`) are
renamed automatically (TFM272), and are no reason for this finding.
""",
    ),
    Rule(
        "TFM277",
        "standalone Keras in a program that keeps its sessions",
        Severity.REVIEW,
        """
`import keras` was Keras 2 beside TensorFlow 1, and its layers were operations of TensorFlow's graph. Beside TensorFlow
2.21 it is Keras 3, which has no graphs and no sessions. So the names that a program of sessions (TFM199) imports from
it are those of `tf.compat.v1.keras`, which is Keras 2 where `tf_keras` is installed; modules inside of Keras
(`keras.layers.core`, `keras.utils.np_utils`, `keras.engine.topology`) are the public ones that hold the same names.
What is not there blocks the program (TFM157).

Defaults are those of Keras 2.2: the recurrent activation of `LSTM` and `GRU` is `hard_sigmoid`, as in all versions
before 2.3. A program that was written for Keras 2.3 says `recurrent_activation="sigmoid"` to train as it did.
""",
    ),
    Rule(
        "TFM148",
        "a session that shares a file with an Estimator",
        Severity.MANUAL,
        """
A program that keeps its sessions (TFM199) may share files with one that has an Estimator. Where that one is a bridge,
the names in such a file are those of `tf.compat.v1`, which mean the same in both. Where it is native, what the session
takes of the file must mean what it did: a function that gave tensors of an iterator and gives a dataset now is no use
to a session. Then the session stays as it is. Give each program its own file, or migrate all with `--style bridge`.
""",
    ),
    Rule(
        "TFM199",
        "a program that keeps its sessions, or its eager code",
        Severity.REVIEW,
        """
A program that trains, or computes, in its own sessions and has no Estimator comes out natively where its loop is
supported (TFM732, TFM733, TFM760). Where it is not, the program keeps its graph and its sessions, which TensorFlow 2.21
still has: `import tensorflow as tf` becomes `import tensorflow.compat.v1 as tf` and `tf.disable_v2_behavior()`, which
every file of the program says, so that code builds one default graph, as it did. Only what `tf.compat.v1` has not
(tf.contrib, say), or has from Keras 2 (tf.layers, the cells of recurrent networks), comes from `keras_estimator.py`
beside the program, see TFM155. Variables, checkpoints, servers and queues are those of TensorFlow 1. Files that a
program with an Estimator uses, too, do not turn TensorFlow 2 off; those of the session do that for both (TFM148).

A program of TensorFlow 1 that calls `tf.enable_eager_execution()` and has no session stays eager: its files say
`tf.disable_tensor_equality()` and `tf.disable_v2_tensorshape()` instead, and `tf.contrib.eager` is what TensorFlow 2.21
has of it, or `keras_estimator.py`.

Such a program runs on TensorFlow 2.21, and is no program of TensorFlow 2: no strategy of tf.distribute, no Keras
model, nothing eager. Operations that draw random numbers have their seeds from their place in the graph, which may
differ from that in TensorFlow 1 where layers make more or fewer operations: then the first weights are others. NumPy
2.4 does not take an array of one element for a number any more (`float(loss)`, `"%f" % loss` where the loss has the
shape (1, 1)): write `loss.item()`, or install an older one (`numpy<2.4`). `tf-migrate verify` compares its training
with the original's, from the same weights on the same batches.
""",
    ),
)
