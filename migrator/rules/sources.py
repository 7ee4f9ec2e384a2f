"""Rules about files that cannot be read or written. The code is in source/."""

from migrator.findings import Severity
from migrator.rules.rule import Rule

RULES = (
    Rule(
        "TFM901",
        "the file cannot be decoded",
        Severity.ERROR,
        "The bytes are not text in the encoding that the file declares (UTF-8 when it declares none). Add a PEP 263"
        " line such as `# -*- coding: latin-1 -*-`, or convert the file.",
    ),
    Rule(
        "TFM902",
        "the file cannot be parsed",
        Severity.ERROR,
        "The file is not Python 3, and is left as it is. `tf-migrate --python2 FILE` converts Python 2 first (TFM940),"
        " and looks at what Python 2 computed otherwise, as `/` of whole numbers.",
    ),
    Rule(
        "TFM903",
        "the file cannot be written",
        Severity.ERROR,
        "The new text could not be put in place; the file is as it was. Check permissions and free space of its"
        " folder.",
    ),
    Rule(
        "TFM904",
        "the migrated text did not parse",
        Severity.ERROR,
        "This is a mistake of tf-migrate, not of yours: what it wrote is not Python. The file is left as it was. Please"
        " report it with the file.",
    ),
    Rule(
        "TFM905",
        "an internal error of tf-migrate",
        Severity.MANUAL,
        """
This is a mistake of tf-migrate, not of yours. The program in which it happened is left as it was; all others are
carried over as if it were not there. Please report it, with the file and what the same command prints under
`TF_MIGRATE_TRACEBACK=1`. Until it is mended, another `--style` or `--strategy` may work.
""",
    ),
    Rule(
        "TFM930",
        "a notebook that selects TensorFlow 1",
        Severity.REVIEW,
        """
`%tensorflow_version 1.x`, or an installation of TensorFlow 1 by pip, stands in a notebook whose code runs on
TensorFlow 2 from now on. Such lines are kept as they are. Remove the first, and install `tensorflow` and `tf_keras`
instead of the second.
""",
    ),
    Rule(
        "TFM910",
        "invalid project settings",
        Severity.ERROR,
        """
`[tool.tf-migrate]` of pyproject.toml, or `[tf-migrate]` of setup.cfg, holds an unknown key or a value of the wrong
type. Nothing was done: a skipped setting would go unnoticed. The message names the file, the key, and the keys that are
known there.
""",
    ),
    Rule(
        "TFM911",
        "a file of the program was not passed",
        Severity.MANUAL,
        """
A program changes as a whole or not at all. Some of its files were named; others were not, or the settings exclude
them. Those were only read, and would have to change too: name them as well, or name the folder.
""",
    ),
    Rule(
        "TFM912",
        "the file has uncommitted changes",
        Severity.ERROR,
        """
What would be overwritten is neither committed nor staged, so nothing could bring it back. The file and the other
files of its program stay as they are. Stage or commit it (`git add FILE`), or give `--force`; `--diff` and `--check`
work all the same. Outside of a git repository, files are overwritten.
""",
    ),
    Rule(
        "TFM913",
        "an unused ignore comment",
        Severity.REVIEW,
        """
`# tf-migrate: ignore[TFM203]` accepts findings of these codes on its statement, or on the one below where it stands
on a line of its own. This comment names no code, or a code that is not found there any more. Remove it, or it will
hide a later finding.
""",
    ),
    Rule(
        "TFM914",
        "the baseline has findings that are gone",
        Severity.REVIEW,
        """
Findings that the baseline accepts are gone from the files that were looked at. Write the baseline anew with
`--write-baseline`, so that they cannot come back unnoticed.
""",
    ),
    Rule(
        "TFM915",
        "a file that this one imports would be migrated",
        Severity.REVIEW,
        "The named file needs no change of its own. A file that it imports does, and was not named.",
    ),
    Rule(
        "TFM916",
        "an unverified program",
        Severity.MANUAL,
        """
`tf-migrate --verify` trains every program before and after, as `tf-migrate verify` does, and writes only what is
EQUIVALENT. This program was not: the finding has the verdict. Its own report, whose folder is named at the end, says
what was found. Programs that need arguments, a cluster or packages get them from `[tool.tf-migrate.verify]` in
pyproject.toml. A file that no verified script imports cannot be proven: name a script that imports it.
""",
    ),
)
