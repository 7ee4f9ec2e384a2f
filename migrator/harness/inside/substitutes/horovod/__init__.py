"""A stand-in for Horovod, for originals that are run where it cannot be installed: see ``horovod.tensorflow``."""

__version__ = "0.0.stand-in"
