"""The tutorials do what they show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tutorials import TUTORIALS, Command, File, follow, same, steps


def differences(path: Path, folder: Path, tensorflow: bool) -> str:
    """What the tutorial shows and its commands do not print."""
    printed = follow(path.read_text(encoding="utf-8"), folder, tensorflow)
    assert printed
    return "\n".join(
        f"$ {command.command}\nshown:\n{command.output}printed:\n{output}"
        for command, output in printed
        if not same(command.output, output)
    )


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_commands_print_what_is_shown(path: Path, tmp_path: Path) -> None:
    assert differences(path, tmp_path, tensorflow=False) == ""


RUNS_TENSORFLOW = tuple(path for path in TUTORIALS if "<!-- tensorflow -->" in path.read_text(encoding="utf-8"))


@pytest.mark.tensorflow
@pytest.mark.parametrize("path", RUNS_TENSORFLOW, ids=lambda path: path.stem)
def test_commands_with_tensorflow_print_what_is_shown(path: Path, tmp_path: Path) -> None:
    # What is made is told when it is made, which is before readers come so far.
    subprocess.run([sys.executable, "-m", "migrator", "environments"], check=True, capture_output=True, timeout=600)
    assert differences(path, tmp_path, tensorflow=True) == ""


def test_tutorials_are_read(tmp_path: Path) -> None:
    text = """
<!-- file: a/b.txt -->
```text
hello
```

```console
$ cat \\
    a/b.txt
hello
$ true
```

<!-- tensorflow -->
```console
$ echo 1 2 3
1 ... 3
```

<!-- shown -->
```console
$ false
```
"""
    saved, first, second, third = steps(text)
    assert saved == File("a/b.txt", "hello\n")
    assert isinstance(first, Command) and isinstance(second, Command) and isinstance(third, Command)
    assert (first.output, second.output, third.output) == ("hello\n", "", "1 ... 3\n")
    assert [one.tensorflow for one in (first, second, third)] == [False, False, True]
    assert [output for _, output in follow(text, tmp_path, tensorflow=True)] == ["hello\n", "", "1 2 3\n"]
    assert same("1 ... 3\n", "1 2 3\n") and not same("1 ... 3\n", "1 2 4\n")
    (tmp_path / "other").mkdir()
    with pytest.raises(AssertionError, match="exit code 1"):
        follow("```console\n$ false\n```\n", tmp_path / "other", tensorflow=False)
