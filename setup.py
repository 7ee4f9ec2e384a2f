"""Where the packages are; all else is in setup.cfg.

The folder migrator/ is installed within tf_migrate: beside it, it would lie where other projects' `migrator` does.
"""

from setuptools import find_packages, setup

setup(
    packages=["tf_migrate", *(f"tf_migrate.{name}" for name in find_packages(include=["migrator", "migrator.*"]))],
    package_dir={"tf_migrate.migrator": "migrator"},
)
