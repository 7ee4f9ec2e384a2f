"""What a project's settings say of its migration: the top section of its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrator.settings import Project, SettingsError, read
from migrator.targets import EVALUATE_ON, LOOPS, STRATEGIES

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

STYLES = ("auto", "native", "bridge", "module")
KERAS = ("2", "3")
_CODES = re.compile(r"TFM\d{0,3}")
_GIVEN = ("mesh", "layouts", "device_memory", "servers")
_CHOSEN = {"strategy": STRATEGIES, "style": STYLES, "keras": KERAS, "loop": LOOPS, "evaluate_on": EVALUATE_ON}


@dataclass(frozen=True)
class PerFile:
    """What is said of some files only; empty where it is as everywhere."""

    ignore: tuple[str, ...] = ()
    strategy: str = ""
    style: str = ""
    keras: str = ""
    loop: str = ""
    evaluate_on: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for a word that means nothing."""
        _check_words(self, ("",))
        check_codes(self.ignore)

    @property
    def asked(self) -> dict[str, str]:
        """What is said of how the files are migrated."""
        return {name: getattr(self, name) for name in _CHOSEN if getattr(self, name)}


@dataclass(frozen=True)
class Choices:
    """The settings of the migration, see docs/projects.md."""

    strategy: str = "auto"
    style: str = "auto"
    keras: str = "2"
    loop: str = "fit"
    mesh: str = ""
    layouts: tuple[str, ...] = ()
    device_memory: str = ""
    evaluate_on: str = "evaluator"
    servers: str = ""
    exclude: tuple[str, ...] = ()
    """Patterns of files, as in a .gitignore, that are not written unless they are named."""
    select: tuple[str, ...] = ()
    """Beginnings of codes that are told; none for all."""
    ignore: tuple[str, ...] = ()
    """Beginnings of codes that are accepted."""
    per_file: Mapping[str, PerFile] = field(default_factory=dict)
    """By pattern, as in a .gitignore."""
    baseline: str = ""
    """A file of accepted findings, relative to the settings."""

    def __post_init__(self) -> None:
        """Raises ValueError for a word that means nothing."""
        _check_words(self, ())
        check_codes((*self.select, *self.ignore))


#: How a file is to be migrated: names of `migrate.Options`, and what is chosen of each.
Wish = tuple[tuple[str, Any], ...]


def choices_of(project: Project) -> Choices:
    """The settings of a project. Raises SettingsError."""
    return read(project, Choices)


class Patterns:
    """Which files of a project its patterns mean."""

    def __init__(self, folder: Path, choices: Choices) -> None:
        self.folder = folder
        self.excluded = _spec(choices.exclude)
        self.per_file = [(_spec((pattern,)), said) for pattern, said in choices.per_file.items()]

    def excludes(self, path: Path) -> bool:
        """Whether a file is left alone unless it is named."""
        return self.excluded is not None and self._matches(self.excluded, path)

    def of(self, path: Path) -> PerFile:
        """What is said of a file; where several patterns mean it, the last word, and all that they ignore."""
        said = PerFile()
        for spec, one in self.per_file:
            if spec is not None and self._matches(spec, path):
                said = replace(said, **one.asked, ignore=(*said.ignore, *one.ignore))
        return said

    def _matches(self, spec: GitIgnoreSpec, path: Path) -> bool:
        try:
            inside = path.absolute().relative_to(self.folder)
        except ValueError:
            try:
                inside = path.resolve().relative_to(self.folder)
            except (ValueError, OSError, RuntimeError):
                return False
        return spec.match_file(inside.as_posix())


class Wishes:
    """How each file of a project is to be migrated: as the command says, else the settings of the file, else of all."""

    def __init__(self, project: Project, choices: Choices, named: Mapping[str, Any]) -> None:
        self.project = project
        self.patterns = Patterns(project.folder, choices)
        self.named = named
        self.everywhere = {**{name: getattr(choices, name) for name in (*_CHOSEN, *_GIVEN)}, **named}

    def of(self, path: Path) -> Wish:
        """The wish for a file."""
        own = {name: value for name, value in self.patterns.of(path).asked.items() if name not in self.named}
        return tuple({**self.everywhere, **own}.items())


def baseline_of(project: Project, choices: Choices) -> Path | None:
    """The baseline that the settings name. Raises SettingsError where it is outside of the project."""
    if not choices.baseline or project.file is None:
        return None
    path = (project.folder / choices.baseline).resolve()
    if not path.is_relative_to(project.root):
        raise SettingsError(project.file, "baseline", "must be inside the project")
    return path


def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec | None:
    if not patterns:
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)


def _check_words(said: object, further: tuple[str, ...]) -> None:
    for name, words in _CHOSEN.items():
        value = getattr(said, name)
        if value not in words and value not in further:
            raise ValueError(f"`{name.replace('_', '-')}` must be one of {', '.join(words)}, not {value!r}")


def check_codes(codes: tuple[str, ...]) -> None:
    """Raises ValueError for what is no code, or beginning of one."""
    for code in codes:
        if not _CODES.fullmatch(code):
            raise ValueError(f"{code!r} is no code or beginning of one, as TFM203 or TFM2")
