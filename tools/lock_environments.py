"""Writes migrator/harness/locks: every package of the two TensorFlow environments, with versions and hashes.

    python tools/lock_environments.py              # what the locks have stays, what is missing is added
    python tools/lock_environments.py --upgrade    # the newest of everything: run `make test-all` before committing it

The files hold for Python 3.10 and 3.11 on all systems that TensorFlow has packages for. They name no registry.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

from migrator.harness.environments import migrated_specification, original_specification, uv_program

# tensorflow-cpu is there for this system only; see `tensorflow_package`.
_CPU = "sys_platform == 'linux' and platform_machine == 'x86_64'"
_OTHERS = "sys_platform != 'linux' or platform_machine != 'x86_64'"


def main() -> None:
    """Locks both environments anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that are allowed")
    upgrade = parser.parse_args().upgrade
    for specification in (original_specification(), migrated_specification()):
        with tempfile.TemporaryDirectory() as name:
            wanted, overrides = Path(name, "wanted.in"), Path(name, "overrides.txt")
            lines = []
            for one in specification.requirements:
                package, _, version = one.partition("==")
                if package.startswith("tensorflow"):
                    lines += [f"tensorflow-cpu=={version} ; {_CPU}", f"tensorflow=={version} ; {_OTHERS}"]
                else:
                    lines.append(one)
            wanted.write_text("\n".join(lines) + "\n")
            overrides.write_text(f"tensorflow ; {_OTHERS}\n")
            command = [uv_program(), "pip", "compile", "--quiet", "--universal", "--python-version", "3.10"]
            command += ["--generate-hashes", "--no-header", "--no-annotate", "--overrides", str(overrides)]
            command += [*(["--upgrade"] if upgrade else []), str(wanted), "--output-file", str(specification.lock)]
            subprocess.run(command, check=True)
            print(specification.lock)


if __name__ == "__main__":
    main()
