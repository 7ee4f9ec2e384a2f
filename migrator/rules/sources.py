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
        "The file is not Python 3. Python 2 code can be converted first: `2to3 -w FILE` (Python 3.12 and older) or"
        " `python -m modernize -w FILE`. The file is left as it is.",
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
        "This is a mistake of tf-migrate, not of yours. The program that it was met in is left as it was; all others"
        " are carried over as if it were not there. Please report it, with the file and what the same command prints"
        " under `TF_MIGRATE_TRACEBACK=1`. Another `--style` or `--strategy` may do until it is mended.",
    ),
    Rule(
        "TFM930",
        "a notebook asks its machine for TensorFlow 1",
        Severity.REVIEW,
        "`%tensorflow_version 1.x`, or an installation of TensorFlow 1 by pip, stands in a notebook whose code runs on"
        " TensorFlow 2 from now on. Such lines are kept as they are: take the first out, and install `tensorflow` and"
        " `tf_keras` in the place of the second.",
    ),
    Rule(
        "TFM910",
        "the settings of the project cannot be understood",
        Severity.ERROR,
        "What stands in `[tool.tf-migrate]` of pyproject.toml, or in `[tf-migrate]` of setup.cfg, holds a key that is"
        " not known, or a value of another type than it has to be. Nothing was done: a setting that is passed over"
        " would be obeyed by nobody. The message names the file, the key and the keys that are known there.",
    ),
    Rule(
        "TFM911",
        "a file of the program was not named",
        Severity.MANUAL,
        "A program changes as a whole or not at all. Of its files some were named and others were not, or are excluded"
        " by the settings: these were read, and would have to change with it. Name them too, or name the folder.",
    ),
    Rule(
        "TFM912",
        "the file has changes that git does not have",
        Severity.ERROR,
        "What would be overwritten is neither committed nor staged, so nothing could bring it back. The file and the"
        " other files of its program stay as they are. Stage or commit it (`git add FILE`), or give `--force`; `--diff`"
        " and `--check` work as ever. Outside of git trees files are overwritten.",
    ),
    Rule(
        "TFM913",
        "a comment accepts what is not there",
        Severity.REVIEW,
        "`# tf-migrate: ignore[TFM203]` accepts findings of these codes on its statement, or on the one below where it"
        " stands on a line of its own. This one names no code, or one that is not found there any more: take it out, or"
        " it would hide what comes later.",
    ),
    Rule(
        "TFM914",
        "the baseline has findings that are gone",
        Severity.REVIEW,
        "What the baseline accepts is not found any more in the files that were looked at. Write it anew with"
        " `--write-baseline`, so that it cannot come back unseen.",
    ),
    Rule(
        "TFM915",
        "a file that this one imports would be migrated",
        Severity.REVIEW,
        "The named file needs no change of its own, but one that it imports does, and that was not named.",
    ),
    Rule(
        "TFM916",
        "a program that was not proven",
        Severity.MANUAL,
        """
`tf-migrate --verify` trains every program before and after, as `tf-migrate verify` does, and writes only what is
EQUIVALENT. This program was not: the finding has the verdict. Its own report, whose folder is named at the end, says
what was found. Programs that want arguments, a cluster or packages get them from `[tool.tf-migrate.verify]` in
pyproject.toml. A file that no verified script imports is proven by nobody: name a script that does.
""",
    ),
)
