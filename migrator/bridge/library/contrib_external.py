"""Optimizers outside of the graph that tf.contrib.opt had: those of scipy.optimize, and the program's own."""

from __future__ import annotations

import itertools

import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1


class ExternalOptimizerInterface:
    """Minimizes a loss by a method outside of the graph, which sees the variables as one vector.

    A class of it has `_minimize`, which is given the vector to start from and functions of such a vector.

    Args:
        loss: the scalar to minimize.
        var_list: the variables that change; None: all that are trained.
        equalities: scalars that are to be 0.
        inequalities: scalars that are not to be negative.
        var_to_bounds: of variables, a pair of what they may be: numbers, or arrays that broadcast to their shapes.
        optimizer_kwargs: settings that `_minimize` is given.
    """

    def __init__(self, loss, var_list=None, equalities=None, inequalities=None, var_to_bounds=None, **optimizer_kwargs):
        self._loss, self.optimizer_kwargs = loss, optimizer_kwargs
        self._equalities, self._inequalities = equalities or [], inequalities or []
        self._vars = tf1.trainable_variables() if var_list is None else list(var_list)
        self._shapes = [tuple(variable.shape.as_list()) for variable in self._vars]
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self._shapes)])
        self._slices = [slice(start, end) for start, end in itertools.pairwise(ends)]
        self._packed_bounds = None if var_to_bounds is None else self._bounds(var_to_bounds)
        self._given = [tf1.placeholder(variable.dtype.base_dtype) for variable in self._vars]
        self._updates = [
            variable.assign(tf.reshape(given, shape))
            for variable, given, shape in zip(self._vars, self._given, self._shapes, strict=True)
        ]
        self._packed_var = _packed(self._vars)
        self._packed_loss_grad = self._gradient(loss)
        self._packed_equality_grads = [self._gradient(one) for one in self._equalities]
        self._packed_inequality_grads = [self._gradient(one) for one in self._inequalities]

    def _bounds(self, of_variables):
        lows, highs = [], []
        for variable, shape in zip(self._vars, self._shapes, strict=True):
            low, high = of_variables.get(variable, (-np.inf, np.inf))
            lows.extend(np.broadcast_to(low, shape).flat)
            highs.extend(np.broadcast_to(high, shape).flat)
        return list(zip(lows, highs, strict=True))

    def _gradient(self, tensor):
        found = zip(self._vars, tf1.gradients(tensor, self._vars), strict=True)
        return _packed([tf.zeros_like(variable) if one is None else one for variable, one in found])

    def minimize(
        self, session=None, feed_dict=None, fetches=None, step_callback=None, loss_callback=None, **run_kwargs
    ):
        """Gives the variables the values that are found. `loss_callback` is given `fetches` at each look at the loss,
        `step_callback` the vector of variables at each step.
        """
        session = session or tf1.get_default_session()
        fetches = fetches or []

        def function(tensors, called=None):
            def evaluate(vector):
                self._assign(session, vector)
                values = session.run([*tensors, *fetches], feed_dict)
                if called is not None:
                    called(*values[len(tensors) :])
                return values[: len(tensors)]

            return evaluate

        vector = self._minimize(
            initial_val=session.run(self._packed_var),
            loss_grad_func=function([self._loss, self._packed_loss_grad], loss_callback),
            equality_funcs=[function([one]) for one in self._equalities],
            equality_grad_funcs=[function([one]) for one in self._packed_equality_grads],
            inequality_funcs=[function([one]) for one in self._inequalities],
            inequality_grad_funcs=[function([one]) for one in self._packed_inequality_grads],
            packed_bounds=self._packed_bounds,
            step_callback=step_callback or (lambda vector: None),
            optimizer_kwargs=self.optimizer_kwargs,
        )
        self._assign(session, vector, **run_kwargs)

    def _assign(self, session, vector, **run_kwargs):
        # TensorFlow 1 fed the variables instead, which only changes what a reference variable's readers see.
        values = (vector[part] for part in self._slices)
        session.run(self._updates, dict(zip(self._given, values, strict=True)), **run_kwargs)

    def _minimize(
        self,
        initial_val,
        loss_grad_func,
        equality_funcs,
        equality_grad_funcs,
        inequality_funcs,
        inequality_grad_funcs,
        packed_bounds,
        step_callback,
        optimizer_kwargs,
    ):
        """The vector that is best. A function gives a list: of the loss and its gradient, or of one value."""
        raise NotImplementedError(
            "To use ExternalOptimizerInterface, subclass from it and implement the _minimize() method."
        )


def _packed(tensors):
    return tf.concat([tf.reshape(one, [-1]) for one in tensors], 0) if tensors else None


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """Minimizes a loss by scipy.optimize.minimize; its settings are `method` (L-BFGS-B), `options`, `tol` and so on."""

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(
        self,
        initial_val,
        loss_grad_func,
        equality_funcs,
        equality_grad_funcs,
        inequality_funcs,
        inequality_grad_funcs,
        packed_bounds,
        step_callback,
        optimizer_kwargs,
    ):
        from scipy import optimize

        def loss_and_gradient(vector):
            loss, gradient = loss_grad_func(vector)
            return loss, gradient.astype("float64")

        settings = dict(optimizer_kwargs)
        method = settings.pop("method", self._DEFAULT_METHOD)
        if "bounds" in settings:
            raise ValueError("Bounds must be set using the var_to_bounds argument")
        for name in ("jac", "callback", "constraints"):
            if name in settings:
                raise ValueError(f"Optimizer keyword arg '{name}' is set automatically and cannot be injected manually")
        of_kinds = (("eq", equality_funcs, equality_grad_funcs), ("ineq", inequality_funcs, inequality_grad_funcs))
        # SciPy takes a number and a vector, where the functions give lists of one.
        constraints = [
            {"type": kind, "fun": lambda x, value=value: value(x)[0], "jac": lambda x, slope=slope: slope(x)[0]}
            for kind, values, slopes in of_kinds
            for value, slope in zip(values, slopes, strict=True)
        ]
        found = optimize.minimize(
            loss_and_gradient,
            initial_val,
            jac=True,
            callback=step_callback,
            method=method,
            constraints=constraints,
            bounds=packed_bounds,
            **settings,
        )
        told = ["Optimization terminated with:", f"  Message: {found.message}"]
        told.append(f"  Objective function value: {found.fun:f}")
        if hasattr(found, "nit"):
            told.append(f"  Number of iterations: {found.nit}")
        if hasattr(found, "nfev"):
            told.append(f"  Number of functions evaluations: {found.nfev}")
        tf1.logging.info("\n".join(told))
        return found["x"]
