"""A view of the file system for one run: what its tasks write, delete and rename stays in layers of its own.

Linux only, where the kernel lets us: a mount namespace in which every folder that programs may write to is the lower
layer of an overlay (copy on write). All tasks of a run enter the same view, so what they share they share; when the
run is over its layers are gone, after they were looked through for what the program meant to do to the real files.
It is made by a process that ends at once: the namespace lives on in two descriptors.

It runs in the user's interpreter (Python 3.7 or newer, no migrator package).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_PR_SET_DUMPABLE = 4
_CAPABILITIES_3 = 0x20080522
# Nothing of a user's lies there, and some of it are no files at all.
_PSEUDO = frozenset(
    (
        "autofs",
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "devtmpfs",
        "efivarfs",
        "fusectl",
        "hugetlbfs",
        "mqueue",
        "nsfs",
        "proc",
        "pstore",
        "ramfs",
        "rpc_pipefs",
        "securityfs",
        "selinuxfs",
        "sysfs",
        "tracefs",
    )
)
# Sockets of services, which cannot be reached through an overlay.
_LEFT_ALONE = ("/run", "/var/run")
#: How many changes of one run are told of.
MOST_CHANGES = 200


class View:
    """The layers of one run. Made by the fork server, entered by each task.

    `own` are folders that stay the real ones, `near` some that the program works in. `covered` are the folders whose
    changes stay in the view: none where there could be no view.
    """

    def __init__(self, own: list[str], near: Sequence[str] = ()) -> None:
        self.own = own
        self._near = [*own, *near, os.path.expanduser("~"), tempfile.gettempdir()]
        self.covered: list[str] = []
        self.layers: list[str] = []
        self._namespaces: list[tuple[int, int]] = []
        self._bases: list[str] = []

    def make(self) -> None:
        """Set the namespace up. OSError where the kernel, or a container's rules, do not allow it."""
        if not sys.platform.startswith("linux"):
            raise OSError(errno.ENOSYS, "only Linux has mount namespaces")
        problem: OSError | None = None
        for kinds in ((_CLONE_NEWNS,), (_CLONE_NEWUSER, _CLONE_NEWNS)):
            try:
                self._make(kinds)
                return
            except OSError as error:
                problem = error
                self.close()
        assert problem is not None
        raise problem

    def _make(self, kinds: tuple[int, ...]) -> None:
        self._bases = list(_bases(self.own))
        said_read, said_write = os.pipe()
        go_read, go_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            answer: dict[str, Any]
            try:
                covered = _set_up(kinds, self.own, self._near, self._bases)
                answer = {"covered": covered}
            except OSError as error:
                answer = {"errno": error.errno, "message": str(error.strerror)}
            except BaseException as error:
                answer = {"errno": errno.EINVAL, "message": repr(error)}
            with contextlib.suppress(BaseException):
                os.write(said_write, (json.dumps(answer) + "\n").encode())
                os.close(go_write)
                os.read(go_read, 1)
            os._exit(0)
        try:
            os.close(said_write)
            with os.fdopen(said_read, "rb") as stream:
                line = stream.readline()
            found = json.loads(line.decode()) if line else {"errno": errno.EINVAL, "message": "it died"}
            if "covered" not in found:
                raise OSError(found["errno"], found["message"])
            for kind, name in ((_CLONE_NEWUSER, "user"), (_CLONE_NEWNS, "mnt")):
                if kind in kinds:
                    self._namespaces.append((kind, os.open("/proc/%d/ns/%s" % (pid, name), os.O_RDONLY)))
        finally:
            os.close(go_read)
            os.close(go_write)
            os.waitpid(pid, 0)
        self.layers = [layer for _, layer in found["covered"]]
        self.covered = [folder for folder, _ in found["covered"]]

    def enter(self) -> None:
        """Make this process, which must have one thread only, see the view. OSError if it cannot."""
        for kind, descriptor in self._namespaces:
            _call("setns", descriptor, kind)
            os.close(descriptor)
        if any(kind == _CLONE_NEWUSER for kind, _ in self._namespaces) and os.geteuid() != 0:
            _drop_capabilities()
        if self._namespaces:
            _libc().prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
        self._namespaces = []

    def changes(self) -> list[dict[str, str]]:
        """What the tasks did to real files and folders: {"path", "what": "written" | "made" | "deleted"}."""
        found: list[dict[str, str]] = []
        for folder, layer in zip(self.covered, self.layers):
            for path, what in _changes(os.path.join(layer, "upper"), folder):
                if len(found) == MOST_CHANGES:
                    return found
                if not _is_of_no_interest(path, what):
                    found.append({"path": path, "what": what})
        return found

    def close(self) -> None:
        """Remove the layers."""
        for _, descriptor in self._namespaces:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._namespaces = []
        for base in self._bases:
            shutil.rmtree(base, onerror=_make_writable)
        self._bases, self.layers, self.covered = [], [], []


def try_out() -> str:
    """Why views do not work here; nothing if they do. Tries what programs do, in a folder of its own."""
    place = tempfile.mkdtemp(prefix="tf-migrate-trial-")
    real = os.path.join(place, "real")
    own = os.path.join(place, "own")
    os.makedirs(os.path.join(real, "folder"))
    os.makedirs(own)
    for name in ("kept", os.path.join("folder", "kept")):
        with open(os.path.join(real, name), "w") as file:
            file.write("as it was")
    view = View([own], [real])
    try:
        view.make()
        if not any(_below(real, folder) for folder in view.covered):
            return "an overlay of %s could not be made" % place
        pid = os.fork()
        if pid == 0:
            code = 1
            with contextlib.suppress(BaseException):
                view.enter()
                _exercise(real, own)
                code = 0
            os._exit(code)
        _, status = os.waitpid(pid, 0)
        whole = sorted(os.listdir(real)) == ["folder", "kept"] and os.listdir(os.path.join(real, "folder")) == ["kept"]
        with open(os.path.join(real, "kept")) as file:
            whole = whole and file.read() == "as it was"
        if status != 0 or not whole or "new" not in os.listdir(own):
            return "an overlay did not do what it should"
    except OSError as error:
        return str(error.strerror or error)
    finally:
        view.close()
        shutil.rmtree(place, ignore_errors=True)
    return ""


def _exercise(real: str, own: str) -> None:
    with open(os.path.join(real, "kept"), "a") as file:
        file.write(" not")
    shutil.rmtree(os.path.join(real, "folder"))
    os.makedirs(os.path.join(real, "folder", "deeper"))
    assert os.listdir(os.path.join(real, "folder")) == ["deeper"]
    os.rename(os.path.join(real, "kept"), os.path.join(real, "folder", "moved"))
    assert os.listdir(real) == ["folder"]
    with open(os.path.join(own, "new"), "w"):
        pass


# -- mounting, in the process that makes the namespace ---------------------------------------------------------


def _set_up(kinds: tuple[int, ...], own: list[str], near: list[str], bases: list[str]) -> list[tuple[str, str]]:
    """Make this process a view; (folder, the layer of its changes) for each folder that is covered."""
    user, group = os.geteuid(), os.getegid()
    flags = 0
    for kind in kinds:
        flags |= kind
    _call("unshare", flags)
    if _CLONE_NEWUSER in kinds:
        for name, content in (("setgroups", "deny"), ("uid_map", "%d %d 1"), ("gid_map", "%d %d 1")):
            number = user if name == "uid_map" else group
            with open("/proc/self/" + name, "w") as file:
                file.write(content if "%" not in content else content % (number, number))
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    kept = [(folder, os.open(folder, os.O_PATH)) for folder in own]
    # By descriptor, and all before the first mount, which hides what is below it: the layers of others too.
    opened = [(base, os.open(base, os.O_PATH)) for base in bases]
    lowers = []
    folders = _to_cover()
    if _CLONE_NEWUSER in kinds:
        folders += _on_top(folders, near)
    for folder in folders:
        if any(_below(folder, one) for one in own):
            continue  # a layer on top of it would come along when it is put there again
        with contextlib.suppress(OSError):
            lowers.append((folder, os.open(folder, os.O_PATH)))
    covered = []
    for number, (folder, lower) in enumerate(lowers):
        for base, descriptor in opened:
            if _below(base, folder):
                continue  # a layer may not lie in the other
            try:
                upper, work = _layer(descriptor, str(number))
                options = "lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d"
                options %= (lower, upper, work)
                # A user's own overlay cannot rename folders (guard.py copies them then).
                options += ",userxattr" if _CLONE_NEWUSER in kinds else ",redirect_dir=on"
                try:
                    # Nothing of it outlives the run: no need to bring it to the disk, which takes time at the end.
                    _mount("overlay", folder, "overlay", 0, options + ",volatile")
                except OSError:
                    _mount("overlay", folder, "overlay", 0, options)
            except OSError:
                continue
            with contextlib.suppress(OSError):  # it has none, and whoever removes it has to read it
                os.chmod("/proc/self/fd/%d/work" % work, 0o700)
            covered.append((folder, os.path.join(base, str(number))))
            break
    for folder, descriptor in kept:
        if any(_below(folder, above) for above, _ in covered):
            _mount("/proc/self/fd/%d" % descriptor, folder, None, _MS_BIND | _MS_REC)
    return covered


def _bases(own: list[str]) -> Iterator[str]:
    """New folders that layers may lie in: not all of them below one of the folders that are covered."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    for place in (*own[:1], os.path.join(cache, "tf-migrate"), "/var/tmp", "/tmp", "/dev/shm"):
        with contextlib.suppress(OSError):
            yield os.path.realpath(tempfile.mkdtemp(prefix="tf-migrate-layers-", dir=place))


def _layer(base: int, name: str) -> tuple[int, int]:
    """The two folders of a new layer, by descriptor, in the folder with this one."""
    os.mkdir(name, dir_fd=base)
    made = []
    for part in ("upper", "work"):
        os.mkdir(os.path.join(name, part), dir_fd=base)
        made.append(os.open(os.path.join(name, part), os.O_PATH, dir_fd=base))
    return made[0], made[1]


def _to_cover() -> list[str]:
    """The largest folders in which nothing else is mounted, of all file systems that can be written to."""
    points, roots = set(), []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            before, _, after = line.partition(" - ")
            point = _unescaped(before.split()[4])
            points.add(point)
            # Of mounts at one and the same point the last one is seen.
            roots = [root for root in roots if root != point]
            if after.split()[0] not in _PSEUDO and "rw" in before.split()[5].split(","):
                roots.append(point)
    hidden = {point for point in points if point not in roots}
    found: list[str] = []
    for root in roots:
        found += _parts(root, points - {root}, hidden)
    return found


def _on_top(folders: list[str], near: list[str]) -> list[str]:
    """Folders in `folders` that are to be covered by themselves: somebody else owns one between.

    A user's own overlay cannot copy what is somebody else's, which it has to do for each folder above a change but for
    its topmost.
    """
    found = []
    for place in map(os.path.realpath, near):
        root = next((folder for folder in folders if _below(place, folder)), None)
        if root is None:
            continue
        top = place
        while top != root and _is_ours(os.path.dirname(top)):
            top = os.path.dirname(top)
        if top != root and os.path.dirname(top) != root and top not in found and os.path.isdir(top):
            found.append(top)
    return sorted(found)


def _parts(folder: str, points: set[str], hidden: set[str]) -> Iterator[str]:
    if folder in _LEFT_ALONE or folder in hidden:
        return
    if not any(_below(point, folder) for point in (*points, *_LEFT_ALONE)):
        if os.path.isdir(folder):
            yield folder
        return
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        if path not in points and os.path.isdir(path) and not os.path.islink(path):
            yield from _parts(path, points, hidden)


def _is_ours(folder: str) -> bool:
    try:
        found = os.stat(folder)
    except OSError:
        return False
    return (found.st_uid, found.st_gid) == (os.geteuid(), os.getegid())


def _unescaped(name: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        name = name.replace(code, character)
    return name


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> None:
    function = getattr(_libc(), name, None)
    if function is None:
        raise OSError(errno.ENOSYS, "%s does not exist here" % name)
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, "%s: %s" % (name, os.strerror(number)))


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    _call("mount", texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3])


def _drop_capabilities() -> None:
    """Give up what the first process of a user namespace may do in it: programs run with their user's rights."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_3, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())


# -- looking through the layers ----------------------------------------------------------------------------------


def _changes(layer: str, real: str) -> Iterator[tuple[str, str]]:
    """(path, what became of it) of all that differs, each folder that is new as one."""
    try:
        entries = sorted(os.listdir(layer))
    except OSError:
        return
    for name in entries:
        path, place = os.path.join(layer, name), os.path.join(real, name)
        try:
            found = os.lstat(path)
        except OSError:
            continue
        there = os.path.lexists(place)
        if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
            yield place, "deleted"
        elif stat.S_ISDIR(found.st_mode) and os.path.isdir(place) and not os.path.islink(place):
            if _is_opaque(path):
                yield place, "deleted"
            else:
                yield from _changes(path, place)
        else:
            yield place, "written" if there else "made"


def _is_opaque(path: str) -> bool:
    """Whether a folder was deleted, and made again."""
    for name in ("user.overlay.opaque", "trusted.overlay.opaque"):
        with contextlib.suppress(OSError):
            if os.getxattr(path, name) == b"y":
                return True
    return False


def _is_of_no_interest(path: str, what: str) -> bool:
    """Compiled modules, and temporary files whose names nobody chose."""
    if "__pycache__" in path.split(os.sep):
        return True
    temporary = os.path.realpath(tempfile.gettempdir())
    name = os.path.relpath(path, temporary).split(os.sep)[0]
    return what == "made" and _below(path, temporary) and name.startswith(("tmp", "tf-migrate-", "__autograph"))


def _make_writable(function: Any, path: str, _: Any) -> None:
    """For shutil.rmtree: a folder that its program made unreadable is made readable, and tried again."""
    with contextlib.suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        if os.path.isdir(path) and not os.path.islink(path):
            os.chmod(path, 0o700)
            for name in os.listdir(path):
                inner = os.path.join(path, name)
                if os.path.isdir(inner) and not os.path.islink(inner):
                    shutil.rmtree(inner, onerror=_make_writable)
                else:
                    os.unlink(inner)
            os.rmdir(path)
        else:
            os.unlink(path)
