"""What a project says about how its programs are verified: `[tool.tf-migrate.verify]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SECTION = "verify"


@dataclass(frozen=True)
class ProgramSettings:
    """One program, `[tool.tf-migrate.verify.programs.NAME]`. Paths are relative to the folder of the settings.

    `script` or `module` is what is run, as `python script` or `python -m module`, in `folder` (that of the settings).
    `original` is a file, or with `module` a folder, of the working tree that has the original (else it is taken from
    git). `args` may hold `{ps_hosts}` and the like, `cluster` is as in "chief=1,worker=2,ps=2". `requirements` are
    files for pip, `packages` names for it; both go into the environments of both programs. `name-map` is a JSON file of
    variable names. `original-tensorflow` is as the option of that name. `skip` says why a program is not verified. A
    zero or empty value leaves the choice to what holds for all programs.
    """

    script: str = ""
    module: str = ""
    folder: str = ""
    original: str = ""
    args: tuple[str, ...] = ()
    cluster: str = ""
    steps: int = 0
    stdin: str = ""
    requirements: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    keras: Literal["2", "3"] = "2"
    original_tensorflow: Literal["auto", "1", "1.15", "2.15", "2.21"] = "auto"
    devices: int = 1
    tpu_cores: int = 1
    timeout: float = 0.0
    stall_timeout: float = 0.0
    name_map: str = ""
    full: bool = False
    allow_writes: bool = False
    skip: str = ""

    def __post_init__(self) -> None:
        if self.script and self.module:
            raise ValueError("`script` and `module` exclude each other")


@dataclass(frozen=True)
class VerifySettings:
    """How the programs of a project are verified.

    `base` is the revision that has the originals. `discover`: scripts that changed since then and have an Estimator
    are verified too, besides those listed under `programs`. The others hold for every program that does not say
    otherwise; times are in seconds.
    """

    base: str = "HEAD"
    discover: bool = True
    steps: int = 0
    timeout: float = 600.0
    stall_timeout: float = 60.0
    requirements: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    programs: Mapping[str, ProgramSettings] = field(default_factory=dict)
