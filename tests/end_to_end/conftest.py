"""What the proofs share: TensorFlow is imported once for both kinds of program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from migrator.harness import session
from migrator.harness.cluster import ForkServer
from migrator.harness.environments import original_python


@pytest.fixture(scope="package")
def session_for() -> Iterator[Callable[[int], session.Session]]:
    """Gives the interpreters of both programs, the migrated one on that generation of Keras."""
    with ExitStack() as stack:
        opened: dict[int, session.Session] = {}

        def session_for(keras: int) -> session.Session:
            if keras not in opened:
                opened[keras] = stack.enter_context(session.open_session(keras=keras))
            return opened[keras]

        yield session_for


@pytest.fixture(scope="package")
def servers(session_for: Callable[[int], session.Session]) -> tuple[ForkServer, ForkServer]:
    """The interpreters of the original and of the migrated program."""
    opened = session_for(2)
    return opened.original, opened.migrated


@pytest.fixture(scope="package")
def first_keras2() -> Iterator[ForkServer]:
    """TensorFlow 2.15.1, for programs that are migrated already."""
    with ForkServer(original_python(), "migrated") as server:
        yield server
