"""Where tf-migrate keeps what it may make again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    r"""The tool's own folder among the user's caches; it may not be there yet.

    $XDG_CACHE_HOME/tf-migrate where that is set, on every system; else where the system wants it: ~/.cache/tf-migrate
    on Linux, ~/Library/Caches/tf-migrate on macOS, %LOCALAPPDATA%\tf-migrate\Cache on Windows.
    """
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if configured.is_absolute():
        return configured / "tf-migrate"
    from platformdirs import user_cache_path

    return user_cache_path("tf-migrate", appauthor=False)
