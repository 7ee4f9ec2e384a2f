"""Which tests go together when several processes share the work (`pytest -n 2 --dist loadgroup`)."""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file's tests stay together, for they share what they start; the large files go first.

    A verification of a fixture takes as long as a file and shares nothing: each goes where there is room, last.
    """
    for item in items:
        if not item.name.startswith("test_fixture_is_equivalent"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
