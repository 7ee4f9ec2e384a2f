"""How an original is run follows from the names that it and its modules use."""

import subprocess
import sys
from pathlib import Path

import pytest

from migrator.harness.versions import OriginalRuns, written_for

FIRST = OriginalRuns.TENSORFLOW1
CONTRIB = OriginalRuns.TENSORFLOW115
SECOND = OriginalRuns.FIRST_KERAS2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import tensorflow as tf\ntf.keras.Sequential([]).fit(x)\n", SECOND),
        ("import tensorflow as tf\nwith tf.GradientTape() as tape: pass\n", SECOND),
        ("from tensorflow import keras\nkeras.Sequential([])\n", SECOND),
        ("from tensorflow.experimental import dtensor\ndtensor.create_mesh()\n", SECOND),
        # What TensorFlow 2 programs take of compat.v1 beside their training.
        ("import tensorflow as tf\ntf.compat.v1.ConfigProto()\ntf.keras.Sequential([])\n", SECOND),
        ("import tensorflow as tf\ntf.compat.v1.fixed_size_partitioner(2)\ntf.keras.Sequential([])\n", SECOND),
        ("import tensorflow as tf\ntf.estimator.Estimator(model_fn)\n", FIRST),
        ("import tensorflow.compat.v1 as tf\ntf.estimator.Estimator(model_fn)\n", FIRST),
        ("import tensorflow as tf\ntf.compat.v1.train.AdamOptimizer()\ntf.keras.Sequential([])\n", FIRST),
        ("import tensorflow as tf\ntf.train.AdamOptimizer().minimize(loss)\n", FIRST),
        ("import tensorflow as tf\nsession = tf.Session()\ntf.keras.Sequential([])\n", FIRST),
        ("import tensorflow as tf\ntf.contrib.layers.fully_connected(x, 3)\n", CONTRIB),
        ("from tensorflow.contrib import slim\nslim.conv2d(x, 3, 3)\n", CONTRIB),
        ("import tensorflow.contrib.slim as slim\nslim.conv2d(x, 3, 3)\n", CONTRIB),
        ("from tensorflow.estimator import Estimator\nEstimator(model_fn)\n", FIRST),
        ("import tensorflow as tf\ngetattr(tf, 'Session')()\n", FIRST),
        ("import tensorflow as tf\nv1 = tf.compat.v1\nv1.Session()\n", FIRST),
        ("import importlib\ntf = importlib.import_module('tensorflow.compat.v1')\ntf.placeholder(tf.float32)\n", FIRST),
        ("print('no TensorFlow')\n", FIRST),
        ("def broken(:\n", FIRST),
    ],
)
def test_names_tell_the_version(tmp_path: Path, text: str, expected: OriginalRuns) -> None:
    script = tmp_path / "train.py"
    script.write_text(text, encoding="utf-8")
    assert written_for(script) is expected


def test_modules_beside_the_script_count(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import tensorflow as tf\nfrom package import model\ntf.data.Dataset\nmodel.run()\n")
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "model.py").write_text("from tensorflow import keras\nrun = keras.Sequential([]).fit\n")
    assert written_for(script) is SECOND
    (package / "model.py").write_text("import tensorflow as tf\nrun = tf.estimator.Estimator(f).train\n")
    assert written_for(script) is FIRST
    script.write_text(script.read_text() + "tf.estimator.Estimator(f)\n")
    (package / "model.py").write_text("from tensorflow.contrib.layers import fully_connected as run\nrun(1, 2)\n")
    assert written_for(script) is CONTRIB


def test_what_reads_whole_programs_is_loaded_only_where_names_do_not_tell(tmp_path: Path) -> None:
    """It takes as long to import as all else that a verification needs."""
    (tmp_path / "plain.py").write_text("import tensorflow as tf\ntf.estimator.Estimator(None)\n")
    (tmp_path / "told.py").write_text('import tensorflow as tf\ngetattr(tf, "Session")()\n')
    code = (
        "import sys; from pathlib import Path; from migrator.harness.versions import written_for\n"
        "for name in sys.argv[1:]:\n"
        "    print(written_for(Path(name)).name, 'migrator.program.reductions' in sys.modules)\n"
    )
    given = [sys.executable, "-c", code, str(tmp_path / "plain.py"), str(tmp_path / "told.py")]
    lines = subprocess.run(given, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines == ["TENSORFLOW1 False", "TENSORFLOW1 True"]
