"""Everything that the modules of this package say about themselves: a new one is found by being there."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

import migrator.rules
from migrator.program.modern import Check
from migrator.rules.rule import Rule
from migrator.rules.site import CallRule


def all_rules() -> list[Rule]:
    """Every rule (`RULES` of the modules), sorted by code."""
    return sorted((rule for module in _names() for rule in _of(module, "RULES", ())), key=lambda rule: rule.code)


def call_rules() -> dict[str, CallRule]:
    """The rewriting of every TensorFlow 1 call that has one (`CALLS` of the modules but the rewriter's own)."""
    return {
        name: rule for module in _names() if module != "rewriter" for name, rule in _of(module, "CALLS", {}).items()
    }


def rules_beside(symbol: str) -> list[Rule]:
    """The rules of the module that rewrites the calls of a symbol."""
    return [rule for module in _names() if symbol in _of(module, "CALLS", {}) for rule in _of(module, "RULES", ())]


def phases() -> dict[str, tuple[str, int]]:
    """Where layers of TensorFlow 1 say whether they train: parameter and position (`PHASES` of the modules)."""
    return {
        name: phase for module in _names() if module != "rewriter" for name, phase in _of(module, "PHASES", {}).items()
    }


def checks() -> list[Check]:
    """Every look at a TensorFlow 2 file (`CHECKS` of the modules)."""
    return [check for module in _names() for check in _of(module, "CHECKS", ())]


@cache
def _names() -> tuple[str, ...]:
    found = (info.name for info in pkgutil.iter_modules(migrator.rules.__path__) if info.name != "catalogue")
    return tuple(sorted(found))


def _of(module: str, attribute: str, default):  # type: ignore[no-untyped-def]
    return getattr(import_module(f"migrator.rules.{module}"), attribute, default)
