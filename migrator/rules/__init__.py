"""The rules: one module per TensorFlow 1 concept, each with its codes, its pages and its examples."""

from __future__ import annotations

from migrator.rules.rule import Example, Rule


def all_rules() -> list[Rule]:
    """Every rule, sorted by code."""
    from migrator.rules import (
        initializers,
        inputs,
        labels,
        layers,
        losses,
        metrics,
        optimizers,
        partitioners,
        programs,
        regularizers,
        rewriter,
        sources,
    )

    modules = (
        programs,
        layers,
        rewriter,
        initializers,
        regularizers,
        losses,
        optimizers,
        metrics,
        inputs,
        labels,
        partitioners,
        sources,
    )
    return sorted((rule for module in modules for rule in module.RULES), key=lambda rule: rule.code)


__all__ = ["Example", "Rule", "all_rules"]
