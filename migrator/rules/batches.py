"""What is known of the batches that input functions give: whether all are of one size, and of which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from migrator.names.imports import ImportMap
from migrator.program.calls import calls_in, is_false, is_true, nodes_in, number
from migrator.program.parsed import Blocked, ParsedFile, Project, name_nodes, names_in
from migrator.program.region import reach
from migrator.program.scopes import path_to
from migrator.program.training import TrainingProgram
from migrator.rules.arrays import is_array_input
from migrator.rules.endless import functions_behind, never_end

#: What is told where the last batch of an evaluation may be smaller than the others (TFM303).
LOSS_OF_EXAMPLES = (
    "`evaluate` reports the loss as a mean over examples, an Estimator over batches: the last one may be smaller"
)
_BATCHING = ("batch", "padded_batch", "map_and_batch", "batch_and_drop_remainder", "bucket_by_sequence_length")
_SIZES = ("shape", "get_shape", "as_list", "int_shape")


def whole_batches(project: Project, program: TrainingProgram, given: cst.BaseExpression | None, mode: str) -> bool:
    """Whether all batches of an input function are surely of one size, the last one too."""
    calls = _batching(project, program, given, mode)
    if not calls:
        return _is_array(program, given) and never_end(project, program, given, mode)
    return all(map(_is_whole, calls))


def uneven_batches(
    project: Project, program: TrainingProgram, given: cst.BaseExpression | None, mode: str
) -> cst.Call | None:
    """The first call of an input function whose last batch may be smaller than the others; None where none may.

    Where a parameter says whether to drop the rest, or the data are repeated in a statement before, none is told.
    """
    functions = functions_behind(project, program, given, mode)
    calls = [call for function in functions for call in calls_in(function)]
    lines = {call: file.position(call)[0] for file in project.files for call in calls if call in file.parents}
    repeats = [lines[call] for call in calls if call in lines and _name(call) == "repeat" and _for_ever(call)]
    for call in calls:
        if call in lines and _name(call) in _BATCHING and not _is_whole(call) and not _is_told(call):
            if not any(line < lines[call] for line in repeats):
                return call
    return None


def _is_told(call: cst.Call) -> bool:
    """Whether a call is told to drop the rest or not, by more than a plain `False`."""
    given = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "drop_remainder"]
    return any(not is_false(one) for one in given)


def _is_whole(call: cst.Call) -> bool:
    return _drops(call) or _size(call) == "1" or _repeats_before(call)


def _fed(program: TrainingProgram) -> list[tuple[cst.BaseExpression | None, str]]:
    """The input functions of a program, each with the mode that it is called in."""
    fed = [(one.get("input_fn"), "train") for one in program.trainings]
    fed += [(one.get("input_fn"), "eval") for one in program.evaluations]
    return fed + [(use.arguments.get("input_fn"), "infer") for use in program.all_uses if use.method == "predict"]


def check_batches(project: Project, program: TrainingProgram) -> None:
    """Refuses a network that needs the size of its batches, which TensorFlow 1 knew, where a Keras model does not.

    Raises Blocked (TFM619).
    """
    nodes = reach(project, program.model_file, program.model_fn)
    needs = next((node for function in nodes for node in _needing(function)), None)
    if needs is None:
        return
    made = [_batching(project, program, node, mode) for node, mode in _fed(program)]
    if made and all(calls and all(map(_drops, calls)) for calls in made):
        message = "the network reads its batch size, which is not fixed in this Keras model"
        raise Blocked("TFM619", needs if path_to(program.file.module, needs) else program.place.call, message)


def _needing(function: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Where a function takes the first of the sizes of a tensor: directly, by a name for all of them, or unpacked."""
    named: set[str] = set()
    for node in nodes_in(function):
        if isinstance(node, cst.Assign) and _is_size(node.value):
            for target in node.targets:
                if isinstance(target.target, cst.Name):
                    named.add(target.target.value)
                elif isinstance(target.target, (cst.Tuple, cst.List)):
                    first = target.target.elements[0].value if target.target.elements else None
                    if isinstance(first, cst.Name) and any(
                        one.value == first.value and one is not first for one in name_nodes(function)
                    ):
                        yield node
    for node in nodes_in(function):
        if isinstance(node, cst.Subscript):
            index = node.slice[0].slice
            of_size = _is_size(node.value) or (isinstance(node.value, cst.Name) and node.value.value in named)
            if of_size and isinstance(index, cst.Index) and number(index.value) == 0:
                yield node


def static_batches(project: Project, program: TrainingProgram) -> bool:
    """Whether all input functions give batches of one size, which TensorFlow 1 knew when it built the network."""
    sizes: set[str | None] = set()
    fed = _fed(program)
    given = {program.file.code(node) for node, _ in fed if node is not None}
    for node, mode in fed:
        calls = _batching(project, program, node, mode)
        if not calls or not all(_drops(call) for call in calls):
            return False
        for call in calls:
            known = _is_constant(program.file, call) or len(given) == 1
            sizes.add(_size(call) if known else None)
    return len(sizes) == 1 and None not in sizes


def reads_batch(project: Project, program: TrainingProgram) -> bool:
    """Whether the network may ask for the size of a batch while it is built."""
    nodes = reach(project, program.model_file, program.model_fn)
    return any(_asks(node) for function in nodes for node in nodes_in(function))


def _asks(node: cst.CSTNode) -> bool:
    """`x.shape[0]`, `x.get_shape().as_list()[0]`; or all sizes, which may be taken apart elsewhere."""
    if isinstance(node, cst.Subscript):
        index = node.slice[0].slice
        return isinstance(index, cst.Index) and number(index.value) == 0 and _is_size(node.value)
    if isinstance(node, cst.Assign):
        return _is_size(node.value)
    return False


def _is_size(node: cst.BaseExpression) -> bool:
    while isinstance(node, cst.Call):
        node = node.func
    return isinstance(node, cst.Attribute) and node.attr.value in _SIZES


def _batching(
    project: Project, program: TrainingProgram, given: cst.BaseExpression | None, mode: str
) -> list[cst.Call]:
    """The calls that make batches behind an input function."""
    functions: Iterable[cst.CSTNode] = functions_behind(project, program, given, mode)
    return [call for function in functions for call in calls_in(function) if _name(call) in _BATCHING]


def _name(call: cst.Call) -> str:
    last = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return last.value if isinstance(last, cst.Name) else ""


def _drops(call: cst.Call) -> bool:
    """Whether a call drops what is left of the last batch."""
    if _name(call) == "batch_and_drop_remainder":
        return True
    given = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "drop_remainder"]
    places = [arg.value for arg in call.args if arg.keyword is None]
    by_place = places[1:2] if _name(call) == "batch" else places[3:4]
    return any(map(is_true, [*given, *by_place]))


def _size(call: cst.Call) -> str | None:
    """The size of the batches, as text."""
    key = [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "batch_size"]
    places = [arg.value for arg in call.args if arg.keyword is None]
    index = 1 if _name(call) == "map_and_batch" else 0
    found = [*key, *places[index : index + 1]]
    return cst.Module([]).code_for_node(found[0]).replace(" ", "") if found else None


def _is_constant(file: ParsedFile, call: cst.Call) -> bool:
    """Whether the size of the batches is the same wherever the call is made."""
    size = _size(call)
    return size is not None and names_in(cst.parse_expression(size)) <= file.constants.keys()


def _repeats_before(call: cst.Call) -> bool:
    """Whether what is put into batches is repeated for ever before: `data.repeat().batch(8)`."""
    node: cst.BaseExpression = call.func
    while isinstance(node, (cst.Attribute, cst.Call)):
        if isinstance(node, cst.Call):
            inner = [node, *(arg.value for arg in node.args if isinstance(arg.value, cst.Call))]
            if any(_name(one) in ("repeat", "shuffle_and_repeat") and _for_ever(one) for one in inner):
                return True
            node = node.func
        else:
            node = node.value
    return False


def _for_ever(call: cst.Call) -> bool:
    """Whether a `repeat` is not told how often, or is told so: None, -1."""
    first = 1 if _name(call) == "shuffle_and_repeat" else 0
    places = [arg.value for arg in call.args if arg.keyword is None][first : first + 1]
    given = [*places, *(arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "count")]
    return all((isinstance(one, cst.Name) and one.value == "None") or number(one) == -1 for one in given)


def _is_array(program: TrainingProgram, given: cst.BaseExpression | None) -> bool:
    imports: ImportMap = program.file.imports
    return isinstance(given, cst.Call) and is_array_input(imports.tensorflow(given.func))
