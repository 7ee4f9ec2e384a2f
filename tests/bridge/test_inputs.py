"""Input functions of numpy arrays: the batches are those of TensorFlow 1's queues."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bridge.sides import run_both

pytestmark = pytest.mark.tensorflow

PROGRAM = """
def batches(input_fn, most=100):
    got = []
    if OLD:
        with tf.Graph().as_default():
            batch = input_fn()
            with tf.Session() as session:
                coordinator = tf.train.Coordinator()
                threads = tf.train.start_queue_runners(session, coordinator)
                try:
                    while len(got) < most:
                        got.append(session.run(batch))
                except tf.errors.OutOfRangeError:
                    pass
                coordinator.request_stop()
                coordinator.join(threads)
                shapes = [str(t.shape.as_list()[0]) + t.dtype.name for t in tf.nest.flatten(batch)]
    else:
        data = input_fn()
        shapes = [str(t.shape.as_list()[0]) + t.dtype.name for t in tf.nest.flatten(data.element_spec)]
        for batch in data.take(most):
            got.append(tf.nest.map_structure(lambda t: t.numpy(), batch))
    return {"batches": got, "shapes": shapes}


make = est.inputs.numpy_input_fn if OLD else est.numpy_input_fn
x = {"b": np.arange(10.0), "a": np.arange(20, dtype=np.float32).reshape(10, 2), "s": np.array(list("abcdefghij"))}
y = np.arange(10, dtype=np.int32)
found["spans"] = batches(make(x, y, batch_size=4, num_epochs=3, shuffle=False))
found["once"] = batches(make(x, batch_size=4, num_epochs=1, shuffle=False))
found["labels by name"] = batches(make(x, {"q": y, "p": y * 2}, batch_size=3, num_epochs=1, shuffle=False))
found["array"] = batches(make(x["a"], y, batch_size=7, num_epochs=2, shuffle=False))
found["alone"] = batches(make(x["a"], batch_size=16, num_epochs=1, shuffle=False))
found["for ever"] = batches(make(x["b"], y, batch_size=4, num_epochs=None, shuffle=False), most=6)
found["objects"] = batches(make({"o": np.array(["x", "yy", "z"], dtype=object)}, batch_size=2, shuffle=False))
shuffled = batches(make(x["b"], y, batch_size=3, num_epochs=2, shuffle=True, queue_capacity=8))
found["shuffled"] = {
    "sizes": [len(labels) for _, labels in shuffled["batches"]],
    "rows": sorted(float(row) for features, _ in shuffled["batches"] for row in features),
    "together": all((features == labels).all() for features, labels in shuffled["batches"]),
}
threads = batches(make(x["b"], batch_size=4, num_epochs=1, shuffle=True, num_threads=3))
found["threads"] = sorted(float(row) for features in threads["batches"] for row in features)


def error(*arguments, **keywords):
    try:
        make(*arguments, **keywords)()
    except Exception as wrong:
        return type(wrong).__name__
    return None


found["errors"] = [
    error(x, y),
    error(x, y[:-1], shuffle=False),
    error({}, shuffle=False),
    error([1.0], shuffle=False),
    error(x, {}, shuffle=False),
    error(x, {"a": y}, shuffle=False),
    error(np.zeros([0, 2]), shuffle=False),
]


class Series:
    def __init__(self, values, index):
        self.values, self.index = np.asarray(values), index


class Frame(dict):
    # As much of a pandas.DataFrame as is read: this environment has no pandas.
    def __init__(self, columns, index):
        super().__init__({name: Series(values, index) for name, values in columns.items()})
        self.index, self.columns = index, list(columns)

    def __len__(self):
        return len(self.index)


if not OLD:
    index = np.arange(3)
    frame = Frame({"n": [1.0, 2.0, 3.0], "c": np.array(["a", "b", "a"], dtype=object)}, index)
    read = lambda data: [tf.nest.map_structure(lambda t: t.numpy(), batch) for batch in data]
    make = est.pandas_input_fn
    found["series"] = read(make(frame, Series([1, 0, 1], index), batch_size=2, num_epochs=2, shuffle=False)())
    labels = Frame({"n": [4, 5, 6]}, index)
    found["frame"] = read(make(frame, labels, batch_size=3, shuffle=False)())
    found["none"] = read(make(frame, batch_size=3, shuffle=False)())
"""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    return run_both(PROGRAM, tmp_path_factory.mktemp("inputs"), ("inputs",))


CASES = ("spans", "once", "labels by name", "array", "alone", "for ever", "objects", "shuffled", "threads", "errors")


@pytest.mark.parametrize("case", CASES)
def test_batches_are_those_of_the_queues(case: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    assert old[case] == new[case]


def test_what_they_are(sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    _, new = sides
    assert [len(labels) for _, labels in new["spans"]["batches"]] == [4, 4, 4, 4, 4, 4, 4, 2]
    assert new["spans"]["batches"][2][1] == [8, 9, 0, 1]
    assert new["threads"] == sorted(3 * [float(row) for row in range(10)])
    assert all(new["errors"])


def test_data_frames(sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    _, new = sides
    assert new["series"] == [
        [{"n": [1.0, 2.0], "c": ["a", "b"]}, [1, 0]],
        [{"n": [3.0, 1.0], "c": ["a", "a"]}, [1, 1]],
        [{"n": [2.0, 3.0], "c": ["b", "a"]}, [0, 1]],
    ]
    assert new["frame"] == [[{"n": [1.0, 2.0, 3.0], "c": ["a", "b", "a"]}, {"n": [4, 5, 6]}]]
    assert new["none"] == [{"n": [1.0, 2.0, 3.0], "c": ["a", "b", "a"]}]
