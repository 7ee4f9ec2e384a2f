"""Which tests go together when several processes share the work (`pytest -n 2 --dist loadgroup`), and how properties
are tried: with the same examples in every run, however slow the machine is.
"""

from __future__ import annotations

import hypothesis
import pytest

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repeatable")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests stay together, for they share what they start; the large files go first.

    A verification of a fixture takes as long as a file and shares nothing: each goes where there is room, last.
    """
    for item in items:
        if not item.name.startswith("test_fixture_is_equivalent"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
