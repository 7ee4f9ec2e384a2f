"""Choosing names that the file does not use yet."""

from __future__ import annotations

from migrator.names.free import free

__all__ = ["free"]
