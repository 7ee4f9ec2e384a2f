"""Imports that a file needs once statements of another file stand in it."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrator.emit.further_imports import with_imports
from migrator.program.further_imports import import_of, origin_of
from migrator.program.parsed import ParsedFile, Project


def line_for(name: str, train: str, helpers: str, **others: str) -> str | None:
    """The import that `train.py` needs for what `helpers.py` calls `name`."""
    texts = {"train": train, "helpers": helpers, **others}
    files = {path: ParsedFile.parse(Path(f"{path}.py"), text) for path, text in texts.items()}
    return import_of(Project.of(files.values()), files["train"], files["helpers"], name)


# what helpers.py says at its top -> the line for train.py (None: it is not safe)
LINES = {
    "import re": "import re",
    "import json, re": "import re",
    "import regex as re": "import regex as re",
    "from regex import (match, re)": "from regex import re",
    "from tools import (\n    match,\n    expressions as re,\n)": "from tools import expressions as re",
    "re = 1.0": "from helpers import re",
    "def re():\n    pass": "from helpers import re",
    "re = 1.0\nre = 2.0": None,
    "re = 1.0\ndef f():\n    global re\n    re = 2.0": None,
    "for re in (1, 2):\n    pass": None,
    "if TYPE_CHECKING:\n    import re": None,
    "try:\n    import re\nexcept ImportError:\n    re = None": None,
}


@pytest.mark.parametrize("helpers", LINES)
def test_the_line_that_imports_a_name(helpers: str) -> None:
    text = f"{helpers}\ndef error(a):\n    return re(a)\n"
    assert line_for("re", "from helpers import error\n", text) == LINES[helpers]


def test_a_name_that_is_in_use_is_not_imported() -> None:
    for train in ("def f(re):\n    pass\n", "def f():\n    re = 1\n", "import re\n", "print(re)\n"):
        assert line_for("re", f"from helpers import error\n{train}", "import re\ndef error(a):\n    pass\n") is None


def test_what_imports_the_file_itself_is_not_imported() -> None:
    helpers = "import network\ndef error(a):\n    pass\n"
    train = "import helpers\n"
    assert line_for("network", train, helpers, network="import other\n", other="import math\n") == "import network"
    assert line_for("network", train, helpers, network="import other\n", other="from train import f\n") is None


def test_lines_are_put_among_the_imports() -> None:
    head = "import os\n\nimport numpy as np\nfrom nets import (\n    network,\n)\n"
    lines = {"re": "import re", "SCALE": "from nets import SCALE", "cv2": "import cv2", "json": "import json"}
    expected = (
        "import os\nimport re\n\nimport numpy as np\nfrom nets import (\n    SCALE,\n    network,\n)\nimport cv2\n"
    )
    use = "\nx = re.match, SCALE, cv2, np, os\n"
    assert with_imports(cst.parse_module(head + use), lines).code == expected + use
    assert origin_of("from nets import SCALE as s") == "nets.SCALE"
