"""The reader on small record folders made by hand, without TensorFlow."""

import hashlib
import importlib.util
import json
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator.harness import packed as packed_file
from migrator.harness.recording import (
    Evaluation,
    RecordingError,
    SourceLine,
    Step,
    _arrays,
    _evaluations,
    _packed,
    _whole,
    chosen_batches,
    converted_batches,
    decode_tensor,
    encode_tensor,
    evaluation_weights,
    read,
    read_batch,
)

INSIDE = Path(packed_file.__file__).with_name("inside") / "appended.py"
specification = importlib.util.spec_from_file_location("inside_appended", INSIDE)
assert specification is not None and specification.loader is not None
appended = importlib.util.module_from_spec(specification)
specification.loader.exec_module(appended)

FLOAT, INT64, STRING, BOOL = 1, 9, 7, 10
CODES = {"float32": FLOAT, "int64": INT64, "bool": BOOL}


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def shape_of(dimensions: Sequence[int]) -> bytes:
    return field(2, b"".join(field(2, b"\x08" + varint(size)) for size in dimensions))


def tensor(value: Any) -> bytes:
    """A TensorProto as TensorFlow's SerializeTensor writes it."""
    if isinstance(value, list):
        return b"\x08" + varint(STRING) + shape_of([len(value)]) + b"".join(field(8, item) for item in value)
    value = np.asarray(value)
    return b"\x08" + varint(CODES[value.dtype.name]) + shape_of(value.shape) + field(4, value.tobytes())


def packed(header: dict[str, Any], tensors: Sequence[Any]) -> bytes:
    return tensor([json.dumps(header).encode(), *(tensor(one) for one in tensors)])


def program(**changes: Any) -> dict[str, Any]:
    description: dict[str, Any] = {
        "program": "original",
        "tensorflow": "2.15.1",
        "keras": None,
        "variables": [
            {
                "name": "dense/kernel",
                "shape": [2, 1],
                "dtype": "float32",
                "trainable": True,
                "order": 0,
                "shards": 2,
            }
        ],
        "optimizer": {"name": "SGD", "settings": {"learning_rate": 0.5, "nesterov": False}},
        "raw_slots": False,
        "regularizers": 1,
        "regularization": 0.25,
        "update_ops": 0,
        "dropout_rates": [0.5],
        "replicas": 1,
        "gradients": "local",
    }
    return description | changes


def add_step(record: Path, task: str, stamp: int, loss: float, rate: float = 0.5, batch: Any = None) -> None:
    folder = record / task
    fields = {"fields": ["loss", "learning_rate"]}
    append(folder / "steps", stamp, packed(fields, [np.float32(loss), np.float32(rate)]))
    if batch is not None:
        header = {"paths": list(batch), "dtypes": [str(np.asarray(one).dtype) for one in batch.values()]}
        append(folder / "batches", stamp, packed(header, list(batch.values())))


def append(path: Path, number: int, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    appended.append(str(path), number, content)


def save(record: Path, task: str, name: str, **arrays: Any) -> None:
    path = record / task / name
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **{key: np.asarray(value, np.float32) for key, value in arrays.items()})


def describe(record: Path, task: str, **changes: Any) -> None:
    (record / task).mkdir(parents=True, exist_ok=True)
    (record / task / "program.json").write_text(json.dumps(program(**changes)))


@pytest.mark.parametrize(
    "value",
    [
        np.array([[1.5, -2.0], [0.1, 3e38]], np.float32),
        np.array([1, -1, 2**40], np.int64),
        np.array([True, False]),
        np.array(7.0, np.float32),
        np.zeros((0, 3), np.float32),
    ],
)
def test_decode_numbers(value: Any) -> None:
    name, decoded = decode_tensor(tensor(value))
    assert name == value.dtype.name
    assert decoded.shape == value.shape
    np.testing.assert_array_equal(decoded, value)


def test_decode_strings_keeps_trailing_zeros() -> None:
    name, decoded = decode_tensor(tensor([b"a\0", b"", b"\xff" * 300]))
    assert name == "string"
    assert decoded.tolist() == [b"a\0", b"", b"\xff" * 300]


@pytest.mark.parametrize("cut", [1, 3, 7, 12])
def test_decode_refuses_truncated_bytes(cut: int) -> None:
    whole = tensor(np.arange(6, dtype=np.float32))
    with pytest.raises(ValueError):
        decode_tensor(whole[:-cut])


def test_steps_are_counted_per_task_and_sorted_by_number(tmp_path: Path) -> None:
    describe(tmp_path, "chief-0")
    # Written by time; the worker's steps lie between those of the chief.
    add_step(tmp_path, "chief-0", 100, 4.0)
    add_step(tmp_path, "worker-10", 105, 3.0)
    add_step(tmp_path, "worker-2", 110, 2.5, rate=0.25)
    add_step(tmp_path, "chief-0", 999999, 2.0)
    recording = read(tmp_path)
    assert recording.steps == (
        Step(1, "chief:0", 4.0, 0.5, None, time=100e-6),
        Step(1, "worker:2", 2.5, 0.25, None, time=110e-6),
        Step(1, "worker:10", 3.0, 0.5, None, time=105e-6),
        Step(2, "chief:0", 2.0, 0.5, None, time=0.999999),
    )
    assert recording.participation == {"chief:0": 2, "worker:2": 1, "worker:10": 1}


def test_further_parts_of_a_step_belong_to_it(tmp_path: Path) -> None:
    """Functions of their own train on one batch: a GAN's discriminator, and its generator behind it."""
    describe(tmp_path, "local-0")
    for number, loss in enumerate((4.0, 3.0), start=1):
        add_step(tmp_path, "local-0", 100 * number, loss)
    for loss in (0.5, 0.25):
        header = {"fields": ["loss", "learning_rate"]}
        append(tmp_path / "local-0" / "more", 2, packed(header, [np.float32(loss), np.float32(0.1)]))
    for name, arrays in (("1", {"a": [1.0]}), ("2", {"a": [2.0]}), ("2+1", {"b": [3.0]}), ("2+2", {"a": [0.5]})):
        save(tmp_path, "local-0", f"gradients/{name}.npz", **arrays)
    save(tmp_path, "local-0", "slots/1.npz", **{"a|momentum": [1.0]})
    save(tmp_path, "local-0", "slots/2.npz", **{"a|momentum": [2.0], "b|momentum": [3.0]})
    save(tmp_path, "local-0", "slots/late.npz", **{"b|momentum": [0.0]})
    recording = read(tmp_path)
    assert [(step.number, step.loss, step.learning_rate) for step in recording.steps] == [(1, 4.0, 0.5), (2, 3.75, 0.5)]
    gradients = {step: {name: float(one[0]) for name, one in of.items()} for step, of in recording.gradients.items()}
    assert gradients == {1: {"a": 1.0}, 2: {"a": 2.5, "b": 3.0}}
    # What takes its first step later on has held what it begins with until then.
    slots = {step: {name: float(one[0]) for name, one in of.items()} for step, of in recording.slots.items()}
    assert slots == {
        1: {("a", "momentum"): 1.0, ("b", "momentum"): 0.0},
        2: {("a", "momentum"): 2.0, ("b", "momentum"): 3.0},
    }


def test_program_description(tmp_path: Path) -> None:
    describe(tmp_path, "local-0")
    save(tmp_path, "local-0", "initial.npz", **{"dense/kernel": [[1], [2]]})
    recording = read(tmp_path)
    assert recording.variables[0].name == "dense/kernel"
    assert recording.variables[0].shape == (2, 1)
    assert recording.variables[0].shards == 2
    assert recording.optimizer is not None
    assert recording.optimizer.settings == {"learning_rate": 0.5, "nesterov": False}
    assert (recording.regularizers, recording.regularization, recording.dropout_rates) == (1, 0.25, (0.5,))
    np.testing.assert_array_equal(recording.initial["dense/kernel"], np.array([[1], [2]], np.float32))


def test_batches_and_their_digests(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    describe(tmp_path, "local-0")
    add_step(tmp_path, "local-0", 1, 1.0, batch={"features/x": x, "labels": np.arange(3)})
    add_step(tmp_path, "local-0", 2, 1.0, batch={"features/x": x, "labels": np.arange(3)})
    add_step(tmp_path, "local-0", 3, 1.0, batch={"features/x": x.reshape(2, 3), "labels": np.arange(2)})
    add_step(tmp_path, "local-0", 4, 1.0, batch={"features/x": [b"ab", b"c"], "labels": np.arange(2)})
    add_step(tmp_path, "local-0", 5, 1.0, batch={"features/x": [b"a", b"bc"], "labels": np.arange(2)})
    ragged = {"features/0": np.arange(7), "features/1": np.array([0, 4, 7]), "labels": np.arange(2)}
    add_step(tmp_path, "local-0", 6, 1.0, batch=ragged)
    recording = read(tmp_path)
    digests = [batch.digest for batch in recording.batches]
    assert digests[0] == digests[1] == recording.steps[0].batch
    assert len({digests[0], digests[2], digests[3], digests[4]}) == 4
    assert [batch.size for batch in recording.batches] == [3, 3, 2, 2, 2, 2]
    path, dtype, shape, digest = recording.batches[0].components[0]
    assert (path, dtype, shape) == ("features/x", "float32", (3, 2))
    assert digest == hashlib.sha256(b"float32[3, 2]" + x.tobytes()).hexdigest()
    np.testing.assert_array_equal(read_batch(tmp_path, recording.batches[0])["features/x"], x)
    assert read_batch(tmp_path, recording.batches[3])["features/x"].tolist() == [b"ab", b"c"]


def test_a_batch_of_several_replicas_has_their_sizes_behind_its_components(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    describe(tmp_path, "local-0")
    add_step(tmp_path, "local-0", 1, 1.0, batch={"features": x})
    batch = read(tmp_path).batches[0]
    header = {"paths": ["features"], "dtypes": ["float32"]}
    (tmp_path / "local-0" / "batches").unlink()
    append(tmp_path / "local-0" / "batches", 1, packed(header, [x, np.array([2, 1])]))
    found = read_batch(tmp_path, batch)
    assert list(found) == ["features"]
    np.testing.assert_array_equal(found["features"], x)


def test_keras_momentum_becomes_the_accumulator(tmp_path: Path) -> None:
    describe(tmp_path, "local-0", raw_slots=True)
    for number in (1, 2):
        add_step(tmp_path, "local-0", number, 1.0, rate=0.5)
    save(tmp_path, "local-0", "slots/00000002.npz", **{"dense/kernel|momentum": [[-1], [2]]})
    recording = read(tmp_path)
    key = ("dense/kernel", "momentum")
    np.testing.assert_array_equal(recording.slots[2][key], np.array([[2], [-4]], np.float32))
    np.testing.assert_array_equal(recording.raw_slots[2][key], np.array([[-1], [2]], np.float32))


def test_no_accumulator_where_the_rate_changed(tmp_path: Path) -> None:
    describe(tmp_path, "local-0", raw_slots=True)
    add_step(tmp_path, "local-0", 1, 1.0, rate=0.5)
    add_step(tmp_path, "local-0", 2, 1.0, rate=0.25)
    slots = {"dense/kernel|momentum": [[1], [2]], "dense/kernel|first_moment": [[3], [4]]}
    save(tmp_path, "local-0", "slots/00000001.npz", **slots)
    save(tmp_path, "local-0", "slots/00000002.npz", **slots)
    recording = read(tmp_path)
    assert set(recording.slots[1]) == {("dense/kernel", "momentum"), ("dense/kernel", "first_moment")}
    assert set(recording.slots[2]) == {("dense/kernel", "first_moment")}


def test_gradients_of_synchronous_replicas_are_summed(tmp_path: Path) -> None:
    for task, value in (("chief-0", 1.0), ("worker-0", 2.5)):
        describe(tmp_path, task, replicas=2)
        save(tmp_path, task, "gradients/00000003.npz", w=[value, 1])
    np.testing.assert_array_equal(read(tmp_path).gradients[3]["w"], np.array([3.5, 2], np.float32))


def test_gradients_of_asynchronous_workers_are_not_summed(tmp_path: Path) -> None:
    for task, value in (("chief-0", 1.0), ("worker-0", 2.5)):
        describe(tmp_path, task, replicas=1)
        save(tmp_path, task, "gradients/00000003.npz", w=[value, 1])
    np.testing.assert_array_equal(read(tmp_path).gradients[3]["w"], np.array([1, 1], np.float32))


def test_packed_gradients_are_joined_from_parts(tmp_path: Path) -> None:
    describe(tmp_path, "chief-0", gradients="summed")
    folder = tmp_path / "worker-0" / "gradients"
    folder.mkdir(parents=True)
    whole = [3, 2]
    parts = [
        {"name": "w", "offset": [2, 0], "whole": whole},
        {"name": "w", "offset": [0, 0], "whole": whole},
    ]
    tail, head = np.array([[5, 6]], np.float32), np.array([[1, 2], [3, 4]], np.float32)
    (folder / "00000001").write_bytes(packed({"parts": parts}, [tail, head]))
    expected = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    np.testing.assert_array_equal(read(tmp_path).gradients[1]["w"], expected)


def test_states_by_step(tmp_path: Path) -> None:
    describe(tmp_path, "chief-0")
    save(tmp_path, "chief-0", "states/00000010.npz", w=[1])
    save(tmp_path, "chief-0", "states/00000002.npz", w=[2])
    assert {step: state["w"].tolist() for step, state in read(tmp_path).states.items()} == {2: [2], 10: [1]}


def test_evaluations_in_order_of_time(tmp_path: Path) -> None:
    describe(tmp_path, "chief-0")
    (tmp_path / "evaluator-0").mkdir()
    line = '{"time": 2, "step": null, "results": {"loss": 1.5}}\n'
    (tmp_path / "chief-0" / "evaluations.jsonl").write_text(line)
    lines = [
        '{"time": 1, "step": 4, "results": {"loss": 3}, "same_weights": {"loss": 2}, "weights_step": 5}',
        '{"time": 3, "step": 9, "results": {"loss": NaN}, "control": {"loss": 8}, "note": "why"}',
    ]
    (tmp_path / "evaluator-0" / "evaluations.jsonl").write_text("\n".join(lines))
    evaluations = read(tmp_path).evaluations
    assert evaluations[0] == Evaluation("evaluator:0", 4, {"loss": 3.0}, {"loss": 2.0}, 5)
    assert evaluations[1] == Evaluation("chief:0", None, {"loss": 1.5})
    assert np.isnan(evaluations[2].results["loss"])
    assert (evaluations[2].control, evaluations[2].note) == ({"loss": 8.0}, "why")


def test_the_weights_of_evaluations(tmp_path: Path) -> None:
    for task, step in (("evaluator-0", 20), ("evaluator-0", 100), ("chief-0", 3)):
        save(tmp_path, task, f"evaluations/{step:08d}.npz", w=[step])
    found = evaluation_weights(tmp_path)
    assert list(found) == [3, 20, 100]
    assert _arrays(found[20])["w"].tolist() == [20]


def test_activations_are_those_of_the_first_trainer(tmp_path: Path) -> None:
    describe(tmp_path, "chief-0")
    first, second = np.array([[1, 2]], np.float32), np.zeros((2, 0), np.float32)
    for task, names, values in (
        ("worker-1", ["other"], [first]),
        ("worker-0", ["k", "b", "k#2"], [first, second, first]),
    ):
        folder = tmp_path / task / "activations"
        folder.mkdir(parents=True)
        (folder / "00000001").write_bytes(packed({"names": names}, values))
    found = read(tmp_path).activations
    assert list(found) == ["k", "b", "k#2"]
    assert found["b"].shape == (2, 0)
    np.testing.assert_array_equal(found["k#2"], first)


def test_an_activation_that_was_too_large_is_absent(tmp_path: Path) -> None:
    describe(tmp_path, "local-0")
    folder = tmp_path / "local-0" / "activations"
    folder.mkdir(parents=True)
    header = json.dumps({"names": ["large", "small"]}).encode()
    (folder / "00000001").write_bytes(tensor([header, b"", tensor(np.ones(3, np.float32))]))
    assert list(read(tmp_path).activations) == ["small"]


def test_a_loss_that_was_left_out_is_an_error(tmp_path: Path) -> None:
    describe(tmp_path, "local-0")
    append(tmp_path / "local-0" / "steps", 1, tensor([b'{"fields": ["loss"]}', b""]))
    with pytest.raises(RecordingError, match="a tensor is missing"):
        read(tmp_path)


def test_source_lines_and_places_of_dropouts(tmp_path: Path) -> None:
    describe(tmp_path, "local-0", sources={"optimizer": ["/home/a/model.py", 12]}, dropout_after=[2, None])
    recording = read(tmp_path)
    assert recording.sources == {"optimizer": SourceLine("/home/a/model.py", 12)}
    assert recording.dropout_after == (2, None)


def test_what_a_mutant_changed(tmp_path: Path) -> None:
    describe(tmp_path, "chief-0")
    assert read(tmp_path).mutation is None
    for task, changed in (("chief-0", 0), ("worker-0", 3), ("worker-1", 2)):
        (tmp_path / task).mkdir(exist_ok=True)
        (tmp_path / task / "mutant.json").write_text(json.dumps({"id": "epsilon", "changed": changed}))
    assert read(tmp_path).mutation == 3


def test_what_a_killed_process_leaves_is_read_to_its_last_whole_record(tmp_path: Path) -> None:
    describe(tmp_path, "local-0")
    for number in (1, 2, 3):
        add_step(tmp_path, "local-0", number, float(number), batch={"features": np.ones((2, 1), np.float32)})
    for name in ("steps", "batches"):
        path = tmp_path / "local-0" / name
        content = path.read_bytes()
        third = packed_file.places(path)[2]
        for size in range(third.begin - 30, third.end):
            path.write_bytes(content[:size])
            left = read(tmp_path)
            steps = 2 if name == "steps" else 3
            assert [step.loss for step in left.steps] == [1.0, 2.0, 3.0][:steps]
            assert [batch.kept for batch in left.batches] == [True, True, False][: len(left.batches)]
        path.write_bytes(content)


def test_a_broken_step_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    describe(tmp_path, "local-0")
    add_step(tmp_path, "local-0", 1, 1.0)
    path = tmp_path / "local-0" / "steps"
    whole = path.read_bytes()
    head, content = whole[:30], whole[30:]
    for broken in (head + b"\xff" * len(content), b"?" + whole[1:], whole + b"?" * 30):
        path.write_bytes(broken)
        with pytest.raises(RecordingError, match=str(path)):
            read(tmp_path)


def test_nothing_recorded(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="nothing was recorded"):
        read(tmp_path / "absent")
    (tmp_path / "ps-0").mkdir()
    (tmp_path / "ps-0" / "task.json").write_text("{}")
    with pytest.raises(RecordingError, match="no task of the run reached training"):
        read(tmp_path)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"time": 1.0}',
        '{"time": 1.0, "step": 1, "results": {"loss": "none"}}',
        '{"time": 1.0, "results": {"loss": 1.0}}',
        '{"time": 1.0, "step": 1, "results": {}, "control": [1]}',
    ],
)
def test_a_broken_line_of_an_evaluation(tmp_path: Path, line: str) -> None:
    with pytest.raises(RecordingError, match=re.escape("evaluations.jsonl cannot be read")):
        _evaluations({"evaluator:0": _with_file(tmp_path, "evaluations.jsonl", line.encode())})


def test_a_truncated_archive(tmp_path: Path) -> None:
    for content in (b"", b"PK\x03\x04 and no more"):
        with pytest.raises(RecordingError, match=re.escape("initial.npz cannot be read")):
            _arrays(_with_file(tmp_path, "initial.npz", content) / "initial.npz")


def _with_file(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder


def test_gradients_of_bfloat16_are_numbers(tmp_path: Path) -> None:
    raw = (np.array([1.5, -0.15625], np.float32).view(np.uint32) >> 16).astype(np.uint16)
    header = {"parts": [{"name": "w", "whole": [2], "offset": [0]}]}
    folder = _with_file(tmp_path, "00000001", _packed(header, [("bfloat16", raw)]))
    found = _whole(folder / "00000001")["w"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [1.5, -0.15625])


def test_tensors_of_an_unknown_type_are_refused() -> None:
    with pytest.raises(ValueError, match="tensor of type 21"):
        decode_tensor(b"\x08\x15" + shape_of([1]) + field(4, struct.pack("<f", 1.0)))


@pytest.mark.parametrize(
    "value",
    [
        np.array([[1.5, -2.0], [0.1, 3e38]], np.float32),
        np.array([1, -1, 2**40], np.int64),
        np.array(True),
        np.zeros((0, 3), np.float32),
        np.array([[b"a", b""], [b"\xff\x00", b"long" * 100]], dtype=object),
    ],
)
def test_a_tensor_is_encoded_as_it_is_decoded(value: Any) -> None:
    dtype = "string" if value.dtype == object else value.dtype.name
    encoded = encode_tensor(dtype, value)
    name, decoded = decode_tensor(encoded)
    assert (name, decoded.shape) == (dtype, value.shape)
    np.testing.assert_array_equal(decoded, value)
    if value.dtype != object:
        assert encoded == tensor(value)


def test_batches_of_a_run_are_written_in_another_form(tmp_path: Path) -> None:
    record = tmp_path / "record"
    describe(record, "local-0")
    for number in (1, 2, 3):
        batch = {"features": np.full((2, 1), number, np.float32), "labels": np.array([number, 0])}
        add_step(record, "local-0", number, 1.0, batch=batch)
    recording = read(record)
    made = converted_batches(record, tmp_path / "made", lambda batch: {"features/x": batch["features"] * 2})
    names = sorted(path.name for path in (made / "local-0" / "batches").iterdir())
    assert names == [f"{number:018d}" for number in (1, 2, 3)]
    chosen = [
        (recording.batches[2:], lambda path, value: value),
        (recording.batches[:1], lambda path, value: value * 3),
    ]
    some = chosen_batches(record, tmp_path / "some", chosen) / "local-0" / "batches"
    contents = [decode_tensor((some / f"{n:018d}").read_bytes())[1] for n in (0, 1)]
    labels = [decode_tensor(one[2])[1].tolist() for one in contents]
    assert labels == [[3, 0], [3, 0]]
    assert json.loads(contents[0][0])["paths"] == ["features", "labels"]


def test_large_arrays_stay_in_their_file_and_are_the_same(tmp_path: Path) -> None:
    record = tmp_path / "record"
    describe(record, "local-0")
    add_step(record, "local-0", 1, 1.0)
    large, small = np.arange(400_000, dtype=np.float32).reshape(2, -1), np.arange(3, dtype=np.float32)
    save(record, "local-0", "states/00000001.npz", large=large, small=small)
    state = read(record).states[1]
    assert isinstance(state["large"], np.memmap) and not isinstance(state["small"], np.memmap)
    np.testing.assert_array_equal(state["large"], large)
    np.testing.assert_array_equal(state["small"], small)
