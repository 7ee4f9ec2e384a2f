"""The packages that programs import besides TensorFlow, and what they are called where they are installed from.

A name that is imported is not the name that it is installed by, and a package of that name may be somebody else's:
nothing is installed that is neither well known nor named in the project's own requirements.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from migrator.harness.environments import EnvironmentNotReady, Extra, migrated_python, uv_program

# By the name that is imported: what to install for it, with what that needs and does not ask for. From version 3 on
# strings of pandas are no objects, which programs for TensorFlow 1 count on.
_WELL_KNOWN = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docopt": "docopt",
    "easydict": "easydict",
    "gensim": "gensim",
    "imageio": "imageio",
    "jieba": "jieba",
    "joblib": "joblib",
    "librosa": "librosa",
    "lxml": "lxml",
    "matplotlib": "matplotlib",
    "networkx": "networkx",
    "nltk": "nltk",
    "pandas": "pandas<3",
    "PIL": "pillow",
    "pkg_resources": "setuptools<80",
    "prettytable": "prettytable",
    "psutil": "psutil",
    "pytz": "pytz",
    "regex": "regex",
    "requests": "requests",
    "scipy": "scipy",
    "seaborn": "seaborn",
    "sentencepiece": "sentencepiece",
    "simplejson": "simplejson",
    "six": "six",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "tabulate": "tabulate",
    "tensorflow_datasets": "tensorflow-datasets",
    "tensorflow_hub": "tensorflow-hub setuptools<80",
    "tensorflow_probability": "tensorflow-probability",
    "tf_slim": "tf-slim",
    "toml": "toml",
    "tqdm": "tqdm",
    "ujson": "ujson",
    "unidecode": "unidecode",
    "yaml": "pyyaml",
}
_OF_TENSORFLOW = ("tensorflow", "tf_keras", "keras", "numpy", "absl", "google")


def wanted_packages(trees: Iterable[ast.Module], own: Collection[str], root: Path) -> tuple[str, ...]:
    """What to install for the imports of some files, sorted.

    `own` are the names of the project's own modules, `root` the folder whose requirements.txt counts.
    """
    declared = dict(_declared(root / "requirements.txt"))
    found = set()
    for name in {name for tree in trees for name in _imported(tree)}:
        if name not in own and name not in sys.stdlib_module_names and name not in _OF_TENSORFLOW:
            found.update((_WELL_KNOWN.get(name) or declared.get(_normal(name), "")).split())
    return tuple(sorted(found))


def python_with(packages: tuple[str, ...]) -> Path:
    """The interpreter of migrated programs with such of the packages as can be had; it is made if need be."""
    try:
        return migrated_python(extra=Extra(packages=packages))
    except EnvironmentNotReady:
        plain = migrated_python()
        # An interpreter that the user names is taken as it is, and one package that is not there hinders no other.
        there = tuple(package for package in packages if _installs(plain, package)) if packages else ()
    try:
        return migrated_python(extra=Extra(packages=there)) if there and there != packages else plain
    except EnvironmentNotReady:
        return plain


def _installs(python: Path, package: str) -> bool:
    command = [uv_program(), "pip", "install", "--dry-run", "--quiet", "--python", str(python), package]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def _imported(tree: ast.Module) -> Iterator[str]:
    """The first parts of what is imported from outside of its own package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def _declared(file: Path) -> Iterator[tuple[str, str]]:
    """Packages that a file of requirements names, without versions: those are of the time of TensorFlow 1."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        found = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^]]*\])?\s*([=<>!~;#].*)?$", line)
        if found:
            yield _normal(found[1]), found[1]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
