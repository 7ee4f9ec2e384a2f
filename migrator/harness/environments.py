"""The interpreters that run the user's programs: made once with uv, cached, shared by all projects.

`python -m migrator.harness.environments` makes both and prints where they are. A third, with TensorFlow 1.15.5, needs a
Python 3.7, which few machines have: it is made where there is one, and asked for.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from migrator import folders

#: Both programs and the tool may share an interpreter of these versions; other tools get the last one from
#: uv.
_SUPPORTED_PYTHONS = ((3, 10), (3, 11))
_FIRST_PYTHON = (3, 7)
# What is made differently from here on must not be mistaken for what was made before.
_LAYOUT = 1
_SHOWN_LINES = 15
_OTHER_TENSORFLOWS = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly", "tensorflow-estimator", "keras")
# TensorFlow computes nothing with it, and what programs need of it (pkg_resources) is gone from later versions.
_REPLACED = ("setuptools",)

Say = Callable[[str], None]


class EnvironmentNotReady(Exception):
    """An environment is missing and cannot be made. The message says why and what to do about it."""


@dataclass(frozen=True)
class Extra:
    """What programs need besides TensorFlow: files of requirements, and requirements as pip takes them ("pandas<3")."""

    files: tuple[Path, ...] = ()
    packages: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.packages)

    def facts(self) -> tuple[object, ...]:
        """What tells it from others. Raises EnvironmentNotReady for a file that cannot be read."""
        return (*self.packages, *(line for file in self.files for line in _requirements(file)))


@dataclass(frozen=True)
class Specification:
    """What an environment consists of: name, variable that overrides it, pip requirements, code to try it.

    `without` names packages that the requirements ask for but that must not be installed. `extra` is added to an
    environment that is there, none of whose packages changes. It has the Python `version`, of the interpreter `python`,
    where that is not the one of the others; its packages are not locked then.
    """

    name: str
    variable: str
    requirements: tuple[str, ...]
    without: tuple[str, ...]
    trial: str
    environment: tuple[tuple[str, str], ...] = ()
    extra: Extra = field(default_factory=Extra)
    version: tuple[int, int] | None = None
    python: str | None = None

    @property
    def key(self) -> str:
        """The folder's name in the cache; changes with everything that changes the environment."""
        python = ".".join(map(str, self.version or python_version()))
        facts = (_LAYOUT, *self.requirements, *self.without, python, platform.system(), platform.machine())
        facts = (*facts, self.lock.read_text(encoding="utf-8") if self.version is None else "", *self.extra.facts())
        return f"{self.name}-python{python}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:10]}"

    @property
    def lock(self) -> Path:
        """All packages of the environment with their versions and hashes, for every system that has them."""
        return Path(__file__).with_name("locks") / f"{self.name}.txt"


def tensorflow_package(system: str = platform.system(), machine: str = platform.machine()) -> str:
    """The distribution that carries TensorFlow on this platform.

    tensorflow-cpu is the same code as tensorflow without the GPU kernels, a third of the download; it exists
    for x86-64 only.
    """
    return "tensorflow-cpu" if system == "Linux" and machine == "x86_64" else "tensorflow"


def original_specification() -> Specification:
    """TensorFlow 2.15.1, the last one with Estimator: original programs see its v1 API."""
    return Specification(
        name="original",
        variable="TF_MIGRATE_ORIGINAL_PYTHON",
        requirements=(f"{tensorflow_package()}==2.15.1",),
        without=(),
        trial="import tensorflow.compat.v1 as tf; tf.estimator.Estimator",
    )


def migrated_specification() -> Specification:
    """TensorFlow 2.21 with Keras 2 (tf-keras), where migrated programs run."""
    package = tensorflow_package()
    return Specification(
        name="migrated",
        variable="TF_MIGRATE_MIGRATED_PYTHON",
        # TensorFlow asks for TensorBoard no more, which programs' callbacks of that name need.
        requirements=(f"{package}==2.21.*", "tf-keras==2.21.*", "tensorboard>=2.20"),
        # tf-keras asks for the distribution called tensorflow, which would be written over tensorflow-cpu's
        # files.
        without=() if package == "tensorflow" else ("tensorflow",),
        trial="import tensorflow as tf; tf.keras.layers.Dense",
        environment=(("TF_USE_LEGACY_KERAS", "1"),),
    )


def first_specification() -> Specification:
    """TensorFlow 1.15.5, the last one with tf.contrib: programs run on it as they always did."""
    return Specification(
        name="tensorflow1",
        variable="TF_MIGRATE_TENSORFLOW1_PYTHON",
        requirements=("tensorflow==1.15.5", "protobuf<3.21", "numpy<1.19"),
        without=(),
        trial="import tensorflow as tf; tf.contrib.layers",
        version=_FIRST_PYTHON,
    )


def first_python(say: Say | None = None, extra: Extra | None = None) -> Path | None:
    """The interpreter with TensorFlow 1.15.5, made if need be, with `extra` packages; None where no Python 3.7 is found
    to make it with.
    """
    specification = first_specification()
    found = first_made()
    if found is None:
        base = _python37()
        found = None if base is None else python_of(replace(specification, python=base), say)
    return python_of(replace(specification, extra=extra), say) if found is not None and extra else found


def first_made() -> Path | None:
    """The interpreter with TensorFlow 1.15.5 that its variable names or that was made before; None without one."""
    specification = first_specification()
    if os.environ.get(specification.variable):
        return python_of(specification)
    python = cache_folder() / specification.key / "bin" / "python"
    return python if python.exists() else None


def _python37() -> str | None:
    """A Python 3.7 that starts: on PATH, of pyenv (whose names on PATH may start nothing), or known to uv."""
    name = f"python{_FIRST_PYTHON[0]}.{_FIRST_PYTHON[1]}"
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [shutil.which(name), *sorted(root.glob(f"{name.removeprefix('python')}.*/bin/python"), reverse=True)]
    with contextlib.suppress(EnvironmentNotReady):
        told = subprocess.run([uv_program(), "python", "find", "--no-python-downloads", name], capture_output=True)
        candidates.append(told.stdout.decode("utf-8", "replace").strip() if told.returncode == 0 else None)
    for one in filter(None, candidates):
        with contextlib.suppress(OSError):
            asked = [str(one), "-c", f"import sys; sys.exit(sys.version_info[:2] != {_FIRST_PYTHON})"]
            if subprocess.run(asked, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0:
                return str(one)
    return None


def original_python(say: Say | None = None, extra: Extra | None = None) -> Path:
    """The interpreter for original programs, made if need be (a download of about 400 MB), with `extra` packages.

    `say` gets a line when something slow begins. EnvironmentNotReady if there is none and none can be made.
    """
    return python_of(replace(original_specification(), extra=extra or Extra()), say)


def migrated_python(say: Say | None = None, extra: Extra | None = None) -> Path:
    """The interpreter for migrated programs, made if need be. See `original_python`."""
    return python_of(replace(migrated_specification(), extra=extra or Extra()), say)


def python_of(specification: Specification, say: Say | None = None) -> Path:
    """The interpreter of an environment: the one its variable names, the cached one, or a new one."""
    override = os.environ.get(specification.variable)
    if override:
        if specification.extra:
            raise EnvironmentNotReady(
                f"{specification.variable} names an interpreter, to which nothing is added.\n"
                "Install what the programs need there, or unset the variable."
            )
        return _checked_override(Path(override).expanduser(), specification.variable)
    root = cache_folder()
    folder = root / specification.key
    python = folder / "bin" / "python"
    # Environments appear by a rename, so one that is there is complete; only its base interpreter may be
    # gone since.
    if python.exists():
        return python
    try:
        root.mkdir(parents=True, exist_ok=True)
        with _locked(root / f"{specification.key}.lock", say):
            if not python.exists():
                _make(specification, folder, say or (lambda _: None))
    except OSError as error:
        raise EnvironmentNotReady(
            f"The {specification.name} environment cannot be made in {root}: {error.strerror or error}.\n"
            "Free some space or set XDG_CACHE_HOME to a folder that can be written, "
            f"or name a ready interpreter in {specification.variable}."
        ) from None
    return python


def cache_folder() -> Path:
    """Where all environments are, in the tool's cache."""
    return folders.cache_folder() / "environments"


def python_version() -> tuple[int, int]:
    """Major and minor version of the interpreters to make."""
    own = sys.version_info[:2]
    return own if own in _SUPPORTED_PYTHONS else _SUPPORTED_PYTHONS[-1]


def uv_program() -> str:
    """The path of uv: the one installed with the tool, else one on PATH."""
    with contextlib.suppress(ImportError, FileNotFoundError):
        import uv

        return str(uv.find_uv_bin())
    found = shutil.which("uv")
    if found is None:
        raise EnvironmentNotReady(
            "uv is needed to make TensorFlow environments and is not installed.\n"
            f"Run: {sys.executable} -m pip install 'tf-migrate[verify]'"
        )
    return found


def _checked_override(python: Path, variable: str) -> Path:
    if not (python.is_file() and os.access(python, os.X_OK)):
        raise EnvironmentNotReady(
            f"{variable} is {python}, which is no program that can be run.\n"
            f"Set it to the python of an environment with TensorFlow, or unset it to have one made."
        )
    return python.absolute()


@contextlib.contextmanager
def _locked(path: Path, say: Say | None) -> Iterator[None]:
    from filelock import FileLock, Timeout

    # The system drops the lock with its holder, so a killed maker blocks nobody.
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        if say is not None:
            say(f"waiting for another tf-migrate that creates the same environment ({path})")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _make(specification: Specification, folder: Path, say: Say) -> None:
    if specification.extra:
        _add(specification, folder, say)
        return
    uv = uv_program()
    say(f"creating the {specification.name} environment, once: {folder}")
    say(f"  {', '.join(specification.requirements)}")
    for left in folder.parent.glob(f".{folder.name}.*"):
        shutil.rmtree(left, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        python = partial / "environment" / "bin" / "python"
        version = python_version()
        base = specification.python or (
            sys.executable if sys.version_info[:2] == version else ".".join(map(str, version))
        )
        _run(specification, [uv, "venv", "--relocatable", "--python", base, str(partial / "environment")])
        excluded = partial / "excluded.txt"
        excluded.write_text("".join(f"{name} ; python_version < '0'\n" for name in specification.without))
        install = [uv, "pip", "install", "--python", str(python)]
        try:
            if specification.version is not None:
                _run(specification, [*install, *specification.requirements])
            else:
                locked = ["--no-deps", "--require-hashes", "--requirements", str(specification.lock)]
                _run(specification, [*install, *locked])
        except EnvironmentNotReady as error:
            if specification.version is not None or "ash mismatch" in str(error):
                raise  # these are other files than those that the lock was made of: nothing of them is installed
            say(
                "  the locked versions cannot be installed here; installing the newest that can, which may give "
                "other numbers"
            )
            _run(specification, [*install, "--overrides", str(excluded), *specification.requirements])
        _compile(python)
        environment = {
            "CUDA_VISIBLE_DEVICES": "-1",
            "TF_CPP_MIN_LOG_LEVEL": "1",
            **dict(specification.environment),
        }
        _run(specification, [str(python), "-c", specification.trial], environment)
        # What is there now is what somebody else deleted the interpreter of.
        shutil.rmtree(folder, ignore_errors=True)
        (partial / "environment").rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _add(specification: Specification, folder: Path, say: Say) -> None:
    """Makes an environment of another that is there (its files are shared), and what is extra."""
    extra = specification.extra
    base = python_of(replace(specification, extra=Extra()), say).parent.parent
    uv = uv_program()
    asked = ", ".join([*extra.packages, *map(str, extra.files)])
    say(f"adding to the {specification.name} environment, once: {asked}")
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        made = partial / "environment"
        shutil.copytree(base, made, symlinks=True, copy_function=os.link)
        python = made / "bin" / "python"
        frozen = _run(specification, [uv, "pip", "freeze", "--python", str(python)])
        wanted = [line for file in extra.files for line in _requirements(file)] + list(extra.packages)
        replaced = {_package(line) for line in wanted} & set(_REPLACED)
        frozen = [line for line in frozen if _package(line) not in replaced]
        has = {_package(line) for line in frozen}
        (partial / "kept.txt").write_text("\n".join(frozen) + "\n")
        dropped = [name for name in (*_OTHER_TENSORFLOWS, *specification.without) if name not in has]
        (partial / "excluded.txt").write_text("".join(f"{name} ; python_version < '0'\n" for name in dropped))
        # A project's requirements are those for TensorFlow 1: what the environment has stays as it is.
        (partial / "wanted.txt").write_text("".join(f"{line}\n" for line in wanted if _package(line) not in has))
        install = [uv, "pip", "install", "--compile-bytecode", "--python", str(python)]
        install += ["--constraints", str(partial / "kept.txt"), "--overrides", str(partial / "excluded.txt")]
        _run(specification, [*install, "--requirements", str(partial / "wanted.txt")])
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _requirements(file: Path, within: tuple[Path, ...] = ()) -> Iterator[str]:
    """The lines of a file of requirements and of those that it includes, without comments."""
    file = file.resolve()
    if file in within:
        return
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EnvironmentNotReady(f"{file} cannot be read: {error}.") from None
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        included = re.fullmatch(r"(?:-r|--requirement)[\s=]*(.+)", line)
        if included:
            yield from _requirements(file.parent / included[1], (*within, file))
        elif line:
            yield line


def _package(requirement: str) -> str:
    """The name of the package that a requirement is for, as registries compare names; empty for an option."""
    found = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", requirement)
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


def _compile(python: Path) -> None:
    """Keeps the bytecode of all modules beside them, if TensorFlow has none.

    uv makes none. Python does so at the first import, but not where PYTHONDONTWRITEBYTECODE is set, as in many
    containers: there each import of TensorFlow takes twice the time.
    """
    packages = [path for path in python.parent.parent.glob("lib/python*/site-packages") if path.is_dir()]
    compiled = any(any(path.glob("tensorflow/python/framework/__pycache__/ops.*.pyc")) for path in packages)
    if compiled or not packages:
        return
    # A module that cannot be compiled is one that nobody can import: its import says so.
    subprocess.run(
        [str(python), "-m", "compileall", "-qq", "-j", "0", *map(str, packages)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )


def _run(specification: Specification, command: list[str], environment: dict[str, str] | None = None) -> list[str]:
    """Runs a command and returns the lines of its output. Raises EnvironmentNotReady."""
    # The tool's own settings would change what is installed or what the trial finds.
    foreign = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "TF_USE_LEGACY_KERAS")
    clean = {name: value for name, value in os.environ.items() if name not in foreign}
    done = subprocess.run(
        command,
        env=clean | (environment or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace").splitlines()
    said = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()[-_SHOWN_LINES:]
    shown = "\n".join(f"    {line}" for line in said)
    raise EnvironmentNotReady(
        f"The {specification.name} environment ({', '.join(specification.requirements)}) could not be made.\n"
        f"  {' '.join(command)}\n{shown}\n"
        "Check the network and the free disk space and try again, or make an environment with these packages "
        f"yourself and name its interpreter in {specification.variable}."
    )


def main() -> int:
    """Make both environments, print the paths of their interpreters; 0 if all went well."""
    try:
        for specification in (original_specification(), migrated_specification()):
            python = python_of(specification, lambda line: print(line, file=sys.stderr))
            if python.is_relative_to(cache_folder()):
                _compile(python)
            print(python, flush=True)
    except EnvironmentNotReady as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
