"""Which files of a project can have to do with its programs: the others are not parsed at all."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from migrator.names.bare import says
from migrator.names.standing import has_estimators, needs_tensorflow_1, only_keras_2, standing
from migrator.names.uses import uses
from migrator.rules.sessions import may_train
from migrator.syntax import NOT_PYTHON, statements_in, tree_of

_SESSIONS = ("Session", ".Supervisor")
# What some check has something to say about: a file without any of these is not even parsed.
_MODERN = re.compile(
    r"experimental|distribute|\blr\b|\bdecay\b|reset_states|_generator|predict_(classes|proba)|DenseFeatures|"
    r"LocallyConnected|Mean(RelativeError|Tensor)|learning_phase|OrderedEnqueuer|SidecarEvaluator|multi_gpu_model|"
    r"LossScale|wrappers|CuDNN|[gs]et_session|keras\.distribution|import distribution|"
    r"\bworkers=|use_multiprocessing|max_queue_size|\bperiod=|schedule_decay|Reduction\.AUTO|reduction=[\"']auto|"
    r"\w+Optimizer\b|\bhorovod\b"
)


def may_be_modern(text: str) -> bool:
    """Whether a file may be TensorFlow 2 code that a check has something to say about."""
    if "tensorflow" not in text and "keras" not in text:
        return False
    if needs_tensorflow_1(text):
        return False
    # What is of Keras 2 alone asks for it, where the file does not already.
    if "TF_USE_LEGACY_KERAS" not in text and ("legacy" in text or only_keras_2(text)):
        return True
    return _MODERN.search(text) is not None or bool(standing(text))


def is_concerned(text: str) -> bool:
    """Whether a file may have to do with a program: `import *` may bring TensorFlow without saying so."""
    return "tensorflow" in text or "stimator" in text or "import *" in text


def programs_in(texts: Mapping[Path, str]) -> list[Path]:
    """The files that speak of an Estimator or train by hand."""
    return [p for p, text in texts.items() if is_concerned(text) and (speaks_of_estimators(text) or may_train(text))]


def speaks_of_estimators(text: str) -> bool:
    """Whether a text speaks of Estimators; those of tf.contrib.learn have their names from what they learn."""
    learns = "contrib" in text and "learn" in text and (says(text, "Classifier(") or says(text, "Regressor("))
    return learns or says(text, "stimator")


def around_programs(texts: Mapping[Path, str]) -> list[Path]:
    """The files that speak of an Estimator or train by hand, and all that they import, in the order of `texts`."""
    return around(texts, programs_in(texts))


def around_estimators(texts: Mapping[Path, str]) -> list[Path]:
    """The files whose code has an Estimator or trains by hand, and all that they import, in the order of `texts`."""
    return around(texts, (path for path, text in texts.items() if has_estimators(text) or trains_by_hand(text)))


def trains_by_hand(text: str) -> bool:
    """Whether a file's code trains in a session of its own."""
    return may_train(text) and any(use.name.endswith(_SESSIONS) for use in uses(text))


def around(texts: Mapping[Path, str], roots: Iterable[Path], every: bool = False) -> list[Path]:
    """Some files, and all that they import, in the order of `texts`; without `every` only what may be of TensorFlow.

    An import is taken to mean every file whose path ends like it, so more files may be found than are imported.
    """
    by_name: dict[str, list[Path]] = {}
    for path in texts:  # a package may import what is of TensorFlow without saying so itself
        by_name.setdefault(_module(path)[-1], []).append(path)
    found: dict[Path, list[Path]] = {}
    queue = [path for path in roots if path in texts]
    while queue:
        path = queue.pop()
        if path in found:
            continue
        imported = found[path] = []
        for module in _imported(texts[path]):
            for length in range(len(module), 0, -1):
                head = module[:length]
                imported += [other for other in by_name.get(head[-1], ()) if _module(other)[-length:] == head]
        queue += imported
    concerned = {path for path in found if is_concerned(texts[path]) or passes_on(path, texts[path])}
    between = set[Path]()  # modules that may pass on what others have, as a package does
    while more := {
        path for path in found.keys() - concerned - between if not (concerned | between).isdisjoint(found[path])
    }:
        between |= more
    return [path for path in texts if path in found and (every or path in concerned or path in between)]


def passes_on(path: Path, text: str) -> bool:
    """Whether a file is a package that may pass on what its modules define."""
    return path.stem == "__init__" and "import" in text


def imports_of(texts: Mapping[Path, str]) -> dict[Path, set[Path]]:
    """For every file the paths, without their endings, that its imports may mean.

    An import means the file of that name beside the importing one, or under one of the folders above it.
    """
    return {path: set(_may_mean(path, _imported(text))) for path, text in texts.items()}


@lru_cache(maxsize=1024)
def _may_mean(path: Path, modules: tuple[tuple[str, ...], ...]) -> frozenset[Path]:
    """The paths, without their endings, that the imports of some modules in a file may mean."""
    heads = {module[:length] for module in modules for length in range(1, len(module) + 1)}
    return frozenset(
        folder.joinpath(*head, *end) for head in heads for folder in path.parents for end in ((), ("__init__",))
    )


def importing(imported: Mapping[Path, set[Path]], wanted: Iterable[Path]) -> set[Path]:
    """The files that import one of some files, directly or not, and these themselves."""
    found = set(wanted)
    while True:
        files = {path.with_suffix("") for path in found}
        more = {path for path, modules in imported.items() if path not in found and modules & files}
        if not more:
            return found
        found |= more


def connected(texts: Mapping[Path, str], some: Collection[Path]) -> set[Path]:
    """Some files, and all that are connected to them by imports, in either direction."""
    found, imported = set(some), imports_of(texts) if some else {}
    while True:
        files = {path.with_suffix("") for path in found}
        named = set().union(*(imported[path] for path in found if path in imported))
        more = {
            p for p, modules in imported.items() if p not in found and (p.with_suffix("") in named or modules & files)
        }
        if not more:
            return found
        found |= more


def scripts_with(texts: Mapping[Path, str], wanted: set[Path]) -> set[Path]:
    """The scripts that speak of TensorFlow and import one of some files, directly or not; these files themselves, too.

    A script is what no file imports, or what does something when it is the main module.
    """
    if not wanted:
        return set()
    imported = imports_of({path: text for path, text in texts.items() if "tensorflow" in text})
    everywhere = set().union(*imported.values())
    found = importing(imported, wanted)
    return wanted | {path for path in found if "__main__" in texts[path] or path.with_suffix("") not in everywhere}


def _module(path: Path) -> tuple[str, ...]:
    """The parts of a file's path, as an import spells them."""
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


@lru_cache(maxsize=256)
def _imported(text: str) -> tuple[tuple[str, ...], ...]:
    """The dotted names that a file imports, the dots of relative imports left out."""
    try:
        tree = tree_of(text)
    except NOT_PYTHON:
        return ()
    found: list[tuple[str, ...]] = []
    for node in statements_in(tree):
        if isinstance(node, ast.Import):
            found += [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            found += [(*module, alias.name) for alias in node.names]
    return tuple(found)
