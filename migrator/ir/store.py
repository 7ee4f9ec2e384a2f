"""What names, containers and objects hold at one point of a program, with the way back to an earlier point."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final

from migrator.ir.values import Scope, Value

Key = tuple[object, ...]


class _Absent:
    """Nothing: a name that has no value here, or an entry that is not there."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True)
class Elements:
    """The elements of a list, tuple or set; with `more`, there may be any number of any others as well."""

    items: tuple[Value, ...] = ()
    more: bool = False


@dataclass(frozen=True)
class Entries:
    """The entries of a dict by their keys' identity: key and value; with `more`, there may be others."""

    items: Mapping[Hashable, tuple[Value, Value]]
    more: bool = False


@dataclass
class Listening:
    """What somebody asks the store for, and has not written himself before."""

    found: set[Key] = field(default_factory=set)
    own: set[Key] = field(default_factory=set)

    def read(self, key: Key) -> None:
        """Notes a question."""
        if key not in self.own:
            self.found.add(key)


class Store:
    """A mapping that can go back: `mark` notes a point, `undo` returns to it, `since` says what was written since."""

    def __init__(self) -> None:
        self._values: dict[Key, object] = {}
        self._journal: list[tuple[Key, object]] = []
        self._listening: Listening | None = None

    def get(self, key: Key) -> object:
        """What was written last; ABSENT where nothing was."""
        if self._listening is not None:
            self._listening.read(key)
        return self._values.get(key, ABSENT)

    def set(self, key: Key, value: object) -> None:
        """Writes a value; ABSENT takes one away."""
        if self._listening is not None:
            self._listening.own.add(key)
        self._journal.append((key, self._values.get(key, ABSENT)))
        if value is ABSENT:
            self._values.pop(key, None)
        else:
            self._values[key] = value

    def held(self, owner: Value | Scope) -> dict[str, Value]:
        """The attributes of an object, or the names of a scope, in the order in which they were written first."""
        found = {key[1]: value for key, value in self._values.items() if len(key) == 2 and key[0] is owner}
        if self._listening is not None:
            for name in found:
                self._listening.read((owner, name))
        return {name: one for name, one in found.items() if isinstance(name, str) and isinstance(one, Value)}

    def owners(self) -> frozenset[object]:
        """The scopes, containers and objects that hold something."""
        return frozenset(key[0] for key in self._values)

    def held_now(self) -> dict[Key, object]:
        """All that is held, as it is at this point."""
        return dict(self._values)

    def listen(self, listening: Listening | None) -> Listening | None:
        """Tells somebody from now on what is asked for; None ends that. Returns who was told before."""
        before, self._listening = self._listening, listening
        return before

    def mark(self) -> int:
        """This point."""
        return len(self._journal)

    def since(self, mark: int) -> dict[Key, object]:
        """All that was written after a point, as it is now."""
        return {key: self._values.get(key, ABSENT) for key, _ in self._journal[mark:]}

    def undo(self, mark: int) -> dict[Key, object]:
        """Goes back to a point; returns what `since` said."""
        written = self.since(mark)
        for key, old in reversed(self._journal[mark:]):
            if old is ABSENT:
                self._values.pop(key, None)
            else:
                self._values[key] = old
        del self._journal[mark:]
        return written

    def write(self, values: Mapping[Key, object]) -> None:
        """Writes several values."""
        for key, value in values.items():
            self.set(key, value)


__all__ = ["ABSENT", "Elements", "Entries", "Key", "Listening", "Store"]
