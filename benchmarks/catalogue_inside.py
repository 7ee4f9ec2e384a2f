"""Computes one side of the catalogue: `python catalogue_inside.py ITEMS.json ANSWERS.json tensorflow1|keras`.

TensorFlow 1 code runs in 1.15.5 or in compat.v1 of 2.15, Keras code in 2.21, whose generation the environment chooses;
Python 3.7 on. An item has "symbol", "kind", "text", "classes" and "update" (see catalogue.py); its answer is a list of
flat lists of numbers, or a text: an error.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
import tensorflow as tensorflow

ONE = sys.argv[3] == "tensorflow1"
tf = tensorflow
if ONE and tensorflow.__version__.startswith("2"):
    tf = tensorflow.compat.v1
    tf.disable_eager_execution()

RECORDS = Path(sys.argv[2]).with_suffix(".records")
STEPS = 30
SHAPES = {"1": (2, 8, 3), "2": (2, 8, 8, 3), "3": (2, 6, 6, 6, 3)}


def pattern(shape, seed=1):
    count = int(np.prod(shape)) if shape else 1
    return (0.5 * np.cos((seed + 0.3) * (1 + np.arange(count)))).reshape(shape).astype(np.float32)


def seed_of(name):
    """What a weight is called in either version, as a number."""
    last = name.split(":")[0].split("/")[-1]
    last = {"weights": "kernel", "biases": "bias"}.get(last, last)
    return last, 1 + sum(map(ord, last)) % 17


def start(name, shape):
    last, seed = seed_of(name)
    value = pattern(tuple(int(n) for n in shape), seed)
    return np.abs(value) + 0.5 if last == "moving_variance" else value


def inputs(item):
    """The values of the names that a call reads."""
    text = item["text"] + item["symbol"]
    spelled = text.lower()
    rank = next((r for r in "321" if any(f"{r}d{end}" in spelled for end in ("(", "_t", "t"))), "")
    whole = np.array([0, 1, 2, 3, 1, 0, 2, 2, 3, 0], np.int32)
    rows = pattern((10, 4), 3)
    given = {
        "net": pattern(SHAPES.get(rank, (4, 6)), 2),
        "ids": whole.reshape(2, 5),
        "x": pattern((10, 4), 5),
        "y": pattern((10, 4), 6) + 2.0,
        "w": pattern((4, 3), 7),
        "b": pattern((3,), 8),
        "values": pattern((10,), 9),
        "weights": np.abs(pattern((10,), 4)),
        "losses": np.abs(pattern((10,), 5)),
        "logits": rows,
        "labels": np.abs(pattern((10, 4), 6)),
        "predictions": 1.0 / (1.0 + np.exp(-4.0 * rows)),
    }
    given["features"] = given["net"]
    symbol = item["symbol"]
    if "sparse_softmax" in symbol or "one_hot" in symbol:
        given["labels"] = whole
    elif "softmax" in symbol:
        given["labels"] = np.eye(4, dtype=np.float32)[whole]
    elif "sigmoid" in symbol or "hinge" in symbol or "log_loss" in symbol:
        given["labels"] = (rows > 0.1).astype(np.float32)
    if symbol.startswith("tf.metrics."):
        given["labels"] = np.abs(pattern((10,), 6))
        given["predictions"] = np.abs(pattern((10,), 3))
        name = symbol.rpartition(".")[2]
        if name.endswith("_at_k"):
            given["labels"], given["predictions"] = whole.astype(np.int64), rows
        elif name in ("accuracy", "mean_iou", "mean_per_class_accuracy"):
            given["labels"], given["predictions"] = whole, np.roll(whole, 1) * (whole < 3)
        elif name == "mean_cosine_distance":
            given["labels"], given["predictions"] = pattern((10, 4), 6), rows
        elif "at_" in name or name == "auc":
            given["labels"] = given["labels"] > 0.25
            given["predictions"] = 2.0 * given["predictions"]
        elif any(word in name for word in ("positives", "negatives", "precision", "recall")):
            given["labels"], given["predictions"] = given["labels"] > 0.25, given["predictions"] > 0.2
    return given


def numbers(values):
    return [np.asarray(value, np.float64).reshape(-1).tolist() for value in values]


# ---- TensorFlow 1


def names_of(item, given):
    space = {"tf": tf, "math": math, "np": np, "mode": "eval", "parse": lambda value: value + 1, "n": 4, "rate": 0.01}
    space["optimizer"] = tf.train.GradientDescentOptimizer(0.1) if ONE else tf.keras.optimizers.SGD(0.1)
    space.update(path=str(RECORDS), line="a,b,,c")
    space["d"] = tf.data.Dataset.range(40)
    if "unbatch" in item["text"]:
        space["d"] = space["d"].batch(8)
    for key, value in given.items():
        space[key] = tensorflow.constant(value)
    if not ONE:
        for text in item["classes"]:
            exec(text, space)
    return space


def run_tensorflow1(item):
    kind = item["kind"]
    with tensorflow.Graph().as_default(), tf.Session() as session:
        given = inputs(item)
        space = names_of(item, given)
        if kind == "optimizer":
            return optimizer_tensorflow1(item, space, session)
        if kind == "schedule":
            step = tf.train.get_or_create_global_step()
            rate = eval(item["text"], space)
            rate = rate() if callable(rate) else rate
            found = []
            for number in range(0, 150, 7):
                session.run(step.assign(number))
                found.append(session.run(rate))
            return numbers([found])
        result = eval(item["text"], space)
        if kind == "initializer":
            return moments(session.run(result([400, 300], dtype=tf.float32)))
        if kind == "records":
            return words(result)
        if kind == "strings":
            found = session.run(result)
            return [*numbers([found.indices]), *words(found.values)]
        if kind == "regularizer":
            return numbers([session.run(result(space["x"]))])
        if kind == "dataset":
            iterator = tf.data.make_one_shot_iterator(result).get_next()
            found = []
            try:
                while True:
                    found.append(session.run(iterator))
            except tf.errors.OutOfRangeError:
                return elements(found)
        if kind == "metric":
            session.run(tf.local_variables_initializer())
            session.run(result[1])
            session.run(result[1])
            return numbers([session.run(result[0])])
        for variable in tf.global_variables():
            session.run(variable.assign(start(variable.name, variable.shape)))
        gradient = tf.gradients(result, space["net"]) if kind == "layer" else []
        return numbers(session.run([result, *[g for g in gradient if g is not None]]))


def optimizer_tensorflow1(item, space, session):
    step = tf.train.get_or_create_global_step()
    variable = tf.get_variable("v", initializer=pattern((3, 4), 2))
    gradient = tf.placeholder(tf.float32, (3, 4))
    optimizer = eval(item["text"], space)
    if item["symbol"].startswith("tf.keras."):
        train = optimizer.apply_gradients([(gradient, variable)])
    else:
        train = optimizer.apply_gradients([(gradient, variable)], global_step=step)
    session.run(tf.global_variables_initializer())
    found = []
    for number in range(STEPS):
        session.run(train, {gradient: pattern((3, 4), 3 + number)})
        found.append(session.run(variable))
    return numbers(found)


def words(found):
    return numbers([list(word) for word in found])


def elements(found):
    return numbers([np.sort(np.concatenate([np.reshape(one, -1) for one in found])), [len(found)]])


def moments(values):
    """What tells distributions apart: equal for constants, near for random numbers; most of them have no largest."""
    return numbers([[values.mean(), values.std(), np.quantile(values, 0.01), np.quantile(values, 0.99)]])


# ---- Keras


def run_keras(item):
    kind = item["kind"]
    space = names_of(item, inputs(item))
    if kind == "optimizer":
        optimizer = eval(item["text"], space)
        variable = tf.Variable(pattern((3, 4), 2))
        found = []
        for number in range(STEPS):
            optimizer.apply_gradients([(tf.constant(pattern((3, 4), 3 + number)), variable)])
            found.append(variable.numpy())
        return numbers(found)
    if kind == "layer":
        with tf.GradientTape() as tape:
            tape.watch(space["net"])
            result = eval(item["text"], space)
        gradient = tape.gradient(result, space["net"])
        return numbers([result] if gradient is None else [result, gradient])
    result = eval(item["text"], space)
    if kind == "records":
        return words(result)
    if kind == "strings":
        return [*numbers([result.indices]), *words(result.values.numpy())]
    if kind == "schedule":
        return numbers([[float(result(number)) for number in range(0, 150, 7)]])
    if kind == "initializer":
        return moments(np.asarray(result((400, 300), dtype="float32")))
    if kind == "dataset":
        return elements(list(result.as_numpy_iterator()))
    if kind == "regularizer":
        return numbers([result(space["x"])])
    if kind == "metric":
        for _ in range(2):
            given = [space["values"]] if "values" in item["call"] else [space["labels"], space["predictions"]]
            update = item["update"].format(*(f"given[{i}]" for i in range(len(given))))
            eval(f"result.update_state({update})", {**space, "result": result, "given": given})
        return numbers([result.result()])
    return numbers([result])


def start_weights():
    """Gives every weight of a Keras layer the start that the same weight has in TensorFlow 1."""
    old = tf.keras.layers.Layer.add_weight

    def add_weight(self, *args, **kwargs):
        made = old(self, *args, **kwargs)
        if isinstance(self, tf.keras.metrics.Metric):
            return made
        name = kwargs.get("name") or (args[0] if args and isinstance(args[0], str) else made.name)
        made.assign(start(name, made.shape))
        return made

    tf.keras.layers.Layer.add_weight = add_weight


def main():
    items = json.loads(Path(sys.argv[1]).read_text())
    RECORDS.write_text("")
    with tf.io.TFRecordWriter(str(RECORDS)) as writer:
        for word in (b"a", b"longer", b""):
            writer.write(word)
    if not ONE:
        start_weights()
    answers = {}
    for item in items:
        try:
            answers[item["symbol"]] = run_tensorflow1(item) if ONE else run_keras(item)
        except Exception as error:
            answers[item["symbol"]] = f"{type(error).__name__}: {str(error)[:300]}"
    Path(sys.argv[2]).write_text(json.dumps(answers))


main()
