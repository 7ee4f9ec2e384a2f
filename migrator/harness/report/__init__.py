"""The report of a verification: one JSON document, and what is rendered from it."""

from migrator.harness.report.document import Report
from migrator.harness.report.writing import exit_code, load, write

__all__ = ["Report", "exit_code", "load", "write"]
