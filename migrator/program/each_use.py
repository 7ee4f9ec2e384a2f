"""Whether a model_fn finds the same around it at each use of its Estimator.

An Estimator calls its model_fn anew whenever it trains, evaluates or predicts; a Keras model is built once. What the
model_fn reads from outside (a setting of a module, an attribute of its object, an entry of a dict) has to be the same
each time, or the model has to be made anew as well.
"""

from __future__ import annotations

from collections.abc import Iterable

from migrator.program.known import program_of
from migrator.program.parsed import ParsedFile
from migrator.program.refusals import Refusals
from migrator.program.training import Place


def check_each_use(file: ParsedFile, place: Place, files: Iterable[ParsedFile], refusals: Refusals) -> None:
    """Refuses an Estimator whose model_fn reads what changes between its uses (TFM103).

    `files` are all that the file of the Estimator may import, those that have nothing of TensorFlow among them.
    """
    for estimator in program_of(file, files).estimators:
        site = estimator.operation.site
        if site is None or site.node is not place.call:
            continue
        for name, use in estimator.changes.items():
            there = use.site.node if use.site is not None and use.site.path == file.path else place.call
            message = f"`{name}`, which the model_fn reads, changes between uses of the Estimator: use two names"
            refusals.refuse("TFM103", there, message)


__all__ = ["check_each_use"]
