"""A program for Keras 2 has to ask for it, as its user's Python wants it to; with a TensorFlow of a few lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from migrator.harness.cluster import ClusterShape, ForkServer, Launch, RunOutcome

ASKS = "import os; os.environ['TF_USE_LEGACY_KERAS'] = '1'\n"
Run = Callable[..., RunOutcome]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    packages = tmp_path_factory.mktemp("packages") / "site-packages"
    for name, text in {
        "tensorflow/__init__.py": "from tensorflow import keras\n__version__ = '2.21.0'\nint32 = 'int32'\n",
        "tensorflow/keras/__init__.py": "from tensorflow.keras import layers\nclass Model: pass\n",
        "tensorflow/keras/layers.py": "class Dense: pass\n",
        "tf_keras/__init__.py": "",
        "a_library.py": "import tensorflow as tf\ndef model(): return tf.keras.Model()\n",
    }.items():
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(packages))
        patch.delenv("TF_USE_LEGACY_KERAS", raising=False)
        with ForkServer(Path(sys.executable), "migrated", preload=("tensorflow",)) as server:
            yield server


@pytest.fixture
def run(server: ForkServer, tmp_path: Path) -> Run:
    def run(text: str, asks: bool = True) -> RunOutcome:
        script = tmp_path / "train.py"
        script.write_text(text)
        shape = ClusterShape()
        return server.run(Launch("migrated", script, (), shape, tmp_path / "run", asks_for_keras=asks))

    return run


USES = [
    "import tensorflow as tf\ntf.keras.Model()\n",
    "import tensorflow\ntensorflow.keras.layers.Dense()\n",
    "from tensorflow import keras\nkeras.Model()\n",
    "from tensorflow.keras import Model\nModel()\n",
    "from tensorflow.keras.layers import Dense\nDense()\n",
    "import tensorflow.keras.layers as layers\nlayers.Dense()\n",
]


@pytest.mark.parametrize("text", USES)
def test_a_program_gets_keras_2_only_if_it_asks(run: Run, text: str) -> None:
    assert run(ASKS + text).failure is None
    failure = run(text).failure
    assert failure is not None
    assert failure.message.startswith("local:0 ended with exit code 1: RuntimeError: the program uses tf.keras without")
    assert "--keras 3" in failure.message
    assert run(text, asks=False).failure is None


def test_one_that_says_no_has_not_asked(run: Run) -> None:
    assert run(ASKS.replace("'1'", "'0'") + USES[0]).failure is not None


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf\nprint(tf.int32, hasattr(tf, 'keras'))\n",
        "import a_library\na_library.model()\n",
        "import os\nassert 'TF_USE_LEGACY_KERAS' not in os.environ\n",
    ],
)
def test_one_that_does_not_use_it_need_not_ask(run: Run, text: str) -> None:
    assert run(text).failure is None


def test_what_the_users_shell_asks_for_counts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    assert run(USES[0]).failure is None
