"""Python 2 files as Python 3 ones: a maintained fixer for the syntax, and what it leaves out: numbers that change."""
