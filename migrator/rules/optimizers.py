"""TensorFlow 1 optimizers to Keras ones, with every default that changed written out.

Where the Keras optimizer computes something else, the file gets a small subclass that computes what TensorFlow 1 did.
All figures: 100 steps against TensorFlow 1.15.5, largest relative difference of a loss and of a weight.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from migrator.findings import Severity
from migrator.names.bare import bare
from migrator.program.calls import is_false, number, string
from migrator.program.parsed import Blocked
from migrator.rules.rule import Example, Rule
from migrator.rules.site import CallRule, Site, call_text, expression, keyword

RULES = (
    Rule(
        "TFM431",
        "Keras' Adagrad by name",
        Severity.REVIEW,
        """
`compile("adagrad")` and `tf.keras.optimizers.get("adagrad")` start the accumulators at 0.0 in TensorFlow 1.15, at 0.1
since 2.0 and wherever the class itself is called (measured on 1.15.5 and 2.15.1). The new program does as 1.15 did; a
program that was written for TensorFlow 2, as `verify` runs it, trains otherwise: take
`tf.keras.optimizers.legacy.Adagrad()` there.
""",
    ),
    Rule(
        "TFM401",
        "optimizers become Keras optimizers",
        Severity.MANUAL,
        """
Supported: GradientDescent, Momentum, Adagrad, Adam, RMSProp, Adadelta, Ftrl, ProximalGradientDescent, ProximalAdagrad,
AdagradDA, and LazyAdam, Nadam and AdaMax of `tf.contrib.opt`. All numbers are written out, because the defaults
changed: Adam's epsilon was 1e-8 and is 1e-7 in Keras (1.1 % in the weights after 100 steps, measured), Adagrad had no
epsilon at all. With them the weights agree to 3e-6 after 250 steps, most to the last bit.

On Keras 2 these are the optimizers of `tf.keras.optimizers.legacy`, which update a variable by the one operation that
TensorFlow 1 has for it, and rows of embeddings as it did. Those without `legacy` need several operations: 8.8
milliseconds of CPU for Adam on a million weights, where TensorFlow 1 took 2.0 and the legacy one takes 2.7 (see
[how fast the new program is](../speed.md)). `legacy.Adagrad` takes 0.0 for Keras' default epsilon, so it is given one
that adds nothing. They have no `weight_decay`, `use_ema` or `jit_compile`; where you want one of these, take `legacy`
out. A mesh (DTensor), central storage, embeddings on a TPU, moving averages of the weights and `--keras 3` get the
newer classes.

Unsupported: custom optimizers, AdamW and MomentumW (in TensorFlow 1 the decay and the gradients race: two runs of one
program differ by 3e-4), LARS, MovingAverageOptimizer and everything that wraps another optimizer.
""",
        (
            Example("tf.train.GradientDescentOptimizer(0.1)", "tf.keras.optimizers.legacy.SGD(learning_rate=0.1)"),
            Example(
                "tf.train.MomentumOptimizer(0.1, 0.9)",
                "tf.keras.optimizers.legacy.SGD(learning_rate=0.1, momentum=0.9)",
            ),
            Example(
                "tf.train.AdagradOptimizer(0.05)",
                "tf.keras.optimizers.legacy.Adagrad(learning_rate=0.05, initial_accumulator_value=0.1, epsilon=1e-30)",
            ),
            Example(
                "tf.train.AdamOptimizer(learning_rate=rate, epsilon=1e-4)",
                "tf.keras.optimizers.legacy.Adam(learning_rate=rate, beta_1=0.9, beta_2=0.999, epsilon=1e-4)",
            ),
            Example(
                "tf.train.AdadeltaOptimizer(0.5)",
                "tf.keras.optimizers.legacy.Adadelta(learning_rate=0.5, rho=0.95, epsilon=1e-08)",
            ),
            Example(
                "tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01)",
                "tf.keras.optimizers.legacy.Ftrl(learning_rate=0.1, l1_regularization_strength=0.01)",
            ),
            Example("tf.contrib.opt.AdamWOptimizer(0.01, 0.1)", None),
            Example(
                'tf.python.estimator.canned.optimizers.get_optimizer_instance("SGD", 0.1)',
                "tf.keras.optimizers.legacy.SGD(learning_rate=0.1)",
            ),
        ),
    ),
    Rule(
        "TFM403",
        "the train_op is not a plain minimize",
        Severity.MANUAL,
        """
`optimizer.minimize(loss, global_step=tf.train.get_global_step())` is what `Model.fit` does by itself. Understood are
also `compute_gradients` or `tf.gradients` with `apply_gradients`, clipping of the gradients between them, `tf.group`
and control dependencies on the update operations of batch normalization, moving averages of the weights (see TFM412).
Unsupported are gradients that are changed in
other ways, several optimizers (TFM415) and gradient accumulation (TFM417): the bridge keeps them.
""",
    ),
    Rule(
        "TFM410",
        "an optimizer that Keras lacks",
        Severity.REVIEW,
        """
The file gets a subclass of a few lines that computes what the TensorFlow 1 optimizer did. Measured after 100 steps, the
Keras optimizer differs from TensorFlow 1 by (loss / weights):

- RMSProp, whose mean square starts at one in TensorFlow 1 and at zero in Keras: 31 % / 75 %, with momentum 110 % /
  220 %;
- Momentum with a changing learning rate, because Keras stores learning rate times gradient: 13 % / 43 %;
- LazyAdam with embeddings, whose rows it leaves alone when a batch does not use them: 0.3 % / 9 %;
- ProximalGradientDescent against SGD 9 %, ProximalAdagrad against Adagrad 11 %, AdagradDA against Adagrad 31 %, Nadam
  9 % / 21 % (loss);
- gradients clipped on several replicas, where TensorFlow 1 clips those of each and Keras their sum: 15 % / 28 %;
- with embeddings, where `legacy` is not written (see TFM401) and the newer classes move all rows: Momentum 0.02 % /
  0.3 %, RMSProp 0.1 % / 2 %, Ftrl 0.06 % / 100 % (unused rows become zero in the first step), Adadelta 0.003 % / 0.1 %.

The subclass differs by less than 3e-7 / 3e-6. Where these numbers need not stay the same, take the stock class.
""",
        (
            Example(
                "tf.train.RMSPropOptimizer(0.001, momentum=0.9)",
                "RMSPropOptimizer(learning_rate=0.001, rho=0.9, momentum=0.9, epsilon=1e-10)",
            ),
            Example(
                "tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.01)",
                "ProximalAdagradOptimizer(learning_rate=0.1, initial_accumulator_value=0.1, "
                "l1_regularization_strength=0.01, epsilon=0.0)",
            ),
        ),
    ),
)

_SLOT = "self._index_dict[self._var_key(variable)]"

#: Classes that a file gets, with `{name}` where the name goes.
MOMENTUM = '''\
class {name}(tf.keras.optimizers.SGD):
    """Momentum of TensorFlow 1: the rate of a step scales the gradients of all steps before it, too."""

    def update_step(self, gradient, variable):
        rate = tf.cast(self.learning_rate, variable.dtype)
        accumulator = self.momentums[self._index_dict[self._var_key(variable)]]
        accumulator.assign(self.momentum * accumulator + gradient)
        if self.nesterov:
            variable.assign_sub(rate * (gradient + self.momentum * accumulator))
        else:
            variable.assign_sub(rate * accumulator)
'''

_SPARSE_MOMENTUM = '''\
class {name}(tf.keras.optimizers.SGD):
    """Momentum of TensorFlow 1: rows of an embedding that a batch does not use stay as they are."""

    def update_step(self, gradient, variable):
        accumulator = self.momentums[self._index_dict[self._var_key(variable)]]
        arguments = dict(
            var=variable.handle,
            accum=accumulator.handle,
            lr=tf.cast(self.learning_rate, variable.dtype),
            momentum=tf.cast(self.momentum, variable.dtype),
            use_nesterov=self.nesterov,
        )
        if isinstance(gradient, tf.IndexedSlices):
            tf.raw_ops.ResourceSparseApplyMomentum(grad=gradient.values, indices=gradient.indices, **arguments)
        else:
            tf.raw_ops.ResourceApplyMomentum(grad=gradient, **arguments)
'''

RMSPROP = '''\
class {name}(tf.keras.optimizers.RMSprop):
    """RMSProp of TensorFlow 1: the mean square of the gradients starts at one, not at zero."""

    def add_variable_from_reference(self, model_variable, variable_name, shape=None, initial_value=None):
        if variable_name == "velocity":
            initial_value = tf.ones(model_variable.shape, model_variable.dtype)
        return super().add_variable_from_reference(model_variable, variable_name, shape, initial_value)
'''

_SPARSE_RMSPROP = (
    RMSPROP.replace(
        "starts at one, not at zero.",
        "starts at one, and rows of an embedding\n    that a batch does not use stay as they are.\n    ",
    )
    + """\

    def update_step(self, gradient, variable):
        if not isinstance(gradient, tf.IndexedSlices):
            return super().update_step(gradient, variable)
        index, rows = self._index_dict[self._var_key(variable)], gradient.indices
        velocity = self.rho * tf.gather(self._velocities[index], rows) + (1 - self.rho) * gradient.values**2
        self._velocities[index].scatter_update(tf.IndexedSlices(velocity, rows))
        if self.centered:
            average = self._average_gradients[index]
            mean = self.rho * tf.gather(average, rows) + (1 - self.rho) * gradient.values
            average.scatter_update(tf.IndexedSlices(mean, rows))
            velocity -= mean**2
        rate = tf.cast(self.learning_rate, variable.dtype)
        step = rate * gradient.values * tf.math.rsqrt(velocity + self.epsilon)
        if self.momentum > 0:
            step += self.momentum * tf.gather(self._momentums[index], rows)
            self._momentums[index].scatter_update(tf.IndexedSlices(step, rows))
        variable.scatter_sub(tf.IndexedSlices(step, rows))
"""
)

_SPARSE_FTRL = '''\
class {name}(tf.keras.optimizers.Ftrl):
    """Ftrl of TensorFlow 1: rows of an embedding that a batch does not use stay as they are."""

    def update_step(self, gradient, variable):
        if not isinstance(gradient, tf.IndexedSlices):
            return super().update_step(gradient, variable)
        index = self._index_dict[self._var_key(variable)]
        tf.raw_ops.ResourceSparseApplyFtrlV2(
            var=variable.handle,
            accum=self._accumulators[index].handle,
            linear=self._linears[index].handle,
            grad=gradient.values,
            indices=gradient.indices,
            lr=tf.cast(self.learning_rate, variable.dtype),
            l1=tf.cast(self.l1_regularization_strength, variable.dtype),
            l2=tf.cast(self.l2_regularization_strength, variable.dtype),
            l2_shrinkage=tf.cast(self.l2_shrinkage_regularization_strength, variable.dtype),
            lr_power=tf.cast(self.learning_rate_power, variable.dtype),
        )
'''

_SPARSE_ADADELTA = '''\
class {name}(tf.keras.optimizers.Adadelta):
    """Adadelta of TensorFlow 1: rows of an embedding that a batch does not use stay as they are."""

    def update_step(self, gradient, variable):
        if not isinstance(gradient, tf.IndexedSlices):
            return super().update_step(gradient, variable)
        index = self._index_dict[self._var_key(variable)]
        tf.raw_ops.ResourceSparseApplyAdadelta(
            var=variable.handle,
            accum=self._accumulated_grads[index].handle,
            accum_update=self._accumulated_delta_vars[index].handle,
            lr=tf.cast(self.learning_rate, variable.dtype),
            rho=tf.cast(self.rho, variable.dtype),
            epsilon=tf.cast(self.epsilon, variable.dtype),
            grad=gradient.values,
            indices=gradient.indices,
        )
'''

_LAZY_ADAM = '''\
class {name}(tf.keras.optimizers.Adam):
    """LazyAdam of TensorFlow 1: rows of an embedding that a batch does not use stay as they are."""

    def update_step(self, gradient, variable):
        if not isinstance(gradient, tf.IndexedSlices):
            return super().update_step(gradient, variable)
        index, rows = self._index_dict[self._var_key(variable)], gradient.indices
        step = tf.cast(self.iterations + 1, variable.dtype)
        rate = tf.cast(self.learning_rate, variable.dtype)
        rate = rate * tf.sqrt(1 - self.beta_2**step) / (1 - self.beta_1**step)
        mean = self.beta_1 * tf.gather(self._momentums[index], rows) + (1 - self.beta_1) * gradient.values
        square = self.beta_2 * tf.gather(self._velocities[index], rows) + (1 - self.beta_2) * gradient.values**2
        self._momentums[index].scatter_update(tf.IndexedSlices(mean, rows))
        self._velocities[index].scatter_update(tf.IndexedSlices(square, rows))
        variable.scatter_sub(tf.IndexedSlices(rate * mean / (tf.sqrt(square) + self.epsilon), rows))
'''

_NADAM = '''\
class {name}(tf.keras.optimizers.Adam):
    """Nadam of TensorFlow 1, which has no schedule of the momentum."""

    def update_step(self, gradient, variable):
        gradient = tf.convert_to_tensor(gradient)
        index = self._index_dict[self._var_key(variable)]
        step = tf.cast(self.iterations + 1, variable.dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].handle,
            v=self._velocities[index].handle,
            beta1_power=tf.cast(self.beta_1, variable.dtype) ** step,
            beta2_power=tf.cast(self.beta_2, variable.dtype) ** step,
            lr=tf.cast(self.learning_rate, variable.dtype),
            beta1=tf.cast(self.beta_1, variable.dtype),
            beta2=tf.cast(self.beta_2, variable.dtype),
            epsilon=tf.cast(self.epsilon, variable.dtype),
            grad=gradient,
            use_nesterov=True,
        )
'''

_REGULARIZED = """\
    def __init__(self, *args, l1_regularization_strength=0.0, l2_regularization_strength=0.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
"""

_PROXIMAL_SGD = (
    '''\
class {name}(tf.keras.optimizers.SGD):
    """Proximal gradient descent of TensorFlow 1: plain descent, then shrinkage by l1 and l2."""

'''
    + _REGULARIZED
    + """\

    def update_step(self, gradient, variable):
        arguments = dict(
            var=variable.handle,
            alpha=tf.cast(self.learning_rate, variable.dtype),
            l1=tf.cast(self.l1_regularization_strength, variable.dtype),
            l2=tf.cast(self.l2_regularization_strength, variable.dtype),
        )
        if isinstance(gradient, tf.IndexedSlices):
            tf.raw_ops.ResourceSparseApplyProximalGradientDescent(
                grad=gradient.values, indices=gradient.indices, **arguments
            )
        else:
            tf.raw_ops.ResourceApplyProximalGradientDescent(delta=gradient, **arguments)
"""
)

_PROXIMAL_ADAGRAD = (
    '''\
class {name}(tf.keras.optimizers.Adagrad):
    """Proximal Adagrad of TensorFlow 1: a step of Adagrad, then shrinkage by l1 and l2."""

'''
    + _REGULARIZED
    + """\

    def update_step(self, gradient, variable):
        arguments = dict(
            var=variable.handle,
            accum=self._accumulators[self._index_dict[self._var_key(variable)]].handle,
            lr=tf.cast(self.learning_rate, variable.dtype),
            l1=tf.cast(self.l1_regularization_strength, variable.dtype),
            l2=tf.cast(self.l2_regularization_strength, variable.dtype),
        )
        if isinstance(gradient, tf.IndexedSlices):
            tf.raw_ops.ResourceSparseApplyProximalAdagrad(
                grad=gradient.values, indices=gradient.indices, **arguments
            )
        else:
            tf.raw_ops.ResourceApplyProximalAdagrad(grad=gradient, **arguments)
"""
)

_ADAGRAD_DA = (
    '''\
class {name}(tf.keras.optimizers.Adagrad):
    """Adagrad with dual averaging of TensorFlow 1: variables follow the sum of all gradients."""

'''
    + _REGULARIZED
    + """\

    def build(self, var_list):
        built = getattr(self, "_built", False)
        super().build(var_list)
        if not built:
            self._sums = [self.add_variable_from_reference(variable, "gradient_accumulator") for variable in var_list]

    def update_step(self, gradient, variable):
        index = self._index_dict[self._var_key(variable)]
        tf.raw_ops.ResourceApplyAdagradDA(
            var=variable.handle,
            gradient_accumulator=self._sums[index].handle,
            gradient_squared_accumulator=self._accumulators[index].handle,
            grad=tf.convert_to_tensor(gradient),
            lr=tf.cast(self.learning_rate, variable.dtype),
            l1=tf.cast(self.l1_regularization_strength, variable.dtype),
            l2=tf.cast(self.l2_regularization_strength, variable.dtype),
            global_step=self.iterations + 1,
        )
"""
)

# Subclasses of the optimizers that Keras had before 2.11 (`tf.keras.optimizers.legacy`), which update a variable by the
# one operation that TensorFlow 1 has for it.
FUSED_MOMENTUM = '''\
class {name}(tf.keras.optimizers.legacy.SGD):
    """Momentum of TensorFlow 1: the rate of a step scales the gradients of all steps before it, too."""

    def _resource_apply_dense(self, grad, var, apply_state):
        return tf.raw_ops.ResourceApplyMomentum(grad=grad, **self._arguments(var, apply_state))

    def _resource_apply_sparse(self, grad, var, indices, apply_state):
        return tf.raw_ops.ResourceSparseApplyMomentum(grad=grad, indices=indices, **self._arguments(var, apply_state))

    def _arguments(self, var, apply_state):
        settings = apply_state[var.device, var.dtype.base_dtype]
        return dict(
            var=var.handle,
            accum=self.get_slot(var, "momentum").handle,
            lr=settings["lr_t"],
            momentum=settings["momentum"],
            use_nesterov=self.nesterov,
        )
'''

FUSED_RMSPROP = '''\
class {name}(tf.keras.optimizers.legacy.RMSprop):
    """RMSProp of TensorFlow 1: the mean square of the gradients starts at one, not at zero."""

    def _create_slots(self, var_list):
        for variable in var_list:
            self.add_slot(variable, "rms", "ones")
        self._momentum = True  # the operations of TensorFlow 1 want its slot, also where it stays zero
        super()._create_slots(var_list)
'''

_FUSED_LAZY_ADAM = '''\
class {name}(tf.keras.optimizers.legacy.Adam):
    """LazyAdam of TensorFlow 1: rows of an embedding that a batch does not use stay as they are."""

    def _resource_apply_sparse(self, grad, var, indices, apply_state):
        settings = apply_state[var.device, var.dtype.base_dtype]
        means, squares = self.get_slot(var, "m"), self.get_slot(var, "v")
        mean = settings["beta_1_t"] * tf.gather(means, indices) + settings["one_minus_beta_1_t"] * grad
        square = settings["beta_2_t"] * tf.gather(squares, indices) + settings["one_minus_beta_2_t"] * grad**2
        step = settings["lr"] * mean / (tf.sqrt(square) + settings["epsilon"])
        means.scatter_update(tf.IndexedSlices(mean, indices))
        squares.scatter_update(tf.IndexedSlices(square, indices))
        return var.scatter_sub(tf.IndexedSlices(step, indices))
'''

_FUSED_CLIPPED = '''\
class {name}(%s):
    """Clips the gradients of each replica before they are summed, as TensorFlow 1 did; Keras would clip the sum."""

    def _transform_unaggregated_gradients(self, grads_and_vars):
        return super()._transform_gradients(grads_and_vars)

    def _transform_gradients(self, grads_and_vars):
        return grads_and_vars
'''

_CLIPPED = '''\
class {name}(%s):
    """Clips the gradients of each replica before they are summed, as TensorFlow 1 did; Keras would clip the sum."""

    def aggregate_gradients(self, grads_and_vars):
        gradients, variables = zip(*grads_and_vars)
        return super().aggregate_gradients(zip(super()._clip_gradients(gradients), variables))

    def _clip_gradients(self, grads):
        return grads
'''


# What an optimizer's own update says otherwise on Keras 3.
_ON_KERAS_3 = (
    ("def update_step(self, gradient, variable):", "def update_step(self, gradient, variable, learning_rate):"),
    ("super().update_step(gradient, variable)", "super().update_step(gradient, variable, learning_rate)"),
    ("self.learning_rate,", "learning_rate,"),
    ("self._index_dict[self._var_key(variable)]", "self._get_variable_index(variable)"),
    ("].scatter_update(", "].value.scatter_update("),
    ("average.scatter_update(", "average.value.scatter_update("),
    (
        "def add_variable_from_reference(self, model_variable, variable_name, shape=None, initial_value=None):",
        'def add_variable_from_reference(self, reference_variable, name=None, initializer="zeros"):',
    ),
    ('if variable_name == "velocity":', 'if name == "velocity":'),
    ("initial_value = tf.ones(model_variable.shape, model_variable.dtype)", 'initializer = "ones"'),
    (
        "super().add_variable_from_reference(model_variable, variable_name, shape, initial_value)",
        "super().add_variable_from_reference(reference_variable, name, initializer)",
    ),
    ('built = getattr(self, "_built", False)', "built = self.built"),
    ("build(self, var_list)", "build(self, variables)"),
    ("build(var_list)", "build(variables)"),
    ("for variable in var_list", "for variable in variables"),
    ('"average", initial_value=variable)', '"average", tf.keras.initializers.Constant(variable))'),
)
_TRIED_ON_KERAS_3 = frozenset(
    (
        *(MOMENTUM, _SPARSE_MOMENTUM, RMSPROP, _SPARSE_RMSPROP, _SPARSE_FTRL, _SPARSE_ADADELTA, _LAZY_ADAM, _NADAM),
        *(_PROXIMAL_SGD, _PROXIMAL_ADAGRAD, _ADAGRAD_DA),
    )
)
_ADDED_UP = """\
    def _clip_gradients(self, grads):
        return [add_up_rows(gradient) for gradient in %s]
"""
_PLAIN = '''\
class {name}(tf.keras.optimizers.%s):
    """Adds up the gradients of rows of an embedding that a batch uses more than once, as TensorFlow 1 did."""

'''
ADD_UP_ROWS = '''\
def add_up_rows(gradient):
    """One gradient for each row of an embedding, however often a batch uses it."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)
'''
# Clipping that leaves sparse gradients sparse; norms are those of the gradients before rows are added up.
_CLIPPED_SPARSE = {
    "": "grads",
    "global_clipnorm": "tf.clip_by_global_norm(grads, self.global_clipnorm)[0]",
    "clipnorm": "[tf.clip_by_norm(one, self.clipnorm) for one in grads]",
    "clipvalue": "[tf.clip_by_value(one, -self.clipvalue, self.clipvalue) for one in grads]",
}


def _said_on_keras3(text: str) -> str:
    """The text of a subclass of a Keras optimizer in the words of Keras 3."""
    for old, new in _ON_KERAS_3:
        text = text.replace(old, new)
    return text


def _on_keras3(site: Site, keras: str, text: str | None) -> str | None:
    """The text of a helper class on Keras 3; None where the stock class does it. Raises Blocked (TFM870)."""
    context = site.training
    if text is not None:
        if text not in _TRIED_ON_KERAS_3:
            raise Blocked("TFM870", site.original, f"`{site.name}` is unsupported on Keras 3: leave `--keras 3` out")
        text = _said_on_keras3(text)
    stock = keras == "SGD" and text is None  # adds rows one by one, to the same sum
    if not context.sparse or context.keras.adds_rows or stock:
        return text
    kind = "".join(argument.partition("=")[0] for argument in context.arguments.get(site.original, ()))
    added = _ADDED_UP % _CLIPPED_SPARSE[kind]
    context.helpers["add_up_rows"] = ADD_UP_ROWS
    return (_PLAIN % keras) + added if text is None else f"{text}\n{added}"


@dataclass(frozen=True)
class _Fused:
    """See _Optimizer: the subclasses, and what is `fixed` otherwise."""

    helper: str | None = None
    sparse_helper: str | None = None
    scheduled_helper: str | None = None
    fixed: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Optimizer:
    """A TensorFlow 1 optimizer: its parameters in order, and what becomes of them.

    `helper` is the subclass that the file gets in place of the Keras class, always or (`sparse_helper`) where
    variables may get sparse gradients; `scheduled_helper` where the rate changes. A `dense_only` one is refused there.
    `fused` is the same of the class of that name in `tf.keras.optimizers.legacy`, which updates a variable by the
    operation of TensorFlow 1; None where none of them has that operation.
    """

    keras: str
    parameters: tuple[str, ...]
    keywords: Mapping[str, str]
    defaults: Mapping[str, str]
    fixed: tuple[str, ...] = ()
    helper: str | None = None
    sparse_helper: str | None = None
    scheduled_helper: str | None = None
    dense_only: bool = False
    fused: _Fused | None = None


_TAIL = ("use_locking", "name")
_FTRL = (
    "learning_rate_power",
    "initial_accumulator_value",
    "l1_regularization_strength",
    "l2_regularization_strength",
)
_SHRINKAGE = ("l1_regularization_strength", "l2_regularization_strength")
_BETAS = {"beta1": "beta_1", "beta2": "beta_2", "epsilon": "epsilon"}
_ADAM = {"learning_rate": "0.001", "beta1": "0.9", "beta2": "0.999", "epsilon": "1e-08"}


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


_TABLE: dict[str, _Optimizer] = {
    "tf.train.GradientDescentOptimizer": _Optimizer("SGD", ("learning_rate", *_TAIL), {}, {}, fused=_Fused()),
    "tf.train.MomentumOptimizer": _Optimizer(
        "SGD",
        ("learning_rate", "momentum", *_TAIL, "use_nesterov"),
        {"momentum": "momentum", "use_nesterov": "nesterov"},
        {},
        sparse_helper=_SPARSE_MOMENTUM,
        scheduled_helper=MOMENTUM,
        fused=_Fused(scheduled_helper=FUSED_MOMENTUM),
    ),
    "tf.train.AdagradOptimizer": _Optimizer(
        "Adagrad",
        ("learning_rate", "initial_accumulator_value", *_TAIL),
        _same("initial_accumulator_value"),
        {"initial_accumulator_value": "0.1"},
        ("epsilon=0.0",),
        fused=_Fused(fixed=("epsilon=1e-30",)),  # 0.0 stands for Keras' default there, 1e-7
    ),
    "tf.train.AdamOptimizer": _Optimizer(
        "Adam", ("learning_rate", "beta1", "beta2", "epsilon", *_TAIL), _BETAS, _ADAM, fused=_Fused()
    ),
    "tf.train.RMSPropOptimizer": _Optimizer(
        "RMSprop",
        ("learning_rate", "decay", "momentum", "epsilon", "use_locking", "centered", "name"),
        {"decay": "rho", "momentum": "momentum", "epsilon": "epsilon", "centered": "centered"},
        {"decay": "0.9", "epsilon": "1e-10"},
        helper=RMSPROP,
        sparse_helper=_SPARSE_RMSPROP,
        fused=_Fused(FUSED_RMSPROP),
    ),
    "tf.train.AdadeltaOptimizer": _Optimizer(
        "Adadelta",
        ("learning_rate", "rho", "epsilon", *_TAIL),
        _same("rho", "epsilon"),
        {"learning_rate": "0.001", "rho": "0.95", "epsilon": "1e-08"},
        sparse_helper=_SPARSE_ADADELTA,
        fused=_Fused(),
    ),
    "tf.train.FtrlOptimizer": _Optimizer(
        "Ftrl",
        ("learning_rate", *_FTRL, *_TAIL, "accum_name", "linear_name", "l2_shrinkage_regularization_strength"),
        _same(*_FTRL, "l2_shrinkage_regularization_strength"),
        {},
        sparse_helper=_SPARSE_FTRL,
        fused=_Fused(),
    ),
    "tf.train.ProximalGradientDescentOptimizer": _Optimizer(
        "SGD", ("learning_rate", *_SHRINKAGE, *_TAIL), _same(*_SHRINKAGE), {}, helper=_PROXIMAL_SGD
    ),
    "tf.train.ProximalAdagradOptimizer": _Optimizer(
        "Adagrad",
        ("learning_rate", "initial_accumulator_value", *_SHRINKAGE, *_TAIL),
        _same("initial_accumulator_value", *_SHRINKAGE),
        {"initial_accumulator_value": "0.1"},
        ("epsilon=0.0",),
        helper=_PROXIMAL_ADAGRAD,
    ),
    "tf.train.AdagradDAOptimizer": _Optimizer(
        "Adagrad",
        ("learning_rate", "global_step", "initial_gradient_squared_accumulator_value", *_SHRINKAGE, *_TAIL),
        {"initial_gradient_squared_accumulator_value": "initial_accumulator_value", **_same(*_SHRINKAGE)},
        {"initial_gradient_squared_accumulator_value": "0.1"},
        ("epsilon=0.0",),
        helper=_ADAGRAD_DA,
        dense_only=True,
    ),
    "tf.contrib.opt.LazyAdamOptimizer": _Optimizer(
        "Adam",
        ("learning_rate", "beta1", "beta2", "epsilon", *_TAIL),
        _BETAS,
        _ADAM,
        sparse_helper=_LAZY_ADAM,
        fused=_Fused(sparse_helper=_FUSED_LAZY_ADAM),
    ),
    "tf.contrib.opt.NadamOptimizer": _Optimizer(
        "Adam", ("learning_rate", "beta1", "beta2", "epsilon", *_TAIL), _BETAS, _ADAM, helper=_NADAM, dense_only=True
    ),
    "tf.contrib.opt.AdaMaxOptimizer": _Optimizer(
        "Adamax",
        ("learning_rate", "beta1", "beta2", "epsilon", *_TAIL),
        _BETAS,
        _ADAM,
        dense_only=True,
        fused=_Fused(),
    ),
}
_REFUSED = {
    "tf.contrib.opt.AdamWOptimizer": "decay and gradients race in TensorFlow 1, so no two runs agree (3e-4)",
    "tf.contrib.opt.MomentumWOptimizer": "decay and gradients race in TensorFlow 1, so no two runs agree (4e-3)",
    "tf.contrib.opt.LARSOptimizer": "Keras has no layer-wise learning rates",
    "tf.contrib.opt.MovingAverageOptimizer": "moving averages of the weights are unsupported",
    "tf.train.SyncReplicasOptimizer": (
        "it is unsupported in an Estimator. If all replicas count, mirrored workers make the "
        "same steps: remove the wrapper, and give the RunConfig a "
        "MultiWorkerMirroredStrategy. Dropping slow (backup) workers is unsupported"
    ),
}


# What canned Estimators call optimizers.
_NAMED = {
    "Adagrad": "tf.train.AdagradOptimizer",
    "Adam": "tf.train.AdamOptimizer",
    "Ftrl": "tf.train.FtrlOptimizer",
    "RMSProp": "tf.train.RMSPropOptimizer",
    "SGD": "tf.train.GradientDescentOptimizer",
}
_GETTERS = ("tf.python.estimator.canned.optimizers.get_optimizer_instance",)
_SUM_OF_ROWS = "the sum of the gradients of a row"
# Arguments that optimizers of Keras have since 2.11.
_OF_NEWER = frozenset(("weight_decay", "use_ema", "ema_momentum", "ema_overwrite_frequency", "jit_compile"))
_OF_KERAS = frozenset(("Adadelta", "Adagrad", "Adam", "Adamax", "Ftrl", "Nadam", "RMSprop", "SGD"))


def is_optimizer(name: str | None) -> bool:
    """Whether a TensorFlow 1 symbol is an optimizer class, known or not."""
    return name is not None and (
        name in _GETTERS or name in _TABLE or name in _REFUSED or _looks_like_one(name) or _is_of_keras(name)
    )


def _is_of_keras(name: str) -> bool:
    """Whether a symbol is an optimizer of Keras already, as canned Estimators of TensorFlow 2 take them."""
    return name.removeprefix("tf.keras.optimizers.").removeprefix("legacy.") in _OF_KERAS


def _looks_like_one(name: str) -> bool:
    return name.startswith(("tf.train.", "tf.contrib.opt.")) and name.endswith("Optimizer")


def _optimizer(site: Site) -> cst.BaseExpression:
    known, context = _TABLE[site.name], site.training
    bound = site.arguments(known.parameters, "TFM401")
    texts = {**known.defaults, **{name: site.code(value) for name, value in bound.items() if name not in _TAIL}}
    if site.original in context.rates:
        texts["learning_rate"] = context.rates[site.original]
    if "learning_rate" not in texts:
        raise Blocked("TFM401", site.original, f"`{site.name}` is called without a learning rate")
    if is_false(bound.get("use_nesterov")):
        texts.pop("use_nesterov")
    if is_false(bound.get("centered")):
        texts.pop("centered")
    rate = bound.get("learning_rate")
    if context.keras.wants_float_rates and site.original not in context.rates:
        texts["learning_rate"] = _float_rate(site, rate, texts["learning_rate"])
    arguments = [f"learning_rate={texts['learning_rate']}"]
    arguments += [f"{known.keywords[p]}={texts[p]}" for p in known.keywords if p in texts]
    fused = _fused(site, known)
    arguments += [*(known.fixed if fused is None else fused.fixed), *context.arguments.get(site.original, ())]
    if site.original in context.averaging:
        arguments.append(context.averaging[site.original][1])
    return expression(call_text(_class(site, known, bound), arguments))


def _fused(site: Site, known: _Optimizer) -> _Fused | None:
    """What is written of the classes whose updates are one operation; None where it is one of the newer classes."""
    context = site.training
    return known.fused if context.keras.fuses and context.fused and site.original not in context.averaging else None


def _class(site: Site, known: _Optimizer, bound: Mapping[str, cst.BaseExpression]) -> str:
    """The Keras class, or the subclass of it that the file gets."""
    context, fused = site.training, _fused(site, known)
    if context.sparse and known.dense_only:
        raise Blocked("TFM401", site.original, f"`{site.name}` on embeddings is unsupported")
    kinds = known if fused is None else fused
    text = kinds.sparse_helper if context.sparse and kinds.sparse_helper is not None else kinds.helper
    why = "its sparse updates" if context.sparse and kinds.sparse_helper is not None else "its arithmetic"
    if text is None and kinds.scheduled_helper is not None and _changes(site, bound.get("learning_rate")):
        text, why = kinds.scheduled_helper, "a changing learning rate"
    name = stock = f"tf.keras.optimizers.{'' if fused is None else 'legacy.'}{known.keras}"
    if context.keras.number == 3:
        adds_rows, text = text is None, _on_keras3(site, known.keras, text)
        why = _SUM_OF_ROWS if adds_rows else why
    if text is not None:
        name = context.helper(site.name.rpartition(".")[2], text)
        message = f"`{name}` keeps {why}, which `{stock}` does differently"
        context.remark("TFM876" if why == _SUM_OF_ROWS else "TFM410", site.original, message)
    if context.per_replica and context.arguments.get(site.original):
        clipped = _CLIPPED if fused is None else _FUSED_CLIPPED
        name = context.helper(f"Clipped{name.rpartition('.')[2]}", clipped % name)
        context.remark(
            "TFM410", site.original, f"`{name}` clips the gradients of each replica, Keras would clip their sum"
        )
    if site.original in context.averaging:
        name = _averaging(site, name)
    return name


def _averaging(site: Site, base: str) -> str:
    """The subclass that keeps moving averages of the weights, too. Raises Blocked (TFM413)."""
    context = site.training
    if context.on_mesh:
        raise Blocked("TFM413", site.original, "moving averages of the weights are unsupported on a mesh")
    text, _ = context.averaging[site.original]
    if context.keras.number == 3:
        text = _said_on_keras3(text)
    name = context.helper(f"Averaged{base.rpartition('.')[2]}", text % base)
    message = f"`{name}` keeps moving averages of the weights, which `use_ema` would swap in after `fit`"
    context.remark("TFM412", site.original, message)
    return name


def _float_rate(site: Site, rate: cst.BaseExpression | None, text: str) -> str:
    """A rate that Keras 3 takes: it refuses whole numbers, and numbers of numpy."""
    if rate is None or isinstance(rate, cst.Float):
        return text
    if isinstance(rate, cst.Integer):
        return f"{text}.0"
    known = site.training.scheduled is not None and site.original not in site.training.scheduled
    return f"float({text})" if known else text


def _changes(site: Site, rate: cst.BaseExpression | None) -> bool:
    """Whether the rate of an optimizer may be a schedule, or another one when the training goes on."""
    if site.original in site.training.rates or (site.training.resumes and number(rate) is None):
        return True
    if site.training.scheduled is not None:
        return site.original in site.training.scheduled
    return number(rate) is None


def _refused(site: Site) -> cst.BaseExpression:
    raise Blocked("TFM401", site.original, f"`{site.name}`: {_REFUSED[site.name]}")


def _by_name(site: Site) -> cst.BaseExpression:
    """One of the optimizers that canned Estimators know by name, which the program may be told when it runs."""
    bound = site.arguments(("opt", "learning_rate"), "TFM401")
    if "opt" not in bound or "learning_rate" not in bound:
        raise Blocked("TFM401", site.original, "`get_optimizer_instance` has no name or no learning rate")
    known = string(bound["opt"])
    if known is not None and known not in _NAMED:
        raise Blocked("TFM401", site.original, f"canned Estimators have no optimizer `{known}`")
    made = {
        name: site.code(
            _optimizer(replace(site, name=symbol, call=cst.Call(site.call.func, [cst.Arg(bound["learning_rate"])])))
        )
        for name, symbol in _NAMED.items()
        if known in (None, name)
    }
    if known is not None:
        return expression(made[known])
    entries = "".join(f'\n        "{name}": {text},' for name, text in made.items())
    return expression(f"{{{entries}\n    }}[{site.code(bound['opt'])}]")


def _of_keras(site: Site) -> cst.BaseExpression:
    """An optimizer of Keras already; TensorFlow 1's own Keras had those that are called legacy now."""
    name, context = site.name.rpartition(".")[2], site.training
    given = {arg.keyword.value for arg in site.call.args if arg.keyword is not None}
    older = ".legacy." in site.name or given & {"lr", "decay"} or _is_computed_otherwise(name, site.call)
    fused = context.keras.fuses and context.fused and not given & _OF_NEWER
    home = "tf.keras.optimizers.legacy" if older or fused else "tf.keras.optimizers"
    rate = site.training.rates.get(site.original)
    args = site.call.args
    if rate is not None:
        args = [arg.with_changes(value=expression(rate)) if _is_rate(i, arg) else arg for i, arg in enumerate(args)]
    if site.original in site.training.averaging:
        raise Blocked(
            "TFM413", site.original, "moving averages are unsupported with a Keras optimizer: use one of tf.train"
        )
    if site.training.arguments.get(site.original):
        raise Blocked(
            "TFM403", site.original, "clipped gradients are unsupported with a Keras optimizer: pass `clipnorm` to it"
        )
    return site.call.with_changes(func=expression(f"{home}.{name}"), args=args)


def _is_computed_otherwise(name: str, call: cst.Call) -> bool:
    """Whether the class of that name computes something else since TensorFlow 2.11 (measured, see TFM713)."""
    if name != "RMSprop":
        return name == "Nadam"
    given = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    by_place = [arg.value for arg in call.args if arg.keyword is None]
    momentum = by_place[2] if len(by_place) > 2 else given.get("momentum")
    return not number(momentum) or "centered" in given or len(by_place) > 4


def compiled(call: cst.Call, values: Callable[[str], list[cst.BaseExpression | None]]) -> cst.Call:
    """`model.compile("rmsprop", metrics=["accuracy"])` as Estimators took it; other calls as they are.

    `values` are those that a name is given in the file (None: something else). Keras takes RMSprop where none is named.
    Estimators made legacy optimizers of all (tensorflow_estimator 2.15, python/estimator/keras_lib.py), and TensorFlow
    1.15 called the metrics "accuracy" and "crossentropy" `acc` and `ce`, and "mse" by its whole name (measured).
    """
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "compile":
        return call
    args, keys = list(call.args), [arg.keyword.value if arg.keyword is not None else "" for arg in call.args]
    for place, arg in enumerate(call.args):
        if keys[place] in ("metrics", "weighted_metrics") or (not keys[place] and place == 2):
            args[place] = arg.with_changes(value=_named_metrics(arg.value, values))
    index = keys.index("optimizer") if "optimizer" in keys else 0 if keys and not keys[0] else None
    if index is None:
        return call.with_changes(args=[keyword("optimizer", _LEGACY_RMSPROP), *args]) if "loss" in keys else call
    given = args[index].value
    made = _BY_NAME.get((string(given) or "").lower())
    if made is not None:
        args[index] = args[index].with_changes(value=expression(f"tf.keras.optimizers.legacy.{made}"))
    elif isinstance(given, (cst.Name, cst.Attribute, cst.Subscript, cst.IfExp)):
        known = values(given.value) if isinstance(given, cst.Name) else [None]
        if not known or not all(isinstance(one, cst.Call) for one in known):  # it may be the name of one
            args[index] = args[index].with_changes(value=_legacy_of([cst.Arg(given)]))
    return call.with_changes(args=args)


#: What the names of Keras' optimizers gave in TensorFlow 1.15, where the class of that name gives something else now.
_BY_NAME = {"nadam": "Nadam()", "rmsprop": "RMSprop()", "adagrad": "Adagrad(initial_accumulator_value=0.0)"}


def starts_at_zero(call: cst.Call, name: str | None) -> bool:
    """Whether a call of `compile` or `tf.keras.optimizers.get` asks for Adagrad by its name (TFM431)."""
    method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    if not call.args or (name != "tf.keras.optimizers.get" and (name is not None or method != "compile")):
        return False
    keyed = [a.value for a in call.args if a.keyword is not None and a.keyword.value in ("optimizer", "identifier")]
    given = keyed or [a.value for a in call.args[:1] if a.keyword is None and not a.star]
    return any((string(one) or "").lower() == "adagrad" for one in given)


_METRICS = {
    "accuracy": "acc",
    "crossentropy": "ce",
    "mse": "mean_squared_error",
    "MSE": "mean_squared_error",
    "mae": "mean_absolute_error",
    "MAE": "mean_absolute_error",
    "mape": "mean_absolute_percentage_error",
    "MAPE": "mean_absolute_percentage_error",
    "msle": "mean_squared_logarithmic_error",
    "MSLE": "mean_squared_logarithmic_error",
}


class _Renamed(cst.CSTTransformer):
    """Gives metrics the names that TensorFlow 1.15 gave them, but what a call names itself."""

    def visit_Call(self, node: cst.Call) -> bool:
        return False

    def leave_SimpleString(self, original_node: cst.SimpleString, updated_node: cst.SimpleString) -> cst.SimpleString:
        name = _METRICS.get(str(string(original_node)))
        quote = updated_node.quote
        return updated_node if name is None else updated_node.with_changes(value=f"{quote}{name}{quote}")


def _named_metrics(
    metrics: cst.BaseExpression, values: Callable[[str], list[cst.BaseExpression | None]]
) -> cst.BaseExpression:
    known = values(metrics.value) if isinstance(metrics, cst.Name) else [metrics]
    given = known[0] if len(known) == 1 else None
    if not isinstance(given, (cst.List, cst.Tuple, cst.Dict)):
        return metrics
    elements = [given] if not isinstance(given, cst.Dict) else [e.value for e in given.elements]
    new: cst.BaseExpression = given
    for one in elements:
        renamed = one.visit(_Renamed())
        assert isinstance(renamed, cst.BaseExpression)
        replaced = new.deep_replace(one, renamed) if one is not new else renamed
        assert isinstance(replaced, cst.BaseExpression)
        new = replaced
    return metrics if new.deep_equals(given) else new


def _get(site: Site) -> cst.BaseExpression:
    """`tf.keras.optimizers.get("rmsprop")`: TensorFlow 1's own Keras gave what is called legacy now."""
    if starts_at_zero(site.call, site.name):
        return expression(f"tf.keras.optimizers.legacy.{_BY_NAME['adagrad']}")
    return _legacy_of(site.call.args)


def _legacy_of(args: Sequence[cst.Arg]) -> cst.Call:
    """`tf.keras.optimizers.get(..., use_legacy_optimizer=True)`: what is an optimizer already stays as it is."""
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    given = [arg.with_changes(comma=comma) for arg in args]
    return cst.Call(expression("tf.keras.optimizers.get"), [*given, keyword("use_legacy_optimizer", cst.Name("True"))])


_LEGACY_RMSPROP = expression("tf.keras.optimizers.legacy.RMSprop()")


def _is_rate(index: int, arg: cst.Arg) -> bool:
    return arg.keyword.value == "learning_rate" if arg.keyword is not None else index == 0


CALLS: dict[str, CallRule] = {
    **dict.fromkeys(_TABLE, _optimizer),
    **dict.fromkeys(_GETTERS, _by_name),
    **dict.fromkeys(_REFUSED, _refused),
    "tf.keras.optimizers.get": _get,
    **{f"tf.keras.optimizers.{part}{name}": _of_keras for name in _OF_KERAS for part in ("", "legacy.")},
}


def parameters_of(name: str) -> tuple[str, ...]:
    """The parameters of an optimizer class in order; none of one that is not carried over."""
    if _is_of_keras(name):
        return ("learning_rate",)
    if name in _GETTERS:
        return ("opt", "learning_rate")
    return _TABLE[name].parameters if name in _TABLE else ()


def may_be_sparse(text: str) -> bool:
    """Whether the variables of a program may get sparse gradients: those that rows are taken from."""
    text = bare(text)
    words = ("mbedding", "gather", "categorical_column", "linear_model(", "embed_sequence")
    return any(word in text for word in words) or re.search(r"\bimport\b.*\blinear_model\b", text) is not None
