"""Lets ``python -m migrator`` stand for ``tf-migrate``."""

from migrator.cli import main

main()
