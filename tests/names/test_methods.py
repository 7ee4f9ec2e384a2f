"""Methods of datasets that TensorFlow 2.21 lacks are found where the receiver surely is a dataset of `tf.data`."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import run

HEAD = "import tensorflow as tf\n\n"


@pytest.mark.parametrize(
    "text",
    [
        "dataset = tf.data.Dataset.range(3)\niterator = dataset.make_one_shot_iterator()\n",
        "tf.data.Dataset.range(3).batch(2).make_one_shot_iterator()\n",
        "print(tf.data.TFRecordDataset(['a']).output_shapes)\n",
        "data = tf.data.Dataset.range(3)\ndata = data.map(abs).batch(2)\nprint(data.output_types)\n",
        "def make():\n    return tf.data.TextLineDataset('a')\n\nmake().repeat().make_initializable_iterator()\n",
        "def main():\n    if (data := tf.data.Dataset.range(3)):\n        data.map_with_legacy_function(abs)\n",
        "class A:\n    def __init__(self):\n        self.data = tf.data.Dataset.range(3)\n\n"
        "    def next(self):\n        return self.data.make_one_shot_iterator()\n",
        "from tensorflow import data as d\n\nd.Dataset.range(3).make_one_shot_iterator()\n",
        "a = tf.data.Dataset.range(3) if input() else tf.data.Dataset.range(4)\na.make_one_shot_iterator()\n",
    ],
)
def test_a_method_that_is_gone(text: str) -> None:
    for old in (HEAD + text, "# make_one_shot_iterator\n" + HEAD + text):
        new, findings = run(old)
        assert new == old
        assert [(f.code, f.severity) for f in findings] == [("TFM270", Severity.MANUAL)]
        assert "`tf.data.Dataset." in findings[0].message


@pytest.mark.parametrize(
    "text",
    [
        "dataset = tf.compat.v1.data.Dataset.range(3)\ndataset.make_one_shot_iterator()\n",
        "d = tf.data.Dataset.range(3)\ntry:\n    d.make_one_shot_iterator()\nexcept AttributeError:\n    pass\n",
        "d = tf.data.Dataset.range(3)\nif hasattr(d, 'output_types'):\n    print(d.output_types)\n",
        "import mine\n\nd = tf.data.Dataset.range(3)\nd = mine.wrapped(d)\nd.make_one_shot_iterator()\n",
        "def of(dataset):\n    return dataset.output_types\n\nof(tf.data.Dataset.range(3))\n",
        "dataset = tf.data.Dataset.range(3)\nprint(dataset.element_spec, 'output_types')\n",
        "model = tf.keras.Sequential()\nprint(model.output_shapes)\nd = tf.data.Dataset.range(3)\n",
        "for d in [tf.data.Dataset.range(3)]:\n    pass\nd = tf.data.Dataset.range(3)\nd.output_types\n",
    ],
)
def test_what_may_be_something_else(text: str) -> None:
    assert not run(HEAD + text)[1]


def test_a_dataset_of_compat_v1_by_import() -> None:
    assert not run("import tensorflow.compat.v1 as tf\n\ntf.data.Dataset.range(3).make_one_shot_iterator()\n")[1]
