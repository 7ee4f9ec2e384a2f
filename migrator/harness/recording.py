"""Reads what a run recorded about itself (written by ``migrator/harness/inside``). Needs numpy, no
TensorFlow.

A record folder holds one folder per task (``chief-0``, ``worker-1``, ``local-0``)::

    task.json                 which task, which process
    program.json              variables, optimizer, regularisation ... as this process saw them
    steps                     records by time (see packed.py): loss and learning rate of one training step, digests of
                              its batch
    more                      records by step, as those of steps: further parts of a step, in functions of their own
    batches                   records by the time of their step: the batch itself, of the first steps
    gradients/<step>[.npz]    gradients, at the plan's state_steps; <step>+<part> those of its further parts
    initial.npz               weights before step 1; drawn.npz further draws of them, along a first axis; made.npz what
                              the program made them before it was given others, where they were drawn further times
    states/<step>[.npz]       weights after a step; slots/<step>[.npz] the optimizer's slots; slots/late.npz those that
                              optimizers have until they take their first step, which others did not wait for
    activations/<step>        outputs of the layers in the first step
    evaluations.jsonl         results of evaluate(), one line each
    evaluations/<step>.npz    what an original's checkpoint held that was evaluated, or predicted with
    predictions/<number>.npz  what each call predicted for its first examples; .json says of which weights
    stand_in.json             what was put in the place of a TPU
    exports/<name>            copies of the SavedModels that were written; exports.jsonl says where to
    effects.jsonl             checkpoints, exports, and what callbacks and hooks did, each at its step
    other_trainings.jsonl     a line for every training of another model of the script, which is not recorded
    mutant.json               the known mistake that the plan asked for, and how often it was made
    lines.json                the lines of the user's files that ran, and those that can
    apart.json                in the place of states, slots and gradients: how far each is from those of another run
    cpu.jsonl                 processor time after the first step and after each training call
    calls.jsonl               how many steps were done before each call that trains, one line each
    ended.jsonl               a line for each of these calls that came to its end

and beside these, once the run is over, summaries.json: {tag: [[step, number or null]]} of the summaries of the
training, and printed.json: the numbers that were printed.

Steps, batches, activations and the gradients that a train step writes itself are *packed tensors*: a
serialized string vector, whose first element is a JSON header and whose others are serialized tensors.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

from migrator.harness import packed
from migrator.harness.protobuf import fields

Array = npt.NDArray[Any]
T = TypeVar("T")


class RecordingError(Exception):
    """A record folder holds nothing usable; the message says what is missing."""


class UnrecordedTraining(RecordingError):
    """The program trained, but in a way whose steps are not recorded; the message says where."""


class OnDisk(Mapping[int, T]):
    """What was recorded after some steps, read anew whenever it is asked for: no more than one is kept in memory."""

    def __init__(self, read_step: Mapping[int, Callable[[], T]]) -> None:
        self._read = dict(sorted(read_step.items()))

    def __getitem__(self, step: int) -> T:
        return self._read[step]()

    def __iter__(self) -> Iterator[int]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)


def later(table: Mapping[int, T], change: Callable[[T], T]) -> OnDisk[T]:
    """What was recorded after some steps, changed when it is asked for."""

    def of(step: int) -> Callable[[], T]:
        return lambda: change(table[step])

    return OnDisk({step: of(step) for step in table})


@dataclass(frozen=True)
class SourceLine:
    """A line of a user's file; `line` counts from 1."""

    path: str
    line: int


@dataclass(frozen=True)
class Variable:
    """A model variable (no slot, no global step), as a whole: ``shards`` says how many pieces it is stored
    in.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    trainable: bool
    order: int
    shards: int


@dataclass(frozen=True)
class Step:
    """One training step of one task, counted from 1 within that task.

    ``loss`` is the float32 value that the optimizer minimises on that worker, regularisation included, not
    divided by the number of replicas. ``learning_rate`` is the rate used in this step. ``batch`` is the
    digest of the batch, if recorded. ``time`` is when the step was recorded, in seconds since the epoch. ``counted`` is
    how many steps the optimizer has counted before it, if that was recorded.
    """

    number: int
    task: str
    loss: float
    learning_rate: float | None
    batch: str | None
    time: float = 0.0
    counted: int | None = None


@dataclass(frozen=True)
class Batch:
    """The content of one batch. ``components`` are (path, dtype, shape, digest) with paths such as
    "features/x". ``kept``: the batch itself was recorded too, and can be read and replayed.
    """

    task: str
    step: int
    digest: str
    size: int
    components: tuple[tuple[str, str, tuple[int, ...], str], ...]
    kept: bool = True


@dataclass(frozen=True)
class Optimizer:
    """The live optimizer: canonical class name (SGD, Adagrad, Adam ...) and settings as float32 sees them.

    A setting that is computed at run time (a schedule) is None. Clipping of gradients by the program itself
    is described as the Keras optimizer would name it (``global_clipnorm``, ``clipnorm``, ``clipvalue``); text
    says what no single number can ("computed", "[-1, 2]"). `others` train other variables of the same model. `own`: a
    class of the program's own, whose rule no name tells.
    """

    name: str
    settings: dict[str, float | bool | str | None]
    others: tuple[Optimizer, ...] = ()
    own: bool = False


@dataclass(frozen=True)
class Shuffle:
    """A `Dataset.shuffle`: its buffer (None: computed), whether it has a seed of its own, whether each pass over the
    data has another order, and whether it mixes examples of several passes, since the data are repeated before. `seed`
    is its own one, None where that is computed. Or a queue that shuffles: its buffer is what it can hold, and `least`
    what it keeps for the next draw (None: no queue).
    """

    buffer: int | None
    seeded: bool
    each_time: bool
    across: bool = False
    seed: int | None = None
    least: int | None = None

    @staticmethod
    def read(fields: Sequence[Any]) -> Shuffle:
        """One that was written from inside a program, in the order of the fields; queues alone have a last one."""
        buffer, seeded, each_time, across, seed, *least = fields
        return Shuffle(buffer, bool(seeded), bool(each_time), bool(across), seed, *least)


#: The file of a replicate's distances.
APART = "apart.json"
LOSS_OF_BATCHES, LOSS_OF_EXAMPLES = "loss, mean of batches", "loss, mean of examples"


@dataclass(frozen=True)
class Evaluation:
    """One evaluation: the program's own metrics of scalar value, without the global step.

    ``step`` is the global step (the optimizer's iterations) of the weights, None where the program has no
    optimizer. ``same_weights`` are the results with the weights that the plan gave for ``weights_step``, and
    ``control`` those with the weights that the run began with; None where the plan asked for none or, as
    ``note`` says, it was not possible. ``nudged`` are those of the program's own weights, each moved by one ulp: what
    rounding alone does to the metrics. ``unasked`` are the metrics that the program did not ask for: Estimator reports
    them by itself. Beside the metrics, a Keras program's results may hold `LOSS_OF_BATCHES` and
    `LOSS_OF_EXAMPLES`, two means of its loss that the recorder has summed up itself.
    """

    task: str
    step: int | None
    results: dict[str, float]
    same_weights: dict[str, float] | None = None
    weights_step: int | None = None
    control: dict[str, float] | None = None
    note: str = ""
    nudged: tuple[dict[str, float], ...] = ()
    unasked: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Prediction:
    """What one call predicted for its first examples, by the path of the output ("" where there is just one).

    Arrays have the examples along their first axis; text is bytes. ``step`` is the global step of the weights, None
    where it is not known. ``same_weights``, ``control`` and ``nudged`` are as for `Evaluation`.
    """

    task: str
    step: int | None
    outputs: dict[str, Array]
    same_weights: dict[str, Array] | None = None
    weights_step: int | None = None
    control: dict[str, Array] | None = None
    nudged: tuple[dict[str, Array], ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Export:
    """A SavedModel that the program wrote to ``path``, and the copy of it; None if it was too large to keep."""

    path: str
    copy: Path | None


@dataclass(frozen=True)
class Effect:
    """What a training did beside its steps, after so many of them: `kind` is "checkpoint", "export" (`name` is the path
    of what was written), "holds" (how many of its weights the checkpoint before has) and "lacks" (one that it has not),
    "callback" (a class of callbacks or hooks that may end training or set its rate is there), or
    "acted" (it did so).
    """

    kind: str
    step: int
    name: str


@dataclass(frozen=True)
class StandIn:
    """What a program asked for of a TPU (a TPUStrategy, a TPUEstimator), and how many CPUs it got instead."""

    stands_for: str
    cores: int


@dataclass(frozen=True)
class Lines:
    """The lines of a file that ran in any task, and all that can run, by their numbers; and likewise its branches, each
    by the line of its statement and its kind ("then", "else", "body", "except", "case").
    """

    ran: frozenset[int]
    of: frozenset[int]
    taken: frozenset[tuple[int, str]] = frozenset()
    branches: frozenset[tuple[int, str]] = frozenset()


@dataclass(frozen=True)
class Origins:
    """Which weights a training begins with are those that earlier trainings of the script have left.

    `known` are the variables, by the place of their training and their names there, that those have changed; `of` tells
    which of them have the value that a variable begins with.
    """

    known: frozenset[tuple[int, str]]
    of: Mapping[str, tuple[tuple[int, str], ...]]


@dataclass(frozen=True)
class Recording:
    """Everything a run recorded. Step numbers are keys of ``states``, ``slots`` and ``gradients``, which are read from
    the record folder whenever they are asked for.

    ``slots`` are in TensorFlow 1 form: Keras' momentum slot (-rate * accumulator) is divided by -rate,
    where the rate was constant up to that step; otherwise the canonical entry is absent. ``raw_slots``
    holds what the program itself stored. ``gradients`` are summed over synchronous replicas.
    ``dropout_rates`` are those of the dropouts at work in training, ``dropout_inputs`` the shapes of one
    example before each (None: unknown), ``dropout_after`` the trained variables that the input of each depends on
    (None: the step was no graph), ``dropout_loops`` in how many loops of the step each draws, and ``draws`` counts the
    masks that a program draws by itself; ``anew``: they, and dropouts, drop others at each step. ``update_ops`` counts
    the updates of moving averages that are part of the train step.

    ``activations`` are the outputs of the layers with weights in the first step of the first trainer, in the
    order of their calls. Keys are the layers' first weights, "name#2" for the second call of the same layer;
    outputs in loops or branches, outputs without effect on the loss and very large ones are left out.
    ``sources`` are lines of the user's files: "variable:<name>", "optimizer", "loss", "input", "train".
    ``mutation`` counts the places that a mutant changed; None without a mutant. ``replicas_of_batch``: a recorded
    batch is that of so many replicas together. ``stand_in`` says what was put in the place of a TPU, None without.
    ``own_workers`` are the workers that the program started in its own process, the first of which took all steps.
    ``other_trainings`` counts other models of the script that it trains, which are not recorded; ``training`` of
    these models trained before, ``origins`` is what they left of its first weights (None: not known). ``in_step``:
    parameter servers make the trainers take their steps together (SyncReplicasOptimizer). ``loop``: the steps are those
    of a loop of the program's own. ``rate_constants`` are whole numbers in a learning rate: steps where it may change.
    ``thresholds`` are the numbers that a step compares others with, ``halves`` the half formats in which it multiplies
    matrices or convolves (None: not known). ``slot_variables`` are the names
    that slots have in a checkpoint of the original. ``predictions`` are
    those of the calls that predict, and ``exports`` the SavedModels that were written, in their order. ``shuffles`` are
    those of the training data (None: not known). ``effects`` are those of the first task that has any;
    ``summaries`` are the steps at which each tag was written, with its number (None: no finite scalar). ``drawn`` are
    further draws of initial values, along a first axis. ``cpu`` are the processor seconds of all trainers from the
    first step to the last (None: not known). ``apart`` says how far each gradient, weight and slot is from that of
    the run that this one is compared with, by (family, name, slot, step) of that one, where they themselves are gone
    (None: they are not); ``unmoved``, of a known-bad version then, whether it was the good one bit for bit.
    ``lines`` are those of the user's files, by their paths, where they were watched, and ``printed`` the numbers with
    a point that its tasks printed, ascending. ``conditional``: gradients are applied in a branch of a
    condition, those of several batches together. ``racing`` are variables that an update may change before a gradient
    or a learning rate has read them, where nothing but the recorder keeps it from doing so.
    """

    program: str
    tensorflow: str
    keras: str | None
    variables: tuple[Variable, ...]
    initial: dict[str, Array]
    steps: tuple[Step, ...]
    batches: tuple[Batch, ...]
    states: Mapping[int, dict[str, Array]]
    slots: Mapping[int, dict[tuple[str, str], Array]]
    gradients: Mapping[int, dict[str, Array]]
    optimizer: Optimizer | None
    regularizers: int
    regularization: float | None
    update_ops: int
    dropout_rates: tuple[float, ...]
    replicas: int
    evaluations: tuple[Evaluation, ...]
    participation: dict[str, int]
    raw_slots: Mapping[int, dict[tuple[str, str], Array]] = field(default_factory=dict)
    dropout_inputs: tuple[tuple[int, ...] | None, ...] = ()
    dropout_after: tuple[int | None, ...] = ()
    dropout_loops: tuple[int | None, ...] = ()
    activations: dict[str, Array] = field(default_factory=dict)
    sources: dict[str, SourceLine] = field(default_factory=dict)
    mutation: int | None = None
    replicas_of_batch: int = 1
    stand_in: StandIn | None = None
    own_workers: int = 0
    other_trainings: int = 0
    in_step: bool = False
    loop: bool = False
    rate_constants: tuple[int, ...] = ()
    thresholds: tuple[float, ...] | None = None
    halves: tuple[str, ...] | None = None
    slot_variables: dict[tuple[str, str], str] = field(default_factory=dict)
    predictions: tuple[Prediction, ...] = ()
    exports: tuple[Export, ...] = ()
    shuffles: tuple[Shuffle, ...] | None = None
    effects: tuple[Effect, ...] = ()
    summaries: Mapping[str, Mapping[int, float | None]] = field(default_factory=dict)
    draws: int = 0
    anew: bool = False
    training: int = 0
    origins: Origins | None = None
    drawn: Mapping[str, Array] = field(default_factory=dict)
    first_batch: int | None = None
    """Which of the batches that the program asks its data sets for, from 1, is the first that an eager loop trains on;
    None where no loop does, or where its first step is only known when it is over."""
    requests: int = 1
    """How many batches an eager loop asks for in each step, whose gradients it applies together."""
    carried: bool = False
    """Whether it adds up the gradients of several steps by itself, to apply them together."""
    by_hand: bool = False
    """Whether a loop assigns its weights itself: its gradients are those that its tape gave."""
    own_counts: int = 0
    """How many counts of its steps a loop keeps in variables of its own."""
    twice: bool = False
    """Whether that step was made twice, so that what the program counts in Python is one ahead."""
    loops_apart: bool = False
    before: int = 0
    """Whether loops that train other variables were taken for other trainings."""
    made: Mapping[str, Array] | None = None
    """Initial values as the program made them, before it was given others; None: not looked at."""
    cpu: float | None = None
    apart: Mapping[tuple[str, str, str, int], float] | None = None
    unmoved: bool | None = None
    lines: Mapping[str, Lines] = field(default_factory=dict)
    printed: tuple[float, ...] = ()
    printed_whole: tuple[int, ...] = ()
    """Numbers without a point that the tasks printed, in their order; True is 1."""
    conditional: bool = False
    racing: tuple[str, ...] = ()


# -- packed tensors --

Components = list[tuple[str, str, tuple[int, ...], str]]
_DTYPES: dict[int, tuple[str, str]] = {
    1: ("float32", "<f4"),
    2: ("float64", "<f8"),
    3: ("int32", "<i4"),
    4: ("uint8", "u1"),
    5: ("int16", "<i2"),
    6: ("int8", "i1"),
    8: ("complex64", "<c8"),
    9: ("int64", "<i8"),
    10: ("bool", "?"),
    14: ("bfloat16", "<u2"),
    17: ("uint16", "<u2"),
    18: ("complex128", "<c16"),
    19: ("float16", "<f2"),
    22: ("uint32", "<u4"),
    23: ("uint64", "<u8"),
}
_STRING = 7


def decode_tensor(data: bytes) -> tuple[str, Array]:
    """(dtype name, array) of a serialized TensorProto; strings are an object array of bytes, bfloat16 its
    16 raw bits.

    Raises ValueError when the bytes are no such thing.
    """
    dtype, shape, content, strings = 0, [], b"", []
    try:
        for number, value in fields(data):
            if number == 1 and isinstance(value, int):
                dtype = value
            elif number == 2 and isinstance(value, bytes):
                shape = [_dimension(one) for key, one in fields(value) if key == 2 and isinstance(one, bytes)]
            elif number == 4 and isinstance(value, bytes):
                content = value
            elif number == 8 and isinstance(value, bytes):
                strings.append(value)
    except (IndexError, struct.error) as error:
        raise ValueError("truncated tensor") from error
    if dtype == _STRING:
        text = np.empty(len(strings), dtype=object)
        text[:] = strings
        return "string", text.reshape(shape)
    if dtype not in _DTYPES:
        raise ValueError(f"tensor of type {dtype}")
    name, code = _DTYPES[dtype]
    return name, np.frombuffer(content, dtype=code).reshape(shape)


def _numbers(dtype: str, value: Array) -> Array:
    """What `decode_tensor` read as numbers that can be compared: bfloat16 as float32, whose upper half it is."""
    return (value.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else value


def _dimension(data: bytes) -> int:
    return next((value for key, value in fields(data) if key == 1 and isinstance(value, int)), 0)


def _unpack(path: Path, content: bytes | None = None) -> tuple[dict[str, Any], list[tuple[str, Array]]]:
    header, tensors = _unpack_some(path, content)
    if any(tensor is None for tensor in tensors):
        raise RecordingError(f"{path} cannot be read: a tensor is missing")
    return header, [tensor for tensor in tensors if tensor is not None]


def _unpack_some(path: Path, content: bytes | None = None) -> tuple[dict[str, Any], list[tuple[str, Array] | None]]:
    """The packed tensors of a file, or of a record in it; None in the place of a tensor that was left out."""
    try:
        _, vector = decode_tensor(path.read_bytes() if content is None else content)
        header = json.loads(vector[0].decode("utf-8"))
        return header, [decode_tensor(one) if one else None for one in vector[1:]]
    except (ValueError, OSError, IndexError, AttributeError) as error:
        raise RecordingError(f"{path} cannot be read: {error}") from error


def _number(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(0x80 | value & 0x7F)
        value >>= 7
    made.append(value)
    return bytes(made)


def _field(number: int, content: bytes) -> bytes:
    return _number(number << 3 | 2) + _number(len(content)) + content


def encode_tensor(dtype: str, value: Array) -> bytes:
    """A tensor as `decode_tensor` reads it; strings are an object array of bytes, bfloat16 its 16 raw bits."""
    codes = {name: number for number, (name, _) in _DTYPES.items()} | {"string": _STRING}
    shape = b"".join(_field(2, _number(1 << 3) + _number(int(size))) for size in value.shape)
    head = _number(1 << 3) + _number(codes[dtype]) + _field(2, shape)
    if dtype == "string":
        return head + b"".join(_field(8, bytes(one)) for one in value.reshape(-1))
    return head + _field(4, np.ascontiguousarray(value, _DTYPES[codes[dtype]][1]).tobytes())


def _packed(header: Mapping[str, Any], tensors: Sequence[tuple[str, Array]]) -> bytes:
    vector = np.empty(1 + len(tensors), dtype=object)
    vector[0] = json.dumps(header, sort_keys=True).encode()
    vector[1:] = [encode_tensor(dtype, value) for dtype, value in tensors]
    return encode_tensor("string", vector)


# -- digests --


def _component_digest(dtype: str, value: Array) -> str:
    digest = hashlib.sha256(f"{dtype}{list(value.shape)}".encode())
    if value.dtype == object:
        for item in value.reshape(-1):
            digest.update(struct.pack("<q", len(item)))
            digest.update(item)
    else:
        digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def _content(path: Path, place: packed.Place) -> Components:
    """The components of a batch that is there itself."""
    header, tensors = _unpack(path, _record(path, place))
    return [
        (name, dtype, tuple(int(n) for n in value.shape), _component_digest(dtype, value))
        for name, (dtype, value) in zip(header["paths"], tensors, strict=True)
    ]


def _described(header: Mapping[str, Any], tensors: Sequence[tuple[str, Array]]) -> Components:
    """The components of a batch of which digests and shapes were recorded with the step."""
    if not tensors:
        return []
    digests = [f"{int(value):016x}" for value in tensors[0][1]]
    shapes = [tuple(int(n) for n in shape) for _, shape in tensors[1:]]
    return list(zip(header["paths"], header["dtypes"], shapes, digests, strict=True))


def _batch(components: Components, task: str, step: int, kept: bool) -> Batch:
    ordered = tuple(sorted(components))
    digest = hashlib.sha256(json.dumps(ordered).encode()).hexdigest()
    # The labels first: of a ragged or sparse batch of features the first axis is that of its values.
    sizes = {path: shape[0] for path, _, shape, _ in ordered if shape}
    size = next((one for path, one in sizes.items() if path.startswith("labels")), next(iter(sizes.values()), 0))
    return Batch(task=task, step=step, digest=digest, size=size, components=ordered, kept=kept)


# -- reading --


def _trainer_rank(task: str) -> tuple[int, str, int]:
    kind, _, index = task.partition(":")
    return {"chief": 0, "master": 0, "local": 0, "worker": 1}.get(kind, 2), kind, int(index or 0)


def _places(path: Path) -> tuple[packed.Place, ...]:
    try:
        return packed.places(path)
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path} cannot be read: {error}") from error


def _record(path: Path, place: packed.Place) -> bytes:
    try:
        return packed.content(path, place)
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error}") from error


def _records(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        yield from packed.contents(path) if path.exists() else ()
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path} cannot be read: {error}") from error


def _numbered(folder: Path) -> list[Path]:
    """Files whose name (without suffix) is a number, ascending."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if path.stem.isdigit()), key=lambda path: int(path.stem))


# Larger arrays stay in their file: of a program of 100 million weights not all recordings fit into memory.
_MAPPED_BYTES = 1 << 20


def _arrays(path: Path) -> dict[str, Array]:
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            members = {one.filename.removesuffix(".npy"): one for one in archive.infolist()}
            return {name: _member(path, stream, archive, one) for name, one in members.items()}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise RecordingError(f"{path} cannot be read: {error}") from error


def _member(path: Path, stream: BinaryIO, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Array:
    """An array of an npz file; a large one as a map of the file, which is stored as it is."""
    if member.file_size < _MAPPED_BYTES or member.compress_type != zipfile.ZIP_STORED:
        with archive.open(member) as content:
            read: Array = np.lib.format.read_array(content, allow_pickle=False)
            return read
    stream.seek(member.header_offset + 26)
    name, extra = struct.unpack("<HH", stream.read(4))
    stream.seek(member.header_offset + 30 + name + extra)
    version = np.lib.format.read_magic(stream)
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = header(stream)
    return np.memmap(path, dtype, "r", offset=stream.tell(), shape=shape, order="F" if fortran else "C")


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise RecordingError(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise RecordingError(f"{path} holds no object")
    return value


def task_folders(record_dir: Path) -> dict[str, Path]:
    """Folder of every task that wrote something, trainers first."""
    if not record_dir.is_dir():
        raise RecordingError(f"{record_dir} is no folder: nothing was recorded")
    found = {
        f"{kind}:{index}": path
        for path in record_dir.iterdir()
        for kind, _, index in [path.name.rpartition("-")]
        if kind and index.isdigit() and path.is_dir()
    }
    return {task: found[task] for task in sorted(found, key=_trainer_rank)}


def _batch_of(
    path: Path,
    place: packed.Place | None,
    header: Mapping[str, Any] | None,
    tensors: Sequence[tuple[str, Array]],
    task: str,
    step: int,
) -> Batch | None:
    if header is not None:
        return _batch(_described(header, tensors), task, step, place is not None)
    return None if place is None else _batch(_content(path, place), task, step, True)


def _steps(tasks: Mapping[str, Path]) -> tuple[tuple[Step, ...], tuple[Batch, ...]]:
    steps: list[Step] = []
    batches: list[Batch] = []
    for task, folder in tasks.items():
        further = _further(folder)
        kept = {place.number: place for place in _places(folder / "batches")}
        for number, (time, content) in enumerate(_records(folder / "steps"), start=1):
            header, tensors = _unpack(folder / "steps", content)
            count = len(header["fields"])
            values = {name: float(value) for name, (_, value) in zip(header["fields"], tensors[:count], strict=True)}
            described = header.get("components")
            batch = _batch_of(folder / "batches", kept.get(time), described, tensors[count:], task, number)
            if batch is not None:
                batches.append(batch)
            steps.append(
                Step(
                    number=number,
                    task=task,
                    loss=values.get("loss", float("nan")) + sum(further.get(number, ())),
                    learning_rate=values.get("learning_rate"),
                    batch=None if batch is None else batch.digest,
                    time=time / 1e6,
                    counted=int(values["counted"]) if "counted" in values else None,
                )
            )
    steps.sort(key=lambda step: (step.number, _trainer_rank(step.task)))
    batches.sort(key=lambda batch: (batch.step, _trainer_rank(batch.task)))
    return tuple(steps), tuple(batches)


def _further(folder: Path) -> dict[int, list[float]]:
    """The losses of further parts of steps, by the number of the step: other functions train on the same batch."""
    found: dict[int, list[float]] = {}
    for step, content in _records(folder / "more"):
        header, tensors = _unpack(folder / "more", content)
        loss = next(float(value) for name, (_, value) in zip(header["fields"], tensors, strict=False) if name == "loss")
        found.setdefault(step, []).append(loss)
    return found


def _whole(path: Path) -> dict[str, Array]:
    """Whole arrays by name: of an npz file, or of the parts that a train step wrote itself."""
    if path.suffix == ".npz":
        return _arrays(path)
    header, tensors = _unpack(path)
    whole: dict[str, Array] = {}
    for part, (dtype, raw) in zip(header["parts"], tensors, strict=True):
        name, value = part["name"], _numbers(dtype, raw)
        if value.shape == tuple(part["whole"]):
            whole[name] = value
            continue
        if name not in whole:
            whole[name] = np.zeros(part["whole"], value.dtype)
        place = tuple(slice(start, start + size) for start, size in zip(part["offset"], value.shape, strict=True))
        whole[name][place] = value
    return whole


def _gradients(tasks: Mapping[str, Path], kind: str, replicas: int) -> OnDisk[dict[str, Array]]:
    """Gradients by step: of the first task that has them, or summed over the replicas when each wrote its
    own.
    """
    paths: dict[int, list[Path]] = {}
    for folder in tasks.values():
        for path in _numbered(folder / "gradients"):
            paths.setdefault(int(path.stem), []).append(path)
    return OnDisk({step: _summed(own if kind == "local" and replicas > 1 else own[:1]) for step, own in paths.items()})


def _with_parts(path: Path) -> dict[str, Array]:
    """Whole arrays of a step, those of its further parts among them."""
    whole = _whole(path)
    for part in sorted(path.parent.glob(f"{path.stem}+*")):
        for name, value in _whole(part).items():
            whole[name] = whole[name] + value if name in whole else value
    return whole


def _summed(paths: Sequence[Path]) -> Callable[[], dict[str, Array]]:
    def read_all() -> dict[str, Array]:
        total = _with_parts(paths[0])
        for path in paths[1:]:
            other = _with_parts(path)
            total = {name: value + other[name] for name, value in total.items()}
        return total

    return read_all


def _states(folder: Path) -> OnDisk[dict[str, Array]]:
    return OnDisk({int(path.stem): _summed([path]) for path in _numbered(folder / "states")})


def _slots(folder: Path) -> OnDisk[dict[tuple[str, str], Array]]:
    return OnDisk({int(path.stem): _slots_of(path) for path in _numbered(folder / "slots")})


def _slots_of(path: Path) -> Callable[[], dict[tuple[str, str], Array]]:
    def read_one() -> dict[tuple[str, str], Array]:
        entries: dict[tuple[str, str], Array] = {}
        # Of optimizers that take their first step later on: they hold what they begin with.
        late = path.with_name("late.npz")
        for key, value in {**(_arrays(late) if late.exists() else {}), **_whole(path)}.items():
            variable, _, slot = key.rpartition("|")
            entries[variable, slot] = value
        return entries

    return read_one


def _rates(steps: Sequence[Step], replicas: int) -> dict[int, float | None]:
    """Learning rates by global step, which synchronous replicas take together and other trainers one after another."""
    if replicas > 1:
        taken = [step for step in steps if step.task == steps[0].task]
    else:
        taken = sorted(steps, key=lambda step: step.time)
    return {number: step.learning_rate for number, step in enumerate(taken, start=1)}


def _optimizer(entry: Mapping[str, Any]) -> Optimizer:
    others = tuple(_optimizer(other) for other in entry.get("others", []))
    return Optimizer(entry["name"], entry["settings"], others, bool(entry.get("own", False)))


def _canonical_slots(
    raw: Mapping[int, dict[tuple[str, str], Array]], rates: Mapping[int, float | None]
) -> OnDisk[dict[tuple[str, str], Array]]:
    """Keras' momentum slots as TensorFlow 1's accumulators; absent where the rate is zero, unknown or was
    changed.
    """

    def of(number: int) -> Callable[[], dict[tuple[str, str], Array]]:
        used = {rates.get(step) for step in range(1, number + 1)}
        rate = next(iter(used)) if len(used) == 1 else None

        def read_one() -> dict[tuple[str, str], Array]:
            found: dict[tuple[str, str], Array] = {}
            for (variable, slot), value in raw[number].items():
                if slot != "momentum":
                    found[variable, slot] = value
                elif rate:
                    found[variable, slot] = value / -value.dtype.type(rate)
            return found

        return read_one

    return OnDisk({number: of(number) for number in raw})


def _results(value: Any) -> dict[str, float] | None:
    return None if value is None else {str(name): float(number) for name, number in value.items()}


def _evaluations(tasks: Mapping[str, Path]) -> tuple[Evaluation, ...]:
    found: list[tuple[float, Evaluation]] = []
    for task, folder in tasks.items():
        path = folder / "evaluations.jsonl"
        if path.exists():
            for line in path.read_text().splitlines():
                try:
                    entry = json.loads(line)
                    evaluation = Evaluation(
                        task=task,
                        step=None if entry["step"] is None else int(entry["step"]),
                        results=_results(entry["results"]) or {},
                        same_weights=_results(entry.get("same_weights")),
                        weights_step=entry.get("weights_step"),
                        control=_results(entry.get("control")),
                        note=entry.get("note", ""),
                        nudged=tuple(_results(one) or {} for one in entry.get("nudged", [])),
                        unasked=frozenset(map(str, entry.get("unasked", []))),
                    )
                    found.append((float(entry["time"]), evaluation))
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise RecordingError(f"{path} cannot be read: {error}") from error
    return tuple(evaluation for _, evaluation in sorted(found, key=lambda one: one[0]))


def _predictions(tasks: Mapping[str, Path]) -> tuple[Prediction, ...]:
    """Those of the first task that predicts, in the order of its calls."""
    for task, folder in tasks.items():
        found = []
        for path in _numbered(folder / "predictions"):
            if path.suffix != ".npz":
                continue
            said = _json(path.with_suffix(".json"))
            outputs: dict[str, dict[str, Array]] = {}
            for name, value in _arrays(path).items():
                what, _, output = name.partition("|")
                outputs.setdefault(what, {})[output] = value
            found.append(
                Prediction(
                    task=task,
                    step=said["step"],
                    outputs=outputs.get("own", {}),
                    same_weights=outputs.get("same"),
                    weights_step=said.get("weights_step"),
                    control=outputs.get("control"),
                    nudged=tuple(value for what, value in sorted(outputs.items()) if what.startswith("nudged")),
                    note=str(said.get("note", "")),
                )
            )
        if found:
            return tuple(found)
    return ()


def _exports(tasks: Mapping[str, Path]) -> tuple[Export, ...]:
    """Those of all tasks, in the order of the tasks and of their writing."""
    found = []
    for folder in tasks.values():
        path = folder / "exports.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                entry = json.loads(line)
                found.append(Export(entry["path"], folder / "exports" / entry["name"] if entry["kept"] else None))
            except (ValueError, KeyError, TypeError) as error:
                raise RecordingError(f"{path} cannot be read: {error}") from error
    return tuple(found)


def _effects(tasks: Mapping[str, Path]) -> tuple[Effect, ...]:
    for folder in tasks.values():
        path = folder / "effects.jsonl"
        if path.exists():
            try:
                entries = map(json.loads, path.read_text().splitlines())
                return tuple(Effect(str(one["kind"]), int(one["step"]), str(one["name"])) for one in entries)
            except (ValueError, KeyError, TypeError) as error:
                raise RecordingError(f"{path} cannot be read: {error}") from error
    return ()


def _activations(tasks: Mapping[str, Path]) -> dict[str, Array]:
    """Of the first trainer that wrote them; each trainer's are its own first step's."""
    for folder in tasks.values():
        for path in _numbered(folder / "activations"):
            header, tensors = _unpack_some(path)
            pairs = zip(header["names"], tensors, strict=True)
            return {name: _numbers(*tensor) for name, tensor in pairs if tensor is not None}
    return {}


def _mutation(tasks: Mapping[str, Path]) -> int | None:
    """Each process makes the same changes to what it has of the same program, so they are not added up."""
    changed = [int(_json(path)["changed"]) for folder in tasks.values() for path in folder.glob("mutant.json")]
    return max(changed, default=None)


def evaluation_weights(record_dir: Path) -> dict[int, Path]:
    """The npz files with the weights that an original evaluated, by global step; names are those of the checkpoint."""
    found: dict[int, Path] = {}
    for folder in task_folders(Path(record_dir)).values():
        for path in _numbered(folder / "evaluations"):
            found.setdefault(int(path.stem), path)
    return dict(sorted(found.items()))


def _unrecorded(tasks: Mapping[str, Path]) -> None:
    """Raises UnrecordedTraining if a task noted that it trains in a way that is not recorded."""
    for task, folder in tasks.items():
        if (folder / "unrecorded.json").exists():
            noted = _json(folder / "unrecorded.json")
            line = noted.get("line")
            place = f" ({line[0]}:{line[1]})" if line else ""
            how = f"{task} trains with {noted['what']}{place}"
            seen = "Estimator.train, of a session, of Model.fit, of a tf.function or of batches of a tf.data.Dataset"
            raise UnrecordedTraining(f"{how}; only the steps of {seen} are recorded")


def read(record_dir: Path) -> Recording:
    """The recording in a folder.

    Raises RecordingError when no task described its program (training never started) or a file is broken, and
    UnrecordedTraining when a task trained in a way that is not recorded.
    """
    record_dir = Path(record_dir)
    tasks = task_folders(record_dir)
    leader = next((folder for folder in tasks.values() if (folder / "program.json").exists()), None)
    if leader is None:
        _unrecorded(tasks)
        raise RecordingError("no task of the run reached training: nothing was recorded")
    program = _json(leader / "program.json")
    steps, batches = _steps(tasks)
    replicas = int(program["replicas"])
    holder = next((folder for folder in tasks.values() if _numbered(folder / "states")), leader)
    rates = _rates(steps, replicas)
    raw = _slots(holder)
    started = next((folder for folder in tasks.values() if (folder / "initial.npz").exists()), None)
    described = program["optimizer"]
    points, whole = _printed(record_dir / "printed.json")
    return Recording(
        program=program["program"],
        tensorflow=program["tensorflow"],
        keras=program["keras"],
        variables=tuple(
            Variable(
                name=entry["name"],
                shape=tuple(entry["shape"]),
                dtype=entry["dtype"],
                trainable=entry["trainable"],
                order=entry["order"],
                shards=entry["shards"],
            )
            for entry in program["variables"]
        ),
        initial=_arrays(started / "initial.npz") if started else {},
        steps=steps,
        batches=batches,
        states=_states(holder),
        slots=_canonical_slots(raw, rates) if program["raw_slots"] else raw,
        gradients=_gradients(tasks, program["gradients"], replicas),
        optimizer=_optimizer(described) if described else None,
        regularizers=int(program["regularizers"]),
        regularization=program["regularization"],
        update_ops=int(program["update_ops"]),
        dropout_rates=tuple(float(rate) for rate in program["dropout_rates"] if rate is not None),
        replicas=replicas,
        evaluations=_evaluations(tasks),
        participation={
            task: count for task in tasks for count in [sum(1 for step in steps if step.task == task)] if count
        },
        raw_slots=raw,
        dropout_inputs=tuple(
            None if shape is None else tuple(int(size) for size in shape) for shape in program.get("dropout_inputs", [])
        ),
        dropout_after=tuple(program.get("dropout_after", [])),
        dropout_loops=tuple(program.get("dropout_loops", [])),
        cpu=_cpu(tasks),
        apart=_apart(tasks),
        lines=_lines(tasks),
        made=_arrays(started / "made.npz") if started and (started / "made.npz").exists() else None,
        drawn=_arrays(started / "drawn.npz") if started and (started / "drawn.npz").exists() else {},
        draws=int(program.get("draws", 0)),
        anew=bool(program.get("anew", False)),
        training=int(program.get("training", 0)),
        origins=_origins(program.get("origins")),
        activations=_activations(tasks),
        sources={what: SourceLine(path, int(line)) for what, (path, line) in program.get("sources", {}).items()},
        mutation=_mutation(tasks),
        replicas_of_batch=int(program.get("replicas_of_batch", 1)),
        stand_in=_stand_in(tasks),
        own_workers=int(program.get("own_workers", 0)),
        other_trainings=_other_trainings(tasks),
        in_step=bool(program.get("in_step", False)),
        conditional=bool(program.get("conditional", False)),
        racing=tuple(program.get("racing", ())),
        loop=bool(program.get("loop", False)),
        first_batch=None if program.get("first_batch") is None else int(program["first_batch"]),
        requests=int(program.get("requests", 1)),
        carried=bool(program.get("carried", False)),
        own_counts=int(program.get("own_counts", 0)),
        by_hand=bool(program.get("by_hand", False)),
        twice=bool(program.get("twice", False)),
        loops_apart=bool(program.get("apart", False)),
        before=int(program.get("before", 0)),
        rate_constants=tuple(int(one) for one in program.get("rate_constants", ())),
        slot_variables={
            (variable, slot): str(name)
            for key, name in program.get("slot_variables", {}).items()
            for variable, _, slot in [key.rpartition("|")]
        },
        thresholds=None if "thresholds" not in program else tuple(float(one) for one in program["thresholds"]),
        halves=None if "halves" not in program else tuple(program["halves"]),
        predictions=_predictions(tasks),
        exports=_exports(tasks),
        shuffles=None if program.get("shuffles") is None else tuple(Shuffle.read(one) for one in program["shuffles"]),
        effects=_effects(tasks),
        summaries=_summaries(record_dir / "summaries.json"),
        printed=points,
        printed_whole=whole,
    )


def _lines(tasks: Mapping[str, Path]) -> dict[str, Lines]:
    found: dict[str, Lines] = {}
    for folder in tasks.values():
        for path in folder.glob("lines.json"):
            for name, one in _json(path).items():
                before = found.get(name, Lines(frozenset(), frozenset()))
                taken, branches = ({(int(line), str(kind)) for line, kind in one[key]} for key in ("taken", "branches"))
                found[name] = Lines(
                    before.ran | set(one["ran"]),
                    before.of | set(one["of"]),
                    before.taken | taken,
                    before.branches | branches,
                )
    return found


def _apart(tasks: Mapping[str, Path]) -> dict[tuple[str, str, str, int], float] | None:
    path = next((folder / APART for folder in tasks.values() if (folder / APART).exists()), None)
    if path is None:
        return None
    try:
        rows = json.loads(path.read_text())
        return {(str(family), str(name), str(slot), int(step)): float(one) for family, name, slot, step, one in rows}
    except (OSError, ValueError, TypeError) as error:
        raise RecordingError(f"{path} cannot be read: {error}") from error


def _cpu(tasks: Mapping[str, Path]) -> float | None:
    """The processor seconds of all trainers between their first step and their last; None where they are not known."""
    found = []
    for folder in tasks.values():
        path = folder / "cpu.jsonl"
        if path.exists():
            try:
                taken = {
                    int(one["step"]): float(one["seconds"]) for one in map(json.loads, path.read_text().splitlines())
                }
            except (ValueError, KeyError, TypeError) as error:
                raise RecordingError(f"{path} cannot be read: {error}") from error
            found += [taken[max(taken)] - taken[1]] if len(taken) > 1 and 1 in taken else []
    return sum(found) if found else None


def _printed(path: Path) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """The numbers with a point, and those without one."""
    try:
        told = json.loads(path.read_text()) if path.exists() else {"points": (), "whole": ()}
        return tuple(map(float, told["points"])), tuple(map(int, told["whole"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise RecordingError(f"{path} cannot be read: {error}") from error


def _summaries(path: Path) -> dict[str, dict[int, float | None]]:
    return (
        {tag: {int(step): number for step, number in rows} for tag, rows in _json(path).items()}
        if path.exists()
        else {}
    )


def _origins(described: dict[str, Any] | None) -> Origins | None:
    if described is None:
        return None
    return Origins(
        frozenset((int(place), name) for place, names in described["known"] for name in names),
        {name: tuple((int(place), source) for place, source in sources) for name, sources in described["of"].items()},
    )


def _other_trainings(tasks: Mapping[str, Path]) -> int:
    paths = [folder / "other_trainings.jsonl" for folder in tasks.values()]
    models = [{json.loads(line)["model"] for line in path.read_text().splitlines()} for path in paths if path.exists()]
    return max((len(one) for one in models), default=0)


def _stand_in(tasks: Mapping[str, Path]) -> StandIn | None:
    for folder in tasks.values():
        if (folder / "stand_in.json").exists():
            found = _json(folder / "stand_in.json")
            return StandIn(str(found["stands_for"]), int(found["cores"]))
    return None


def beginning(recording: Recording, steps: int) -> Recording:
    """The recording as if training had ended after `steps` steps of each trainer, with nothing evaluated."""

    return replace(
        with_states(recording, range(steps + 1)),
        steps=tuple(step for step in recording.steps if step.number <= steps),
        batches=tuple(batch for batch in recording.batches if batch.step <= steps),
        participation={task: min(count, steps) for task, count in recording.participation.items()},
        evaluations=(),
        predictions=(),
        exports=(),
        effects=(),
        summaries={},
    )


def with_states(recording: Recording, steps: Collection[int]) -> Recording:
    """The recording with the weights, slots and gradients of these steps alone."""

    def of(table: Mapping[int, Any]) -> Mapping[int, Any]:
        return later({step: step for step in table if step in steps}, table.__getitem__)

    return replace(
        recording,
        states=of(recording.states),
        slots=of(recording.slots),
        raw_slots=of(recording.raw_slots),
        gradients=of(recording.gradients),
    )


def chosen_batches(
    record_dir: Path,
    target: Path,
    chosen: Sequence[tuple[Sequence[Batch], Callable[[str, Array], Array]]],
) -> Path:
    """Writes some batches of a run, those that its trainers took together, to another record folder in this order, each
    component as a function of its path and value makes it; returns `target`.
    """
    for number, (batch, change) in enumerate((one, change) for batches, change in chosen for one in batches):
        place = target / batch.task.replace(":", "-") / "batches"
        place.mkdir(parents=True, exist_ok=True)
        header, tensors = _unpacked_batch(Path(record_dir), batch)
        paths = header["paths"]
        made = [(dtype, change(path, value)) for path, (dtype, value) in zip(paths, tensors[: len(paths)], strict=True)]
        # Behind the components stands how many examples each of several replicas has.
        (place / f"{number:018d}").write_bytes(_packed(header, made + list(tensors[len(paths) :])))
    return target


def converted_batches(
    record_dir: Path, target: Path, convert: Callable[[dict[str, Array]], Mapping[str, Array]]
) -> Path:
    """Writes the batches of a run to another record folder, for replay, each as `convert` makes it; the folder."""
    for task, folder in task_folders(Path(record_dir)).items():
        place = target / task.replace(":", "-")
        (place / "batches").mkdir(parents=True)
        for number, content in _batch_contents(folder / "batches"):
            header, tensors = _unpack(folder / "batches", content)
            paths = header["paths"]
            own = {name: value for name, (_, value) in zip(paths, tensors[: len(paths)], strict=True)}
            made = convert(own)
            types = {name: "string" if value.dtype == object else value.dtype.name for name, value in made.items()}
            described = {"paths": list(made), "dtypes": [types[name] for name in made]}
            converted = [(types[name], np.asarray(value)) for name, value in made.items()]
            all_of = _packed(described, converted + list(tensors[len(paths) :]))
            (place / "batches" / f"{number:018d}").write_bytes(all_of)
        if (folder / "calls.jsonl").exists():
            (place / "calls.jsonl").write_bytes((folder / "calls.jsonl").read_bytes())
    return target


def read_batch(record_dir: Path, batch: Batch) -> dict[str, Array]:
    """The arrays of a recorded batch by path ("features/x", "labels"); strings are object arrays of bytes."""
    header, tensors = _unpacked_batch(Path(record_dir), batch)
    paths = header["paths"]  # behind the components stands how many examples each of several replicas has
    return {name: value for name, (_, value) in zip(paths, tensors[: len(paths)], strict=True)}


def _unpacked_batch(record_dir: Path, batch: Batch) -> tuple[dict[str, Any], list[tuple[str, Array]]]:
    """Header and tensors of a recorded batch."""
    folder = record_dir / batch.task.replace(":", "-")
    steps, path = _places(folder / "steps"), folder / "batches"
    if not 1 <= batch.step <= len(steps):
        raise RecordingError(f"no step {batch.step} of {batch.task} in {record_dir}")
    time, places = steps[batch.step - 1].number, _places(path)
    at = bisect_left(places, time, key=lambda place: place.number)
    if at == len(places) or places[at].number != time:
        raise RecordingError(f"{path} cannot be read: the batch of step {batch.step} was not kept")
    return _unpack(path, _record(path, places[at]))


def _batch_contents(path: Path) -> Iterator[tuple[int, bytes]]:
    """The batches of a task: of its record, or of a folder for replay that has a file for each."""
    if not path.is_dir():
        yield from _records(path)
        return
    for one in _numbered(path):
        yield int(one.name), one.read_bytes()
