"""Known-bad versions of a migrated program: each makes one mistake, which some level has to find."""

from migrator.harness.mutants.catalogue import BY_ID, MUTANTS, SENTINELS, Family, Mutant, select

__all__ = ["BY_ID", "MUTANTS", "SENTINELS", "Family", "Mutant", "select"]
