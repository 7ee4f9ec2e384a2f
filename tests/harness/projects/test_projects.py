"""`tf-migrate verify PROJECT` with verifications that run nothing: which programs, which texts, and the page of all."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result

from migrator.cli.program import program
from migrator.harness import session
from migrator.harness.report.json_report import complaint
from tests.source.notebook_files import notebook

from .conftest import ESTIMATOR, KERAS, Repository, Verifications

HELPER = "def model_fn(features, labels, mode): ...\ndef input_fn(): ...\n"
Run = Callable[..., Result]


@pytest.fixture
def run(verifications: Verifications, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(repository.root)

    def call(*arguments: object, stdin: bytes | None = None) -> Result:
        words = ["verify", *map(str, arguments)]
        return CliRunner().invoke(program, words, input=stdin, prog_name="tf-migrate")

    return call


def two_programs(repository: Repository) -> None:
    """Two that were migrated, one that was not, one without an Estimator, and a test."""
    repository.commit(
        {
            "train/mnist.py": ESTIMATOR,
            "train/helper.py": HELPER,
            "train/plot.py": "print('no training')\n",
            "train/test_mnist.py": ESTIMATOR,
            "other/iris.py": ESTIMATOR,
            "other/helper.py": HELPER,
            "kept/left.py": ESTIMATOR,
            "kept/helper.py": HELPER,
        }
    )
    changed = dict.fromkeys(("train/plot.py", "train/test_mnist.py", "other/helper.py"), "# new\n")
    repository.write({"train/mnist.py": KERAS, **changed})


class TestWhichPrograms:
    def test_scripts_that_changed_or_import_what_changed(
        self, run: Run, repository: Repository, verifications: Verifications
    ) -> None:
        two_programs(repository)
        result = run()
        assert result.exit_code == 0, result.output
        assert [case.migrated.relative_to(repository.root).as_posix() for case in verifications.cases] == [
            "other/iris.py",
            "train/mnist.py",
        ]
        # The originals' texts are those of git, the migrated ones those of the working tree.
        assert verifications.texts == [(ESTIMATOR, ESTIMATOR), (ESTIMATOR, KERAS)]
        assert len(verifications.sessions) == 1, "one session for all"
        assert "2 EQUIVALENT, against HEAD." in result.output

    def test_all_run_where_the_command_line_says(
        self, run: Run, repository: Repository, verifications: Verifications, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        two_programs(repository)
        assert run().exit_code == 0
        monkeypatch.setitem(sys.modules, "ray", None)
        without = run("--runner", "ray")
        assert "pip install 'tf-migrate[ray]'" in without.output
        ray = ModuleType("ray")
        ray.__spec__ = ModuleSpec("ray", None)
        monkeypatch.setitem(sys.modules, "ray", ray)
        assert run("--runner", "ray").exit_code == 0
        assert [one["runner"] for one in verifications.sessions] == ["local", "ray"]

    def test_the_files_around_an_original_are_those_of_git_too_and_data_are_linked(
        self, run: Run, repository: Repository, verifications: Verifications, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        two_programs(repository)
        repository.write({"data/rows.csv": "1,2\n", "train/.gitignore": "", "other/new.py": "x = 1\n"})
        repository.git("add", "other/new.py")
        before = repository.git("status", "--short")
        seen: list[object] = []
        own = verifications.verify

        def verify(case, progress, *, session=None):  # type: ignore[no-untyped-def]
            folder = case.folders[0]
            seen.append((folder / "other/helper.py").read_text())
            seen.append((folder / "data/rows.csv").read_text())
            seen.append((folder / "other/new.py").exists())
            seen.append(folder.is_relative_to(repository.root))
            return own(case, progress, session=session)

        monkeypatch.setattr(session, "verify", verify)
        run("other")
        assert seen == [HELPER, "1,2\n", False, False]
        assert repository.git("status", "--short") == before, "nothing was checked out"

    def test_notebooks_run_as_scripts_where_they_are(
        self, run: Run, repository: Repository, verifications: Verifications, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cells = ["%matplotlib inline", *ESTIMATOR.splitlines(keepends=True)]
        repository.commit({"books/train.ipynb": notebook(cells), "books/helper.py": HELPER, "data.txt": ""})
        repository.commit({"books/plot.ipynb": notebook(["print(1)"])})
        assert run().exit_code == 0
        assert verifications.cases == [], "nothing changed"
        document = notebook(["%matplotlib inline", *KERAS.splitlines(keepends=True)])
        repository.write({"books/train.ipynb": document, "books/plot.ipynb": notebook(["print(2)"])})
        own = verifications.verify

        def verify(case, progress, *, session=None):  # type: ignore[no-untyped-def]
            assert (case.migrated.parent / "helper.py").read_text() == HELPER, "what is beside it can be imported"
            assert case.folders[1] == repository.root / "books"
            return _at(own(case, progress, session=session), case.original)

        monkeypatch.setattr(session, "verify", verify)
        result = run("--report", repository.root.parent / "out")
        assert result.exit_code == 0, result.output
        (both,) = verifications.texts
        assert [text.replace("pass  # %matplotlib inline\n", "") for text in both] == [ESTIMATOR, KERAS]
        assert "1 EQUIVALENT" in result.output
        text = (repository.root.parent / "out/programs/books~train.ipynb/report.json").read_text()
        assert '"path": "HEAD:books/train.ipynb"' in text
        assert "tf-migrate-notebook" not in text
        assert run("books/train.ipynb").exit_code == 0
        assert len(verifications.cases) == 2

    def test_a_notebook_that_cannot_be_read_is_its_own_failure(
        self, run: Run, repository: Repository, verifications: Verifications
    ) -> None:
        two_programs(repository)
        repository.write({"bad.ipynb": "{"})
        repository.write({"pyproject.toml": '[tool.tf-migrate.verify.programs.bad]\nscript = "bad.ipynb"\n'})
        repository.git("add", "bad.ipynb")
        repository.git("commit", "-qm", "x", "bad.ipynb")
        repository.write({"bad.ipynb": "["})
        result = run()
        assert result.exit_code == 4, result.output
        assert "HEAD:bad.ipynb: the notebook is not JSON" in " ".join(result.output.split())

    def test_a_path_selects(self, run: Run, repository: Repository, verifications: Verifications) -> None:
        two_programs(repository)
        run("train/mnist.py")
        run("other")
        assert [case.migrated.name for case in verifications.cases] == ["mnist.py", "iris.py"]

    @pytest.mark.parametrize(
        ("text", "verified"),
        [
            (
                "# tf-migrate: ignore[TFM102]\r\n" + ESTIMATOR.replace("\n", "  # x\r\n").replace(", ", ",\\\r\n "),
                False,
            ),
            (ESTIMATOR.replace("helper.input_fn", "helper.other_fn"), True),
        ],
        ids=["comments and layout", "a name"],
    )
    def test_a_change_is_one_of_code(
        self, run: Run, repository: Repository, verifications: Verifications, text: str, verified: bool
    ) -> None:
        two_programs(repository)
        repository.write({"kept/left.py": text})
        run("kept")
        assert bool(verifications.cases) == verified

    def test_a_program_that_is_as_it_was_is_skipped(
        self, run: Run, repository: Repository, verifications: Verifications
    ) -> None:
        two_programs(repository)
        result = run("kept/left.py")
        assert (result.exit_code, verifications.cases) == (0, [])
        assert "it is as it was at HEAD" in result.output

    def test_after_the_commit_the_base_is_named(
        self, run: Run, repository: Repository, verifications: Verifications
    ) -> None:
        two_programs(repository)
        repository.commit()
        nothing = run()
        assert (nothing.exit_code, verifications.cases) == (0, [])
        assert "name the revision before it with --base" in nothing.output
        result = run("--base", "HEAD~1")
        assert result.exit_code == 0, result.output
        assert len(verifications.cases) == 2
        assert verifications.cases[1].command == ("tf-migrate", "verify", "train/mnist.py", "--base", "HEAD~1")

    def test_packages_are_run_as_modules(self, run: Run, repository: Repository, verifications: Verifications) -> None:
        text = ESTIMATOR.replace("import helper", "from . import helper")
        repository.commit({"lib/pkg/train.py": text, "lib/pkg/helper.py": HELPER, "lib/pkg/__init__.py": ""})
        repository.write({"lib/pkg/helper.py": "# new\n"})
        run()
        (case,) = verifications.cases
        assert (case.module, case.folders[1]) == ("pkg.train", repository.root / "lib")

    def test_parts_hold_each_program_once_and_stay_when_one_is_added(
        self, run: Run, repository: Repository, verifications: Verifications
    ) -> None:
        names = [f"p{number}.py" for number in range(9)]
        repository.commit({**dict.fromkeys(names, ESTIMATOR), "helper.py": HELPER})
        repository.write({"helper.py": "# new\n"})
        parts = []
        for number in (1, 2, 3):
            verifications.cases.clear()
            assert run("--shard", f"{number}/3").exit_code == 0
            parts.append({case.migrated.name for case in verifications.cases})
        assert sorted(name for part in parts for name in part) == names
        repository.commit({"helper.py": HELPER, "added.py": ESTIMATOR})
        repository.write({"helper.py": "# new\n"})
        verifications.cases.clear()
        run("--shard", "1/3")
        assert {case.migrated.name for case in verifications.cases} - {"added.py"} == parts[0]

    @pytest.mark.parametrize("shard", ["0/3", "4/3", "3", "a/b", "1/0"])
    def test_parts_that_cannot_be(self, run: Run, shard: str) -> None:
        result = run("--shard", shard)
        assert result.exit_code == 2
        assert "is no part" in result.output

    def test_no_repository_and_no_revision(self, run: Run, repository: Repository, tmp_path: Path) -> None:
        two_programs(repository)
        unknown = run("--base", "v9")
        assert unknown.exit_code == 2
        assert "v9 is no revision" in unknown.output
        (tmp_path / "bare").mkdir()
        nowhere = run(tmp_path / "bare")
        assert nowhere.exit_code == 2
        assert "is in no git repository" in nowhere.output


SETTINGS = """\
[tool.tf-migrate.verify]
steps = 20
requirements = ["needs.txt"]

[tool.tf-migrate.verify.programs.small]
script = "train/mnist.py"
args = ["--rate", "0.1"]

[tool.tf-migrate.verify.programs.cluster]
script = "train/mnist.py"
cluster = "chief=1,worker=2,ps=2"
steps = 5
timeout = 30
packages = ["pandas"]

[tool.tf-migrate.verify.programs.by-module]
module = "other.iris"
stdin = "train/mnist.py"

[tool.tf-migrate.verify.programs.beside]
script = "kept/left.py"
original = "other/iris.py"

[tool.tf-migrate.verify.programs.long]
script = "other/iris.py"
skip = "takes a day"
"""


class TestSettings:
    def test_programs_of_the_settings(self, run: Run, repository: Repository, verifications: Verifications) -> None:
        two_programs(repository)
        repository.write({"pyproject.toml": SETTINGS, "needs.txt": "tabulate\n"})
        result = run()
        assert result.exit_code == 0, result.output
        cases = {Path(case.log_dir or "").parent.name: case for case in verifications.cases}
        assert sorted(cases) == ["beside", "by-module", "cluster", "small"], "mnist.py and iris.py are not found again"
        assert (cases["small"].args, cases["small"].steps) == (("--rate", "0.1"), 20)
        cluster = cases["cluster"]
        assert (str(cluster.shape), cluster.steps, cluster.total_timeout) == ("chief=1,worker=2,ps=2", 5, 30.0)
        assert (cases["by-module"].module, cases["by-module"].stdin) == (
            "other.iris",
            repository.root / "train/mnist.py",
        )
        assert cases["beside"].original == repository.root / "other/iris.py"
        assert "takes a day" in result.output
        # Programs that need the same packages share their interpreters.
        assert sorted(one["pythons"] for one in verifications.sessions) == [
            (Path("original"), Path("migrated")),
            (Path("original/pandas"), Path("migrated/pandas")),
        ]

    def test_the_command_line_stands_instead(
        self, run: Run, repository: Repository, verifications: Verifications
    ) -> None:
        two_programs(repository)
        repository.write({"pyproject.toml": SETTINGS, "needs.txt": "tabulate\n"})
        run("--cluster", "worker=2", "--steps", 3, "--stdin", "-", "--", "--rate", "1", stdin=b"rows")
        assert len(verifications.cases) == 4
        for case in verifications.cases:
            assert (str(case.shape), case.steps, case.args) == ("worker=2", 3, ("--rate", "1"))
            assert case.options[:4] == ("--cluster", "worker=2", "--steps", "3")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[tool.tf-migrate.verify]\nbases = 'x'\n", "unknown setting"),
            ("[tool.tf-migrate.verify.programs.a]\nargs = ['x']\n", "neither `script` nor `module`"),
            ("[tool.tf-migrate.verify.programs.a]\nscript = 'a.py'\nmodule = 'a'\n", "exclude each other"),
            ("[tool.tf-migrate.verify.programs.a]\nscript = '../a.py'\n", "outside of the project"),
        ],
    )
    def test_settings_that_cannot_be(self, run: Run, repository: Repository, text: str, message: str) -> None:
        two_programs(repository)
        repository.write({"pyproject.toml": text})
        result = run()
        assert result.exit_code == 2
        assert message in result.output

    def test_a_missing_script_is_its_own_failure(
        self, run: Run, repository: Repository, verifications: Verifications
    ) -> None:
        two_programs(repository)
        text = "[tool.tf-migrate.verify.programs.gone]\nscript = 'gone.py'\n"
        repository.write({"pyproject.toml": text})
        result = run()
        assert result.exit_code == 4
        assert "there is no original: HEAD:gone.py does not exist" in " ".join(result.output.split())
        assert len(verifications.cases) == 2, "the others are verified all the same"

    def test_pairs_have_options_that_projects_have_not(self, run: Run) -> None:
        for options in (("--name-map", __file__), ("--keras", "3"), ("--against", __file__)):
            result = run(".", *options)
            assert result.exit_code == 2
            assert "is for ORIGINAL and MIGRATED" in result.output
        assert "are for projects" in run(__file__, __file__, "--base", "HEAD").output


class TestPage:
    @pytest.mark.parametrize(
        ("verdicts", "code", "worst"),
        [
            (("EQUIVALENT", "EQUIVALENT"), 0, "EQUIVALENT"),
            (("EQUIVALENT", "INCONCLUSIVE"), 3, "INCONCLUSIVE"),
            (("DIFFERENT", "INCONCLUSIVE"), 1, "DIFFERENT"),
            (("DIFFERENT", "FAILED"), 4, "FAILED"),
            (("wrong", "DIFFERENT"), 4, "FAILED"),
        ],
    )
    def test_the_exit_code_is_that_of_the_worst(
        self,
        run: Run,
        repository: Repository,
        verifications: Verifications,
        tmp_path: Path,
        verdicts: tuple[str, str],
        code: int,
        worst: str,
    ) -> None:
        two_programs(repository)
        verifications.verdicts = dict(zip(("mnist.py", "iris.py"), verdicts, strict=True))
        result = run("--report", tmp_path / "out")
        assert result.exit_code == code, result.output
        assert json.loads((tmp_path / "out/project.json").read_text())["verdict"] == worst
        if worst == "INCONCLUSIVE":
            assert run("--inconclusive", "warn").exit_code == 0

    def test_what_it_says(self, run: Run, repository: Repository, verifications: Verifications, tmp_path: Path) -> None:
        two_programs(repository)
        verifications.verdicts = {"mnist.py": "DIFFERENT"}
        result = run("--report", tmp_path / "out")
        document = json.loads((tmp_path / "out/project.json").read_text())
        assert complaint(document, "project.schema.json") is None
        iris, mnist = document["programs"]
        assert document["commit"] == repository.git("rev-parse", "HEAD")
        assert (iris["status"], iris["first_difference"], iris["trend"]["said"]) == ("EQUIVALENT", None, "")
        assert mnist["first_difference"].startswith("L3 loss of trainer 0, step 1, local:0: 0.97030")
        assert (tmp_path / "out" / mnist["report"]).is_file()
        page = (tmp_path / "out/project.html").read_text()
        assert 'href="programs/train~mnist.py/report.html"' in page
        assert "1 DIFFERENT, 1 EQUIVALENT, against HEAD." in page
        assert "1 DIFFERENT, 1 EQUIVALENT, against HEAD." in result.output
        (suite,) = ElementTree.parse(tmp_path / "out/project.xml").getroot()
        good, bad = suite.findall("testcase")
        assert (good.get("classname"), good.get("file"), list(good.iter("failure"))) == (
            "verify.other/iris.py",
            "other/iris.py",
            [],
        )
        assert (bad.get("name"), suite.get("failures")) == ("train/mnist.py", "1")
        assert next(bad.iter("failure")).get("message") == mnist["first_difference"]

    def test_the_trend_is_that_of_each_program_s_own_last_run(
        self, run: Run, repository: Repository, verifications: Verifications, tmp_path: Path
    ) -> None:
        two_programs(repository)
        verifications.verdicts = {"mnist.py": "DIFFERENT"}
        run("--report", tmp_path / "out")
        run("other", "--report", tmp_path / "out")  # without mnist.py, which is not forgotten
        verifications.verdicts = {"iris.py": "INCONCLUSIVE"}
        result = run("--report", tmp_path / "out")
        document = json.loads((tmp_path / "out/project.json").read_text())
        told = {one["name"]: (one["trend"]["change"], one["trend"]["was"]) for one in document["programs"]}
        assert told == {"other/iris.py": ("worse", "EQUIVALENT"), "train/mnist.py": ("better", "DIFFERENT")}
        assert "was DIFFERENT" in " ".join(result.output.split())

    def test_originals_are_named_as_git_names_them(
        self,
        run: Run,
        repository: Repository,
        verifications: Verifications,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        from report_documents import make

        two_programs(repository)
        monkeypatch.setattr(
            session,
            "verify",
            lambda case, progress, **_: _at(make("DIFFERENT"), case.original),
        )
        run("train", "--report", tmp_path / "out")
        text = (tmp_path / "out/programs/train~mnist.py/report.json").read_text()
        assert '"path": "HEAD:train/mnist.py"' in text
        assert "tf-migrate-base" not in text


def _at(report, path):  # type: ignore[no-untyped-def]
    report.document["inputs"]["original"]["path"] = str(path)
    return report


def test_hostile_names_are_escaped(
    run: Run, repository: Repository, verifications: Verifications, tmp_path: Path
) -> None:
    repository.commit({"a<b>&.py": ESTIMATOR, "helper.py": HELPER})
    repository.write({"helper.py": "# new\n"})
    assert run("--report", tmp_path / "out").exit_code == 0
    page = (tmp_path / "out/project.html").read_text()
    assert "a&lt;b&gt;&amp;.py" in page
    assert "a<b>" not in page
