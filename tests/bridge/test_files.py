"""Where the support file goes, by how the files of a program import each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.bridge.files import Placed, place, read_imports

ROOT = Path("/project")


def placed(texts: dict[str, str], program: set[str]) -> Placed:
    files = {ROOT / name: text for name, text in texts.items()}
    return place({ROOT / name for name in program}, read_imports(files))


def test_files_of_a_package_import_it_from_the_package() -> None:
    texts = {"run.py": "from ner import model", "ner/model.py": "from ner import parts", "ner/parts.py": ""}
    assert placed(texts, {"ner/model.py", "ner/parts.py"}) == Placed(ROOT / "ner", "ner")


@pytest.mark.parametrize("folder", ["bert-ner", "2018", "class"])
def test_a_folder_that_is_no_package_is_not_imported_from_above(folder: str) -> None:
    texts = {
        "tags.py": "",
        f"{folder}/base/model.py": "import tags\nfrom base import parts",
        f"{folder}/base/parts.py": "",
        f"{folder}/run.py": "from base import model",
    }
    program = {name for name in texts if name.startswith(folder)}
    assert placed(texts, program) == Placed(ROOT / folder)
