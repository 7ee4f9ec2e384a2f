"""Which packages a trial of programs installs, and what it does where some cannot be had."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from migrator.harness import packages
from migrator.harness.environments import EnvironmentNotReady, Extra
from migrator.harness.packages import python_with, wanted_packages


def test_known_and_declared_packages_are_wanted_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "tensorflow==1.15.0\nmy-own.metrics==0.3  # ours\nunused\n-r more.txt\ngit+https://example.org/x\n"
    )
    text = """
import os, json, tensorflow as tf, numpy as np
import cv2, utils, no_such_package
from sklearn.metrics import auc
from . import yaml
def load():
    import pandas as pd
    from my_own_metrics.more import f1
"""
    found = wanted_packages([ast.parse(text)], {"utils"}, tmp_path)
    assert found == ("my-own.metrics", "opencv-python-headless", "pandas<3", "scikit-learn")
    assert wanted_packages([ast.parse("import pandas")], {"pandas"}, tmp_path) == ()
    assert wanted_packages([ast.parse("import tensorflow_hub")], (), tmp_path) == ("setuptools<80", "tensorflow-hub")
    assert wanted_packages([ast.parse("import os, numpy")], (), tmp_path / "nowhere") == ()


def test_one_package_that_is_nowhere_hinders_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def made(extra: Extra | None = None) -> Path:
        asked.append(extra.packages if extra else ())
        if extra and "no-such" in extra.packages:
            raise EnvironmentNotReady("not found")
        return Path("python", *asked[-1])

    monkeypatch.setattr(packages, "migrated_python", made)
    monkeypatch.setattr(packages, "_installs", lambda python, package: package != "no-such")
    assert python_with(()) == Path("python")
    assert python_with(("nltk",)) == Path("python/nltk")
    assert python_with(("nltk", "no-such")) == Path("python/nltk")
    assert python_with(("no-such",)) == Path("python")
    assert asked[-2:] == [("no-such",), ()]
