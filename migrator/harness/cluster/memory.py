"""How much memory is left: on the machine, and in the control groups (cgroups) that this process is in.

Files that are not there (another operating system, a container that hides them) are no error: what they would
have said is not known then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

#: Bytes that one more task takes: a fork shares the imported modules, its own is what it computes with.
TASK_WITH_TENSORFLOW = 200 << 20
TASK = 20 << 20
_SMALLEST_RESERVE = 256 << 20
_NO_LIMIT = 1 << 60


def available(proc: Path = Path("/proc")) -> int:
    """Bytes that can be used yet before the machine, or a control group around this process, has none."""
    left = [psutil.virtual_memory().available]
    for group in _groups(proc):
        room = group.room()
        if room is not None:
            left.append(room)
    return max(0, min(left))


def reserve(left: int) -> int:
    """Bytes to leave alone of `left`: a twentieth, 256 MB at least, half of it at most."""
    return min(left // 2, max(_SMALLEST_RESERVE, left // 20))


def kills(proc: Path = Path("/proc")) -> int | None:
    """How many processes were killed for lack of memory: in our control group, else on the machine. None: unknown."""
    for group in _groups(proc):
        number = _entry(group.folder / group.version.kills, "oom_kill")
        if number is not None:
            return number
    return _entry(proc / "vmstat", "oom_kill")


def text(size: int) -> str:
    """A number of bytes for people: "3.2 GB"."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


@dataclass(frozen=True)
class _Version:
    limit: str
    used: str
    total: str
    kills: str


_V1 = _Version("memory.limit_in_bytes", "memory.usage_in_bytes", "total_", "memory.oom_control")
_V2 = _Version("memory.max", "memory.current", "", "memory.events")


@dataclass(frozen=True)
class _Group:
    folder: Path
    version: _Version

    def room(self) -> int | None:
        """Bytes to the limit; None without one. The cache of files counts as free: the kernel gives it up."""
        limit, used = _number(self.folder / self.version.limit), _number(self.folder / self.version.used)
        if limit is None or used is None or limit >= _NO_LIMIT:
            return None
        cached = (f"{self.version.total}{name}_file" for name in ("active", "inactive"))
        return limit - used + sum(_entry(self.folder / "memory.stat", name) or 0 for name in cached)


def _groups(proc: Path) -> Iterator[_Group]:
    """The control groups that count this process's memory, the innermost first."""
    mounts = list(_mounts(proc))
    for line in _read(proc / "self" / "cgroup").splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        version = _V2 if hierarchy == "0" and not controllers else _V1
        if version is _V1 and "memory" not in controllers.split(","):
            continue
        for mounted, root, point in mounts:
            if mounted is not version:
                continue
            # In a container the mount shows its own group only, whatever the path outside is called.
            below = path[len(root.rstrip("/")) :] if path.startswith(root) else ""
            folder = point / below.strip("/")
            if not folder.is_dir():
                folder = point
            for place in (folder, *folder.parents):
                yield _Group(place, version)
                if place == point:
                    break


def _mounts(proc: Path) -> Iterator[tuple[_Version, str, Path]]:
    for line in _read(proc / "self" / "mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) < 5 or len(kinds) < 3:
            continue
        if kinds[0] == "cgroup2":
            yield _V2, fields[3], Path(fields[4])
        elif kinds[0] == "cgroup" and "memory" in kinds[2].split(","):
            yield _V1, fields[3], Path(fields[4])


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text("utf-8", "replace")
    return ""


def _number(path: Path) -> int | None:
    content = _read(path).strip()
    return int(content) if content.isdigit() else None


def _entry(path: Path, name: str) -> int | None:
    """The number behind `name` in a file of lines like "oom_kill 3"."""
    for line in _read(path).splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return None
