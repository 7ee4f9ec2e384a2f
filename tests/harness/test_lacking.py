"""What a program lacks that ends with an error before its models are built."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.bridge.files import read_imports
from migrator.harness.building import lacking, way_to_run


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: 'train.csv'", "data"),
        ("NotFoundError: planesnet32K.pklz; No such file or directory", "data"),
        ("AssertionError: No .json file found", "data"),
        ("AssertionError: assert tf.gfile.Exists(dataset)", "data"),
        ("AssertionError: assert os.path.isfile(path), path", "data"),
        ("AssertionError: assert mode == 'exists'", ""),
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


def test_a_script_that_has_the_name_of_its_package_is_run_as_a_module(tmp_path: Path) -> None:
    texts = {
        tmp_path / "net" / "__init__.py": "",
        tmp_path / "net" / "data.py": "rows = 3\n",
        tmp_path / "net" / "net.py": "from net.data import rows\n",
        tmp_path / "net" / "other.py": "import data\n",
        tmp_path / "run.py": "from net.data import rows\n",
    }
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    imports = read_imports(texts)

    def started(*parts: str) -> tuple[object, object]:
        how = way_to_run(tmp_path.joinpath(*parts), imports, tmp_path)
        return how["folder"], how["module"]

    assert started("net", "net.py") == (".", "net.net")
    assert started("net", "other.py") == ("net", "")
    assert started("run.py") == (".", "")
