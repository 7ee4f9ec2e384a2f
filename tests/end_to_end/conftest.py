"""What the proofs share: TensorFlow is imported once for both kinds of program."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migrator.harness.cluster import ForkServer
from migrator.harness.environments import migrated_python, original_python


@pytest.fixture(scope="package")
def servers() -> Iterator[tuple[ForkServer, ForkServer]]:
    """The interpreters of the original and of the migrated program."""
    with (
        ForkServer(original_python(), "original") as original,
        ForkServer(migrated_python(), "migrated") as migrated,
    ):
        yield original, migrated


@pytest.fixture(scope="package")
def first_keras2() -> Iterator[ForkServer]:
    """TensorFlow 2.15.1, for programs that are migrated already."""
    with ForkServer(original_python(), "migrated") as server:
        yield server
