"""The settings of a project: where they are, and their sections as typed data.

They stand in `[tool.tf-migrate]` of pyproject.toml, or in `[tf-migrate]` or `[tool:tf-migrate]` of setup.cfg, of the
nearest folder above that has them, up to the root of the project. Each command owns a section, and declares it as a
frozen dataclass: `read(project, Verify, "verify")` is what `[tool.tf-migrate.verify]` says. A setting is data: it
names no code that the codemod would run, and no place that it would write to.
"""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

CODE = "TFM910"
#: Sections below the top one, by the command that owns them: no other command looks into them.
SECTIONS = frozenset({"verify", "status"})
_MARKERS = ("pyproject.toml", "setup.cfg", "setup.py")
_NAME = "tf-migrate"
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_LARGEST = 1_000_000  # bytes: no file of settings is larger

T = TypeVar("T")


class UsageProblem(ValueError):
    """What the user has to correct before anything is done."""


class SettingsError(UsageProblem):
    """Settings that cannot be understood; the message names the code, the file and the key."""

    def __init__(self, path: Path, key: str, message: str) -> None:
        self.path, self.key = path, key
        super().__init__(f"{CODE} {path}: {f'`{key}`: ' if key else ''}{message}")


@dataclass(frozen=True)
class Project:
    """A project's root, and its settings as they stand in their file."""

    root: Path
    """The top level of its git tree, else the nearest folder with a pyproject.toml, setup.cfg or setup.py, else the
    folder that was asked about. Absolute."""
    file: Path | None = None
    """What the settings were read from; None where the project has none."""
    table: Mapping[str, Any] = field(default_factory=dict)
    """The top section. Values of a setup.cfg are strings."""
    marked: bool = False
    """Whether anything says that the root is one."""

    @property
    def folder(self) -> Path:
        """What the paths in the settings are relative to: the folder of their file."""
        return self.file.parent if self.file is not None else self.root


def find(paths: Iterable[Path]) -> Project:
    """Returns the project that all these files and folders are in. Raises SettingsError for an unreadable file."""
    start = _common_folder(paths)
    above = (start, *start.parents)
    git = next((folder for folder in above if (folder / ".git").exists()), None)
    packed = next((folder for folder in above if any((folder / name).is_file() for name in _MARKERS)), None)
    root = git or packed or start
    for folder in above:
        file, table = _settings_in(folder)
        if file is not None:
            # Outside of git, settings further up than the nearest marker are the project's, too.
            root = root if git is not None else folder
            return Project(root, file, table, True)
        if folder == git:
            break
    return Project(root, marked=bool(git or packed))


def read(project: Project, kind: type[T], section: str = "") -> T:
    """Returns a section of the settings as an instance of a frozen dataclass, whose defaults stand for what is not set.

    The key of a field `some_name` is `some-name`. A field may be a bool, an int, a float, a str, a Literal of strings,
    a tuple of such (`tuple[str, ...]`), another such dataclass, a `Mapping[str, ...]` of any of them (a table whose
    keys are the user's own, as those of programs), or a `tuple` of dataclasses (an array of tables, in TOML only). The
    section `a.b` is `[tool.tf-migrate.a.b]` or `[tf-migrate.a.b]`. In setup.cfg lists are divided by commas or lines.

    Raises SettingsError for an unknown key or a value of another type.
    """
    table: Any = project.table
    name = ""
    for part in section.split(".") if section else ():
        name = f"{name}.{part}" if name else part
        table = table.get(part, {})
        if not isinstance(table, Mapping):
            raise SettingsError(project.file or project.root, name, "is a section, not a value")
    known = SECTIONS if not section else frozenset[str]()
    values = {key: value for key, value in table.items() if key not in known}
    made: T = _Reader(project.file or project.root).record(kind, values, section)
    return made


def _common_folder(paths: Iterable[Path]) -> Path:
    folders = []
    for path in paths:
        try:
            real = path.resolve()
        except (OSError, RuntimeError, ValueError):
            real = path.absolute()
        folders.append(real if real.is_dir() else real.parent)
    if not folders:
        return Path.cwd()
    first, *rest = folders
    return next(one for one in (first, *first.parents) if all(other.is_relative_to(one) for other in rest))


def _settings_in(folder: Path) -> tuple[Path | None, Mapping[str, Any]]:
    found = []
    for name, parse in (("pyproject.toml", _toml), ("setup.cfg", _cfg)):
        path = folder / name
        text = _text(path)
        if text is None or _NAME not in text:
            continue
        table = parse(path, text)
        if table is not None:
            found.append((path, table))
    if len(found) > 1:
        raise SettingsError(found[1][0], "", f"{found[0][0].name} beside it has settings of tf-migrate, too: keep one")
    return found[0] if found else (None, {})


def _text(path: Path) -> str | None:
    try:
        if not path.is_file():
            return None
        if path.stat().st_size > _LARGEST:
            raise SettingsError(path, "", f"is larger than {_LARGEST:,} bytes")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingsError(path, "", f"cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise SettingsError(path, "", "is not UTF-8") from None


def _toml(path: Path, text: str) -> Mapping[str, Any] | None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        tool = tomllib.loads(text).get("tool", {})
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(path, "", f"is not TOML: {error}") from None
    table = tool.get(_NAME) if isinstance(tool, Mapping) else None
    if table is not None and not isinstance(table, Mapping):
        raise SettingsError(path, f"tool.{_NAME}", "is a section, not a value")
    return table


def _cfg(path: Path, text: str) -> Mapping[str, Any] | None:
    import configparser

    parser = configparser.RawConfigParser(default_section="\0", inline_comment_prefixes=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # keys as they are written
    try:
        parser.read_string(text, source=path.name)
    except (configparser.Error, ValueError) as error:
        raise SettingsError(path, "", f"cannot be read: {' '.join(str(error).split())}") from None
    tables: dict[str, Any] = {}
    found: set[str] = set()
    for section in parser.sections():
        name = section.removeprefix("tool:")
        head, _, rest = name.partition(".")
        if head != _NAME:
            continue
        if name in found:
            raise SettingsError(path, "", f"[{name}] and [tool:{name}] are the same section: keep one")
        found.add(name)
        table = tables
        for part in rest.split(".") if rest else ():
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise SettingsError(path, rest, "is both a value and a section")
        table.update(parser.items(section))
    return tables if found else None


class _Reader:
    """Makes typed values of those of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def record(self, kind: Any, table: Mapping[str, Any], name: str) -> Any:
        """An instance of a dataclass."""
        hints = typing.get_type_hints(kind)
        fields = {one.name.replace("_", "-"): one for one in dataclasses.fields(kind)}
        for key in table:
            if key not in fields:
                expected = ", ".join(sorted(fields)) or "none"
                raise SettingsError(self.path, _join(name, key), f"unknown setting; known here: {expected}")
        values = {
            fields[key].name: self.value(hints[fields[key].name], value, _join(name, key))
            for key, value in table.items()
        }
        for key, one in fields.items():
            required = one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
            if required and one.name not in values:
                raise SettingsError(self.path, _join(name, key), "is missing")
        try:
            return kind(**values)
        except ValueError as error:  # of the dataclass's own __post_init__
            raise SettingsError(self.path, name, str(error)) from None

    def value(self, kind: Any, value: Any, name: str) -> Any:
        """A value of a type."""
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if dataclasses.is_dataclass(kind):
            if isinstance(value, Mapping):
                return self.record(kind, value, name)
            raise self._wrong(name, "a table", value)
        if origin is tuple:
            if isinstance(value, str) and self.path.suffix == ".cfg":
                value = [one.strip() for one in value.replace("\n", ",").split(",") if one.strip()]
            if not isinstance(value, list):
                raise self._wrong(name, "a list", value)
            return tuple(self.value(arguments[0], one, f"{name}[{place}]") for place, one in enumerate(value))
        if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
            if not isinstance(value, Mapping):
                raise self._wrong(name, "a table", value)
            return {key: self.value(arguments[1], one, _join(name, key)) for key, one in value.items()}
        if origin is typing.Literal:
            if value in arguments:
                return value
            raise self._wrong(name, f"one of {', '.join(map(str, arguments))}", value)
        return self.plain(kind, value, name)

    def plain(self, kind: Any, value: Any, name: str) -> Any:
        """A bool, a number or a string."""
        if isinstance(value, str) and self.path.suffix == ".cfg" and kind is not str:
            value = _typed(kind, value)
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            words = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
            raise self._wrong(name, words[kind], value)
        return value

    def _wrong(self, name: str, expected: str, value: Any) -> SettingsError:
        return SettingsError(self.path, name, f"must be {expected}, not {value!r}")


def _typed(kind: Any, value: str) -> Any:
    if kind is bool:
        return _BOOLEANS.get(value.lower(), value)
    try:
        return kind(value)
    except ValueError:
        return value


def _join(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key
