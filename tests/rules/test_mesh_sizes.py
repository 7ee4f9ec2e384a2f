"""`--layout auto`: the fewest variables are divided whose weights, slots and gradients fit on a device."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.cli.program import program as command
from migrator.findings import Finding, Severity
from migrator.migrate import Options, migrate
from migrator.source.reading import Source, decode
from migrator.targets.dtensor import LayoutError, parse
from migrator.targets.sizes import SizeError, choose, memory, slots

PROGRAM = """\
import numpy as np
import tensorflow as tf
{imports}

def input_fn():
    features = {{"x": np.random.rand(64, 12).astype(np.float32)}}
    return tf.data.Dataset.from_tensor_slices((features, np.zeros(64, np.int32))).batch(8)


def model_fn(features, labels, mode, params):
    net = {net}
    for _ in range(params["layers"]):
        net = tf.layers.dense(net, params["units"], activation=tf.nn.relu)
    logits = tf.layers.dense(net, 5, name="out")
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    train_op = {optimizer}.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


estimator = tf.estimator.Estimator(model_fn, params={{"layers": 2, "units": 32}})
estimator.train(input_fn, steps=3)
"""
# Kernels of 12 x 32, 32 x 32 and 32 x 5, biases of 32, 32 and 5, in float32.
NUMBERS = 384 + 32 + 1024 + 32 + 160 + 5


def text(net: str = 'features["x"]', optimizer: str = "tf.train.AdamOptimizer(0.1)", imports: str = "") -> str:
    return PROGRAM.format(net=net, optimizer=optimizer, imports=imports)


def by_size(sources: dict[str, str], size: str, mesh: str = "model=2") -> tuple[dict[str, str], list[Finding]]:
    decoded = [decode(Path(path), text.encode()) for path, text in sources.items()]
    given = [one for one in decoded if isinstance(one, Source)]
    results = migrate(given, Options("dtensor", "native", mesh=mesh, layouts=("auto",), device_memory=size))
    return {str(r.source.path): r.text for r in results}, [f for r in results for f in r.findings]


def told(findings: list[Finding]) -> Finding:
    [one] = [finding for finding in findings if finding.code in ("TFM781", "TFM782")]
    return one


def layouts(new: str) -> list[str]:
    return [line.strip() for line in new.splitlines() if line.startswith("layouts[")]


def test_all_stays_whole_where_it_fits() -> None:
    new, findings = by_size({"train.py": text()}, str(16 * NUMBERS))
    assert "LayoutMap(mesh=mesh)" in new["train.py"] and not layouts(new["train.py"])
    one = told(findings)
    assert one.code == "TFM781" and one.severity is Severity.REVIEW
    assert one.message.startswith(
        f"each device holds {16 * NUMBERS / 1024:.2f} KiB ({16 * NUMBERS:,} bytes) of weights, "
    )
    assert "all 6 variables stay whole" in one.message


def test_the_fewest_are_divided() -> None:
    """One byte less than all of them take is one variable more: that which saves most."""
    new, findings = by_size({"train.py": text()}, str(16 * NUMBERS - 1))
    [line] = layouts(new["train.py"])
    assert line == r'layouts[r"dense_1\.kernel"] = tf.experimental.dtensor.Layout(["unsharded", "model"], mesh)'
    held = 16 * (NUMBERS - 512)
    assert (
        f"({held:,} bytes)" in told(findings).message
        and f"would be {16 * NUMBERS / 1024:.2f} KiB" in told(findings).message
    )
    new, _ = by_size({"train.py": text()}, str(held - 1))
    assert [line.partition("]")[0] for line in layouts(new["train.py"])] == [
        r'layouts[r"dense\.kernel"',
        r'layouts[r"dense_1\.kernel"',
    ]


def test_rows_are_divided_where_columns_are_not_even_parts() -> None:
    new, _ = by_size({"train.py": text()}, str(16 * (NUMBERS - 512 - 192 - 80)))
    assert r'layouts[r"out\.kernel"] = tf.experimental.dtensor.Layout(["model", "unsharded"], mesh)' in new["train.py"]


def test_what_does_not_fit_is_told_and_left() -> None:
    before = {"train.py": text()}
    least = 16 * (NUMBERS - 5) // 2 + 16 * 5  # the bias of 5 stays whole
    assert told(by_size(before, str(least))[1]).code == "TFM781"
    new, findings = by_size(before, str(least - 1))
    one = told(findings)
    assert new == before and one.code == "TFM782" and one.severity is Severity.MANUAL
    assert f"({least:,} bytes)" in one.message and "`out.bias` of [5] stays unsharded" in one.message


@pytest.mark.parametrize(
    ("optimizer", "held"),
    [
        ("tf.train.GradientDescentOptimizer(0.1)", 12),  # Keras' own has a slot without momentum, too
        ("tf.train.MomentumOptimizer(0.1, 0.9)", 12),
        ("tf.train.AdagradOptimizer(0.1)", 12),
        ("tf.train.FtrlOptimizer(0.1)", 16),
    ],
)
def test_slots_count(optimizer: str, held: int) -> None:
    _, findings = by_size({"train.py": text(optimizer=optimizer)}, "1GiB")
    assert f"({held * NUMBERS:,} bytes)" in told(findings).message


def test_a_width_that_nobody_wrote_is_named_with_its_line() -> None:
    """In another file, by the layer's turn: it has no name."""
    files = {
        "train.py": text('blocks.block(features["x"])', imports="import blocks").replace(
            "np.random.rand(64, 12)", "np.load('x.npy')"
        ),
        "blocks.py": "import tensorflow as tf\n\n\ndef block(net):\n    net = tf.cast(net, tf.float32)\n"
        "    return tf.layers.dense(net, 8)\n",
    }
    new, findings = by_size(files, "1GiB")
    one = told(findings)
    assert new == files and (one.code, one.path, one.line) == ("TFM782", "blocks.py", 6)
    assert "the rows of `dense.kernel` are not literals" in one.message and "tf.reshape(net, [-1, 784])" in one.message
    files["blocks.py"] = files["blocks.py"].replace("tf.cast(net, tf.float32)", "tf.reshape(net, [-1, 12])")
    assert told(by_size(files, "1GiB")[1]).code == "TFM781"


def test_programs_of_one_folder_have_layouts_of_their_own() -> None:
    small = text().replace('"units": 32', '"units": 8')
    new, _ = by_size({"a.py": text(), "b.py": small}, str(16 * NUMBERS - 1))
    assert len(layouts(new["a.py"])) == 1 and not layouts(new["b.py"]) and "LayoutMap" in new["b.py"]


MIRRORED = """\
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
data = tf.data.Dataset.from_tensor_slices((tf.zeros([64, {shape}]), tf.zeros([64], tf.int64))).batch(16)
with strategy.scope():
    model = tf.keras.Sequential([{layers}tf.keras.layers.Dense(32), tf.keras.layers.Dense(3)])
    model.compile(optimizer="adam", loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(data, epochs=2)
"""


def test_programs_of_tensorflow_2() -> None:
    numbers = 12 * 32 + 32 + 96 + 3
    new, findings = by_size({"train.py": MIRRORED.format(shape=12, layers="")}, str(16 * numbers - 1))
    assert [line.partition("]")[0] for line in layouts(new["train.py"])] == [r'layouts[r"dense\.kernel"']
    assert f"({16 * (numbers - 192):,} bytes)" in told(findings).message


def test_images() -> None:
    """Filters stay whole, and so do kernels behind them whose columns are not even parts."""
    layers = (
        'tf.keras.layers.Conv2D(4, 3, padding="same", input_shape=(8, 8, 1)), tf.keras.layers.MaxPooling2D(), '
        "tf.keras.layers.Flatten(), "
    )
    numbers = 9 * 4 + 4 + 64 * 32 + 32 + 96 + 3
    new, findings = by_size({"train.py": MIRRORED.format(shape="8, 8, 1", layers=layers)}, str(16 * numbers))
    assert told(findings).message.startswith(f"each device holds {16 * numbers / 1024:.2f} KiB")
    least = 16 * (numbers - 1024 - 16)  # a kernel and a bias; the last kernel has 3 columns
    assert told(by_size({"train.py": MIRRORED.format(shape="8, 8, 1", layers=layers)}, str(least))[1]).code == "TFM781"
    assert (
        told(by_size({"train.py": MIRRORED.format(shape="8, 8, 1", layers=layers)}, str(least - 1))[1]).code == "TFM782"
    )
    assert "LayoutMap" in new["train.py"]


def test_sizes_of_memory() -> None:
    assert [memory(one) for one in ("16GiB", "1.5 kB", "7", "2MB", "3K")] == [16 * 2**30, 1500, 7, 2_000_000, 3000]
    for wrong in ("", "GiB", "-1", "0", "16 apples", "3ib"):
        with pytest.raises(SizeError):
            memory(wrong)


def test_slots_of_an_optimizer_that_nobody_counted() -> None:
    assert slots("Adam", {"amsgrad": True}) == (3, 0) and slots("RMSprop", {"momentum": 0.0}) == (1, 0)
    with pytest.raises(SizeError, match="Lion"):
        slots("Lion", {})
    assert choose([], (0, 0), "model", 2, 1).bytes == 0


def test_usage(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match="--mesh model=2"):
        parse("", ("auto",))
    with pytest.raises(LayoutError, match="no other"):
        parse("model=2", ("auto", "dense=model"))
    path = tmp_path / "train.py"
    path.write_text(text(), encoding="utf-8")
    given = [str(path), "--strategy", "dtensor", "--mesh", "model=2"]
    for wrong in (["--layout", "auto"], ["--device-memory", "1GiB"], ["--layout", "auto", "--device-memory", "much"]):
        assert CliRunner().invoke(command, [*given, *wrong]).exit_code == 2
    done = CliRunner().invoke(command, [*given, "--no-cache", "--layout", "auto", "--device-memory", "1GiB"])
    assert "TFM781" in done.output and "LayoutMap" in path.read_text(encoding="utf-8")
