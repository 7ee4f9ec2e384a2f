"""SavedModels, exporters and early stopping, on a folder that TensorFlow 1 has trained: as its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.bridge.sides import TENSORFLOW1, run_both

pytestmark = pytest.mark.tensorflow

PROGRAM = """
import glob, shutil

export = est.export if OLD else est
MODEL = os.path.join(FOLDER, "model")
WORDS = os.path.join(FOLDER, "words.txt")
if OLD:
    with open(WORDS, "w") as file:
        file.write("a\\nb\\nc\\n")


def input_fn():
    x = np.arange(12, dtype=np.float32).reshape(6, 2) / 10
    words = np.array(["a", "b", "c", "a", "zz", "b"])
    return tf.data.Dataset.from_tensor_slices(({"x": x, "word": words}, x[:, 0] * 2)).batch(3)


def model_fn(features, labels, mode):
    line = tf.lookup.TextFileIndex
    words = tf.lookup.TextFileInitializer(WORDS, tf.string, line.WHOLE_LINE, tf.int64, line.LINE_NUMBER)
    table = tf.lookup.StaticVocabularyTable(words, 1)
    embedding = tf.get_variable("embedding", [4, 2], initializer=tf.truncated_normal_initializer(seed=3))
    net = tf.nn.embedding_lookup(embedding, table.lookup(features["word"])) + features["x"]
    net = tf.layers.batch_normalization(net, training=mode == "train")
    out = tf.layers.dense(net, 1)[:, 0]
    outputs = {
        "serving_default": export.PredictOutput({"out": out, "net": net}),
        "regress": export.RegressionOutput(out),
        "classify": export.ClassificationOutput(scores=tf.nn.softmax(net), classes=tf.as_string(net)),
        "alone": export.PredictOutput(out),
    }
    if mode == "infer":
        return est.EstimatorSpec(mode, predictions={"out": out}, export_outputs=outputs)
    loss = tf.losses.mean_squared_error(labels, out)
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, out)}
    if mode == "eval":
        return est.EstimatorSpec(mode, predictions={"out": out}, loss=loss, eval_metric_ops=metrics)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, tf.train.get_global_step())
    return est.EstimatorSpec(mode, predictions={"out": out}, loss=loss, train_op=train_op)


if OLD:
    est.Estimator(model_fn, model_dir=MODEL).train(input_fn)
estimator = est.Estimator(model_fn, model_dir=MODEL)


def features():
    x = tf.placeholder(tf.float32, [None, 2], name="my_x")
    return {"x": x, "word": tf.placeholder(tf.string, [None], name="my_word")}


def own_receiver_fn():
    fed = features()
    both = {"x": fed["x"] * 2, "word": fed["word"]}
    return export.ServingInputReceiver(both, fed, {"later": both})


def raw():
    with tf.Graph().as_default():
        return export.build_raw_serving_input_receiver_fn(features())


examples = [
    tf.train.Example(features=tf.train.Features(feature={
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=x)),
        "word": tf.train.Feature(bytes_list=tf.train.BytesList(value=[word])),
    })).SerializeToString()
    for x, word in [([0.5, 1.0], b"c"), ([-1.0, 0.25], b"zz")]
]
spec = {"x": tf.FixedLenFeature([2], tf.float32), "word": tf.FixedLenFeature([], tf.string)}
parsing = export.build_parsing_serving_input_receiver_fn(spec)
rows = {"x": [[0.5, 1.0], [-1.0, 0.25]], "word": ["c", "zz"]}


def sized(infos):
    return {key: [info.dtype, [size.size for size in info.tensor_shape.dim]] for key, info in infos.items()}


def look_at(path, tags, feeds):
    assert isinstance(path, bytes) and os.path.basename(path).isdigit() and len(os.path.basename(path)) == 10
    graph = tf.Graph()
    with tf.Session(graph=graph) as session:
        meta = tf.saved_model.load(session, tags, path.decode())
        signatures = {}
        for name, signature in meta.signature_def.items():
            fed = {info.name: feeds[key] for key, info in signature.inputs.items() if key in feeds}
            outputs = {key: info.name for key, info in signature.outputs.items()}
            values = session.run(outputs, fed) if fed and len(fed) == len(signature.inputs) else None
            names = sorted(info.name for info in signature.inputs.values())
            sizes = [sized(signature.inputs), sized(signature.outputs)]
            signatures[name] = [signature.method_name, sizes, names, values]
        variables = sorted(v.name for v in tf.global_variables())
    files = sorted(glob.glob(os.path.join(path.decode(), "**"), recursive=True))
    files = [os.path.relpath(file, path.decode()) for file in files]
    return {"signatures": signatures, "variables": variables, "files": [f for f in files if "data-" not in f]}


base = os.path.join(FOLDER, "exports-" + sys.argv[1])
call = estimator.export_saved_model
found["own receiver"] = look_at(call(base, own_receiver_fn, assets_extra={"more/w.txt": WORDS}), ["serve"], rows)
found["raw"] = look_at(call(base, raw()), ["serve"], rows)
found["parsing"] = look_at(call(base, parsing, as_text=True), ["serve"], {"examples": examples, "inputs": examples})


def supervised():
    with tf.Graph().as_default():
        labels = tf.placeholder(tf.float32, [None])
        return est.experimental.build_raw_supervised_input_receiver_fn(features(), labels) if OLD else (
            est.build_raw_supervised_input_receiver_fn(features(), labels))


receivers = {"train": supervised(), "eval": supervised(), "infer": raw()}
path = estimator.experimental_export_all_saved_models(base, receivers)
feeds = {**rows, "label": [1.0, 2.0]}
found["all modes"] = [look_at(path, [tag], feeds) for tag in ("eval", "serve")]
with tf.Session(graph=tf.Graph()) as session:
    meta = tf.saved_model.load(session, ["train"], path.decode())
    train = meta.signature_def["train"]
    found["train"] = [train.method_name, sorted(train.inputs), sorted(train.outputs)]


class Calls:
    # Stands for the Estimator: the exporters are asked when they call it, and with what.
    model_dir = os.path.join(FOLDER, "calls-" + sys.argv[1])
    made = 0

    def export_saved_model(self, folder, receiver_fn, **keywords):
        Calls.made += 1
        path = os.path.join(folder, str(1500000000 + Calls.made))
        tf.gfile.MakeDirs(path)
        return [os.path.basename(path), receiver_fn, sorted(keywords.items(), key=str)]


def asked(exporter, results, final=lambda number: False):
    folder = os.path.join(Calls.model_dir, "export", exporter.name)
    Calls.made = 0
    tf.gfile.MakeDirs(folder)
    tf.gfile.MakeDirs(folder + "/temp-1500000001")
    returned = [exporter.export(Calls(), folder, "ckpt", r, final(n)) for n, r in enumerate(results)]
    return [returned, sorted(os.listdir(folder))]


def evaluated(*losses):
    shutil.rmtree(Calls.model_dir, ignore_errors=True)
    with tf.Graph().as_default():
        writer = tf.summary.FileWriter(os.path.join(Calls.model_dir, "eval"))
        for step, loss in enumerate(losses):
            values = [tf.Summary.Value(tag=t, simple_value=v) for t, v in [("loss", loss), ("acc", 1 - loss)]]
            writer.add_summary(tf.Summary(value=values), step * 10)
        writer.close()


results = [{"loss": loss, "global_step": 10 * n, "acc": -loss} for n, loss in enumerate([5.0, 3.0, 4.0, 2.0, 2.0, 1.0])]
evaluated()
found["latest"] = asked(est.LatestExporter("latest", "fn", exports_to_keep=2), results)
found["latest all"] = asked(est.LatestExporter("every", "fn", exports_to_keep=None), results)
final = est.FinalExporter("final", "fn", assets_extra={"a": "b"}, as_text=True)
found["final"] = asked(final, results, lambda n: n == 5)
evaluated()
found["best"] = asked(est.BestExporter(serving_input_receiver_fn="fn", exports_to_keep=2), results)
evaluated(9.0, 3.5)
found["best before"] = asked(est.BestExporter(serving_input_receiver_fn="fn"), results)
evaluated(9.0, 0.5)
found["best of all was before"] = asked(est.BestExporter(serving_input_receiver_fn="fn"), results)
by_acc = lambda best_eval_result, current_eval_result: best_eval_result["acc"] < current_eval_result["acc"]
evaluated()
found["best by"] = asked(est.BestExporter("b", "fn", None, compare_fn=by_acc), results)
if OLD:
    try:
        from tensorflow_estimator.contrib.estimator.python.estimator.exporter import StepsExporter
    except ImportError:
        StepsExporter = None
else:
    StepsExporter = est.StepsExporter
if StepsExporter:
    evaluated()
    found["steps"] = asked(StepsExporter([35, 15, -1, 12], serving_input_receiver_fn="fn"), results)
    evaluated(1.0, 1.0, 1.0)
    found["steps before"] = asked(StepsExporter([35, 15], serving_input_receiver_fn="fn"), results)
evaluated(3.0, 2.0, 2.5, 2.25, 2.75)
if OLD:
    from tensorflow_estimator.python.estimator.early_stopping import read_eval_metrics
    early = est.experimental
else:
    read_eval_metrics, early = est.read_eval_metrics, est
eval_dir = os.path.join(Calls.model_dir, "eval")
found["read"] = list(read_eval_metrics(eval_dir).items())


def stops(make, *arguments, **keywords):
    hook = make(estimator, *arguments, eval_dir=eval_dir, run_every_secs=None, run_every_steps=2, **keywords)
    with tf.Graph().as_default():
        step = tf.train.create_global_step()
        with tf.control_dependencies([tf.assign_add(step, 1)]):
            train_op = tf.no_op()
        done = 0
        with tf.train.MonitoredSession(hooks=[hook]) as session:
            while not session.should_stop() and done < 7:
                session.run(train_op)
                done += 1
    return done


found["stops"] = [
    stops(early.stop_if_higher_hook, "loss", 2.6),
    stops(early.stop_if_higher_hook, "loss", 2.8, min_steps=10),
    stops(early.stop_if_lower_hook, "loss", 2.1),
    stops(early.stop_if_lower_hook, "loss", 1.0),
    stops(early.stop_if_no_decrease_hook, "loss", 30),
    stops(early.stop_if_no_decrease_hook, "loss", 31),
    stops(early.stop_if_no_decrease_hook, "loss", 20, min_steps=20),
    stops(early.stop_if_no_increase_hook, "acc", 30),
    stops(early.stop_if_no_increase_hook, "acc", 31),
    stops(early.stop_if_no_increase_hook, "loss", 20),
]


def error(call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except Exception as wrong:
        return type(wrong).__name__
    return None


found["errors"] = [
    error(early.make_early_stopping_hook, estimator, lambda: True, run_every_steps=1),
    error(early.make_early_stopping_hook, "no estimator", lambda: True),
    error(est.LatestExporter, "latest", "fn", exports_to_keep=0),
    error(est.BestExporter, compare_fn=lambda a, b: True),
    error(est.BestExporter, compare_fn=None),
    error(export.PredictOutput, "no tensor"),
    error(export.ClassificationOutput),
    error(export.RegressionOutput, "no tensor"),
    error(export.ServingInputReceiver, None, {}),
    error(export.ServingInputReceiver, {"a": "no tensor"}, {}),
    error(estimator.export_saved_model, base, None),
    error(est.Estimator(model_fn, model_dir=os.path.join(FOLDER, "none")).export_saved_model, base, parsing),
]
"""


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    modules = ("specs", "exporting", "early_stopping", "estimator")
    return run_both(PROGRAM, tmp_path_factory.mktemp("exports"), modules)


def alike(old: Any, new: Any) -> bool:
    """The same, numbers up to the rounding of single precision."""
    if isinstance(old, dict):
        return isinstance(new, dict) and old.keys() == new.keys() and all(alike(old[key], new[key]) for key in old)
    if isinstance(old, list):
        return isinstance(new, list) and len(old) == len(new) and all(map(alike, old, new))
    return bool(np.isclose(old, new, rtol=1e-5, atol=1e-6)) if isinstance(old, float) else bool(old == new)


@pytest.mark.parametrize("case", ["own receiver", "raw", "parsing"])
def test_saved_models_serve_the_same(case: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = (side[case] for side in sides)
    assert sorted(old["signatures"]) == sorted(new["signatures"])
    for name in old["signatures"]:
        assert alike(old["signatures"][name], new["signatures"][name]), name
    assert old["variables"] == new["variables"] and old["files"] == new["files"]
    assert any(signature[-1] for signature in new["signatures"].values())


def test_what_is_served(sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    _, new = sides
    assert sorted(new["raw"]["signatures"]) == ["alone", "serving_default"]
    assert "classify" in new["parsing"]["signatures"] and "later:alone" in new["own receiver"]["signatures"]
    assert "assets.extra/more/w.txt" in new["own receiver"]["files"] and "assets/words.txt" in new["raw"]["files"]
    assert "saved_model.pbtxt" in new["parsing"]["files"]


def test_all_modes_in_one(sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    for side in sides:  # whether a metric's value is read before its update or after it, nothing says
        for outputs in side["all modes"][0]["signatures"]["eval"][-1:]:
            outputs.pop("metrics/mae/value")
    assert alike(old["all modes"][0]["signatures"], new["all modes"][0]["signatures"])
    assert alike(old["all modes"][1]["signatures"], new["all modes"][1]["signatures"])
    assert old["train"] == new["train"] and old["train"][0] == "tensorflow/supervised/training"


EXPORTERS = (
    "latest",
    "latest all",
    "final",
    "best",
    "best before",
    "best of all was before",
    "best by",
    "steps",
    "steps before",
)


@pytest.mark.parametrize("case", EXPORTERS)
def test_exporters_export_when_those_did(case: str, sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    if case not in old:
        pytest.skip("TensorFlow 2.15 has no StepsExporter")
    if not TENSORFLOW1 and case in ("best before", "best of all was before"):
        pytest.skip("2.15 reads the event files of TensorFlow 2: set TF_MIGRATE_TENSORFLOW1_PYTHON")
    assert old[case] == new[case]


def test_early_stopping(sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    assert old["read"] == new["read"] and old["stops"] == new["stops"]
    assert len(set(new["stops"])) == 2


def test_what_cannot_be_is_said(sides: tuple[dict[str, Any], dict[str, Any]]) -> None:
    old, new = sides
    assert old["errors"] == new["errors"] and all(new["errors"])
