"""What a program lacks that ends with an error before its models are built."""

from __future__ import annotations

import pytest

from migrator.harness.building import lacking


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: 'train.csv'", "data"),
        ("NotFoundError: planesnet32K.pklz; No such file or directory", "data"),
        ("AssertionError: No .json file found", "data"),
        ("Exception: URL fetch failure on https://x.org/tensorflow/iris.csv: None", "a network"),
        ("SystemExit: 2", "arguments"),
        (
            "IllegalFlagValueError: flag --data_dir=None: Flag --data_dir must have a value other than None.",
            "arguments",
        ),
        ("ModuleNotFoundError: No module named 'cv2'", "a package"),
        ("Needed: No module named 'cv2'", "a package"),
        ("ModuleNotFoundError: No module named 'tensorflow.contrib'", ""),
        ("AttributeError: module 'tensorflow' has no attribute 'logging'", ""),
        ("ValueError: Cannot capture a stateful node", ""),
    ],
)
def test_errors_say_what_is_lacking(said: str, what: str) -> None:
    assert lacking(said) == what
