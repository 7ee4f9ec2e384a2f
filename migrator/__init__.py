"""Turns TensorFlow 1 Estimator programs into Keras ones, and proves that they train the same."""

__version__ = "0.2.0"
