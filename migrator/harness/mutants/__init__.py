"""Known-bad migrations: each takes the text of a good migrated script and makes one mistake in it."""

from migrator.harness.mutants.catalogue import MUTANTS, Mutant, UnchangedError, applicable, apply

__all__ = ["MUTANTS", "Mutant", "UnchangedError", "applicable", "apply"]
