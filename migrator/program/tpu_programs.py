"""Programs that ask for a TPU, as they are to be migrated: for it, or as they run without one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import libcst as cst

from migrator.program.parsed import Blocked, ParsedFile, names_in
from migrator.program.region import References
from migrator.program.scopes import bindings
from migrator.program.tpu import ANYWAY, OPEN
from migrator.program.training import TrainingProgram
from migrator.rules.generation import Keras
from migrator.walking import walk


def without_tpu(program: TrainingProgram, why: str = "") -> TrainingProgram:
    """A program that asks for a TPU as it runs without one."""
    if program.tpu is None:
        return program
    message = ANYWAY
    message += f": {why}" if why else ": TPUs need `--strategy tpu`"
    remark = Blocked(OPEN, program.tpu.place, message)
    return replace(program, tpu=None, removed=program.tpu.removed, remarks=(*program.remarks, remark))


# A loss that is added up, which a CrossShardOptimizer divides by the cores all the same; the host of an input function.
_SUM = re.compile(r"Reduction\.SUM\b")
_HOST = re.compile(r"""(\[|\bget\()\s*["']context["']""")


def _in_the_way(files: Iterable[ParsedFile], place: cst.CSTNode) -> Blocked | None:
    """What keeps a program from a TPU that only the whole of its files shows."""
    for file in files:
        if _SUM.search(file.bare):
            return Blocked("TFM448", place, "the loss is a sum, which every TPU core divides by the number of cores")
        if _HOST.search(file.bare):
            return Blocked(
                "TFM442", place, '`params["context"]` describes the host or core, which the new program does not have'
            )
        for block in file.left_out:
            if not _serves_only(block, file):
                message = "a branch for the TPU does more than TPUStrategy does itself"
                return Blocked("TFM448", place, message)
    return None


def _serves_only(block: cst.CSTNode, file: ParsedFile) -> bool:
    """Whether each line of a branch that was left out is about the TPU itself, or only tells something."""
    if not isinstance(block, cst.IndentedBlock):
        return True
    own: set[str] = set()
    for line in block.body:
        finder = References()
        walk(line, finder)
        names = [file.imports.tensorflow(one) or "" for one in finder.found]
        about = any("tpu" in name.lower() or name == "tf.train.Scaffold" for name in names)
        if any("bfloat16" in name for name in names):
            return False
        tells = isinstance(line, cst.SimpleStatementLine) and all(isinstance(one, cst.Expr) for one in line.body)
        if not about and not tells and not names_in(line) & own:
            return False
        own |= {line.name.value} if isinstance(line, cst.FunctionDef) else {name for name, _ in bindings(line)}
    return True


def on_tpu(program: TrainingProgram, wanted: bool, keras: Keras, files: Iterable[ParsedFile] = ()) -> TrainingProgram:
    """A program as it is to be migrated: for the TPU that it asks for, where that is wanted and possible.

    `files` are all that were given. Raises Blocked where a program that runs on TPUs only cannot.
    """
    if program.tpu is None:
        return program
    if not wanted:
        return without_tpu(program)
    problem = program.tpu.problem or _in_the_way(files, program.tpu.place)
    if not keras.fits_on_clusters:
        problem = Blocked("TFM872", program.tpu.place, "TPUs are untested on Keras 3: leave `--keras 3` out")
    if problem is not None and program.tpu.flag is None:
        raise problem
    return program if problem is None else without_tpu(program, problem.message)


__all__ = ["on_tpu", "without_tpu"]
