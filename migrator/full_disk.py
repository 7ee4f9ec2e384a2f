"""A disk without room, or a quota that is used up, called by its name."""

from __future__ import annotations

import errno


def full_disk(error: BaseException) -> str | None:
    """Returns "the disk is full (No space left on device)", or of a quota, if that is what an error says; else None."""
    if not isinstance(error, OSError):
        return None
    if error.errno == errno.ENOSPC:
        return f"the disk is full ({error.strerror})"
    if error.errno == errno.EDQUOT:
        return f"the disk quota is used up ({error.strerror})"
    return None
