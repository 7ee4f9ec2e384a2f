"""Making the TensorFlow environments, with a stand-in for uv: neither network nor TensorFlow."""

import os
import re
import sys
import threading
from pathlib import Path

import pytest

from migrator.harness import environments
from migrator.harness.environments import EnvironmentNotReady, Extra, migrated_python, original_python

# Makes "environments" whose python is a shell script and notes its calls; those that contain $FAIL fail.
FAKE_UV = """#!/bin/sh
echo "$@" >> "$FAKE/calls"
case "$*" in *"${FAIL:-nothing at all}"*) echo "${REASON:-no route to the index}"; exit 2;; esac
for last; do :; done
case "$1" in
venv) sleep 0.2; mkdir -p "$last/bin"
      printf '#!/bin/sh\\necho "$@" >> "$FAKE/trials"\\n' > "$last/bin/python"
      chmod +x "$last/bin/python";;
pip) case "$*" in *--overrides*) cat "$6" > "$FAKE/excluded";; esac
     case "$*" in *--constraints*) cat "$last" > "$FAKE/wanted"; cat "${last%/*}/kept.txt" > "$FAKE/kept";; esac
     if [ "$2" = freeze ]; then printf 'tensorflow==2.21.0\nnumpy==2.4.6\nsetuptools==84.2.1\n'; fi;;
esac
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    uv = tmp_path / "uv"
    uv.write_text(FAKE_UV)
    uv.chmod(0o755)
    monkeypatch.setattr(environments, "uv_program", lambda: str(uv))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE", str(tmp_path))
    for name in ("TF_MIGRATE_ORIGINAL_PYTHON", "TF_MIGRATE_MIGRATED_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def calls(fake: Path) -> list[str]:
    return (fake / "calls").read_text().splitlines()


def test_an_environment_is_made_once(fake: Path) -> None:
    said: list[str] = []
    python = original_python(said.append)
    assert python.is_file() and os.access(python, os.X_OK)
    assert python.is_relative_to(fake / "cache" / "tf-migrate" / "environments")
    venv, install = calls(fake)
    assert f"--python {sys.executable}" in venv or "--python 3.11" in venv
    assert install.endswith(f"--no-deps --require-hashes --requirements {environments.original_specification().lock}")
    assert "estimator" in (fake / "trials").read_text()
    assert any("creating the original environment" in line for line in said)
    assert original_python(said.append) == python
    assert len(calls(fake)) == 2
    assert len(said) == 2


def test_original_and_migrated_are_different_environments(fake: Path) -> None:
    assert original_python() != migrated_python()
    assert calls(fake)[-1].endswith("locks/migrated.txt")


@pytest.mark.skipif(environments.tensorflow_package() == "tensorflow", reason="no tensorflow-cpu here")
def test_plain_tensorflow_is_kept_out_beside_tensorflow_cpu(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIL", "require-hashes")
    said: list[str] = []
    migrated_python(said.append)
    assert any("the locked versions cannot be installed here" in line for line in said)
    assert calls(fake)[-1].endswith("==2.21.* tf-keras==2.21.* tensorboard>=2.20")
    assert (fake / "excluded").read_text() == "tensorflow ; python_version < '0'\n"
    original_python()
    assert (fake / "excluded").read_text() == ""


def test_the_package_follows_the_platform() -> None:
    assert environments.tensorflow_package("Linux", "x86_64") == "tensorflow-cpu"
    assert environments.tensorflow_package("Linux", "aarch64") == "tensorflow"
    assert environments.tensorflow_package("Darwin", "arm64") == "tensorflow"


def test_a_failure_says_what_to_do_and_leaves_nothing(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIL", "pip install")
    with pytest.raises(EnvironmentNotReady) as failure:
        migrated_python()
    message = str(failure.value)
    for expected in (
        "migrated environment",
        "no route to the index",
        "try again",
        "TF_MIGRATE_MIGRATED_PYTHON",
    ):
        assert expected in message
    left = [path for path in environments.cache_folder().iterdir() if path.suffix != ".lock"]
    assert left == []
    monkeypatch.delenv("FAIL")
    assert migrated_python().is_file()


class TestTensorFlow1:
    """1.15.5, which needs a Python 3.7."""

    @pytest.fixture
    def python37(self, fake: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        (fake / "bin").mkdir()
        monkeypatch.setenv("PATH", f"{fake / 'bin'}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("PYENV_ROOT", str(fake / "pyenv"))
        monkeypatch.delenv("TF_MIGRATE_TENSORFLOW1_PYTHON", raising=False)
        return fake / "bin" / "python3.7"

    def stand_in(self, path: Path, status: int) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\nexit {status}\n")
        path.chmod(0o755)
        return path

    def test_it_is_made_of_a_python_that_starts(self, fake: Path, python37: Path) -> None:
        self.stand_in(python37, 127)  # a name of pyenv's that leads nowhere
        real = self.stand_in(fake / "pyenv/versions/3.7.16/bin/python", 0)
        assert environments.first_made() is None
        made = environments.first_python()
        assert made is not None and made.is_relative_to(environments.cache_folder())
        venv, install = calls(fake)[-2:]
        assert f"--python {real}" in venv and install.endswith("tensorflow==1.15.5 protobuf<3.21 numpy<1.19")
        assert environments.first_made() == environments.first_python() == made
        assert "tf.contrib" in (fake / "trials").read_text()

    def test_without_a_python_there_is_none(self, fake: Path, python37: Path) -> None:
        self.stand_in(python37, 1)
        assert environments.first_python() is None
        assert not any(call.startswith("venv") for call in calls(fake))

    def test_a_failure_is_told(self, python37: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stand_in(python37, 0)
        monkeypatch.setenv("FAIL", "pip install")
        with pytest.raises(EnvironmentNotReady, match=r"tensorflow1 environment \(tensorflow==1.15.5"):
            environments.first_python()

    def test_its_variable_names_another(self, python37: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        own = self.stand_in(python37.with_name("own"), 0)
        monkeypatch.setenv("TF_MIGRATE_TENSORFLOW1_PYTHON", str(own))
        assert environments.first_made() == environments.first_python() == own


def test_files_of_another_hash_are_not_installed(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIL", "require-hashes")
    monkeypatch.setenv("REASON", "error: Hash mismatch for `numpy`")
    with pytest.raises(EnvironmentNotReady, match="Hash mismatch"):
        original_python()
    assert not any("--overrides" in call for call in calls(fake))


@pytest.mark.parametrize("name", ["original", "migrated"])
def test_locks_are_whole(name: str) -> None:
    text = (Path(environments.__file__).parent / "locks" / f"{name}.txt").read_text()
    entries = text.replace("\\\n", "").splitlines()
    assert len(entries) > 30
    assert all("==" in entry and "--hash=sha256:" in entry for entry in entries)
    assert not re.search("https?://|index-url|find-links", text)
    names = {entry.partition("==")[0] for entry in entries}
    specification = getattr(environments, f"{name}_specification")()
    wanted = {re.split("[=<>~!]", one)[0] for one in specification.requirements}
    assert {"tensorflow", "tensorflow-cpu", "numpy", *wanted} <= names


def test_what_a_killed_maker_left_is_removed(fake: Path) -> None:
    key = environments.original_specification().key
    left = environments.cache_folder() / f".{key}.abc" / "environment"
    left.mkdir(parents=True)
    original_python()
    assert not left.parent.exists()


def test_an_environment_without_its_interpreter_is_made_again(fake: Path) -> None:
    python = original_python()
    python.unlink()
    python.symlink_to(fake / "removed")
    assert original_python() == python
    assert python.is_file() and not python.is_symlink()


def test_two_makers_make_it_once(fake: Path) -> None:
    found: list[Path] = []
    said: list[str] = []
    makers = [threading.Thread(target=lambda: found.append(original_python(said.append))) for _ in range(4)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert len(set(found)) == 1 and len(found) == 4
    assert len(calls(fake)) == 2
    assert sum("waiting for another" in line for line in said) == 3


def test_an_override_wins_and_is_checked(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_MIGRATE_ORIGINAL_PYTHON", sys.executable)
    assert original_python() == Path(sys.executable)
    assert not (fake / "calls").exists()
    for wrong in (fake, fake / "nowhere", Path(__file__)):
        monkeypatch.setenv("TF_MIGRATE_MIGRATED_PYTHON", str(wrong))
        with pytest.raises(EnvironmentNotReady, match="TF_MIGRATE_MIGRATED_PYTHON is"):
            migrated_python()


def test_a_cache_that_cannot_be_written_is_explained(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fake / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(fake / "file"))
    with pytest.raises(EnvironmentNotReady, match="XDG_CACHE_HOME"):
        original_python()


def test_a_relative_cache_home_is_ignored_as_its_standard_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert environments.cache_folder() == Path.home() / ".cache" / "tf-migrate" / "environments"


def test_without_uv_the_way_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "uv", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentNotReady, match="pip install"):
        environments.uv_program()


def test_pythons_that_tensorflow_does_not_know_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    for version, expected in (((3, 10), (3, 10)), ((3, 11), (3, 11)), ((3, 13), (3, 11))):
        monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
        assert environments.python_version() == expected
        keys.add(environments.original_specification().key)
    assert len(keys) == 2


def test_bytecode_is_made_once_for_environments_of_ours(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("TF_MIGRATE_MIGRATED_PYTHON", sys.executable)
    python = original_python()
    packages = python.parent.parent / "lib" / "python3.11" / "site-packages"
    bytecode = packages / "tensorflow" / "python" / "framework" / "__pycache__" / "ops.cpython-311.pyc"
    packages.mkdir(parents=True)
    (fake / "trials").unlink()
    assert environments.main() == 0
    assert (fake / "trials").read_text() == f"-m compileall -qq -j 0 {packages}\n"
    bytecode.parent.mkdir(parents=True)
    bytecode.touch()
    assert environments.main() == 0
    assert len((fake / "trials").read_text().splitlines()) == 1


def test_main_prints_both_or_the_reason(
    fake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert environments.main() == 0
    printed = capsys.readouterr().out.splitlines()
    assert [Path(line).is_file() for line in printed] == [True, True]
    monkeypatch.setenv("TF_MIGRATE_ORIGINAL_PYTHON", str(fake / "nowhere"))
    assert environments.main() == 1
    assert capsys.readouterr().err.startswith("error: TF_MIGRATE_ORIGINAL_PYTHON is")


def test_what_is_added_may_replace_setuptools_and_nothing_else(fake: Path) -> None:
    """tensorflow_hub imports pkg_resources, which the setuptools of the environment has no more."""
    migrated_python(extra=Extra(packages=("numpy<2", "setuptools<80", "tensorflow-hub")))
    assert (fake / "wanted").read_text().splitlines() == ["setuptools<80", "tensorflow-hub"]
    assert (fake / "kept").read_text().splitlines() == ["tensorflow==2.21.0", "numpy==2.4.6"]
    migrated_python(extra=Extra(packages=("tabulate",)))
    assert (fake / "kept").read_text().splitlines()[-1] == "setuptools==84.2.1"
