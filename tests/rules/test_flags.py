"""Flags that are read when the script is loaded: the command line is parsed before."""

from __future__ import annotations

import pytest

from tests.rules.programs import program, run

MAIN = "def main(_):\n{body}\n\nif __name__ == '__main__':\n    {before}\n    tf.app.run()"


def migrated(before: str, flags: str = "tf.app.flags.FLAGS") -> tuple[str, list[str]]:
    text = program(driver="estimator.train(input_fn, steps=3)")
    head, _, tail = text.partition("\n\nestimator = ")
    body = "".join(f"    {line}\n" for line in ("estimator = " + tail).splitlines())
    defined = f"\n\ntf.app.flags.DEFINE_string('name', '', 'Name.')\nFLAGS = {flags}\n\n\n"
    new, findings = run(head + defined + MAIN.format(body=body, before=before) + "\n")
    return new, [finding.code for finding in findings]


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("if FLAGS.name: print(1)", "    FLAGS(sys.argv)\n    if FLAGS.name: print(1)\n"),
        ("print(FLAGS.name)", "    FLAGS(sys.argv)\n    print(FLAGS.name)\n"),
    ],
)
def test_the_command_line_is_parsed_before_a_flag_is_read(before: str, line: str) -> None:
    new, codes = migrated(before)
    assert line in new and "import sys\n" in new
    assert "TFM856" in codes


@pytest.mark.parametrize("before", ["print(1)", "f = lambda: FLAGS.name", "FLAGS([''])\n    print(FLAGS.name)"])
def test_where_no_flag_is_read_nothing_is_added(before: str) -> None:
    new, codes = migrated(before)
    assert "sys.argv" not in new and "TFM856" not in codes


def test_the_line_that_reads_a_flag_goes() -> None:
    text = program(driver="estimator.train(input_fn, steps=FLAGS.every)")
    head, _, tail = text.partition("\n\nestimator = ")
    flags = "\n\ntf.app.flags.DEFINE_integer('every', 9, '')\nFLAGS = tf.app.flags.FLAGS\n"
    config = "# How often.\nconfig = tf.estimator.RunConfig(save_checkpoints_steps=FLAGS.every)\nestimator = "
    new, _ = run(head + flags + config + tail.replace("model_fn,", "model_fn, config=config,") + "\n")
    assert new.count("FLAGS(sys.argv)\n") == 1 and "RunConfig" not in new
    assert new.index("FLAGS(sys.argv)") < new.index("FLAGS.every")
    compile(new, "new", "exec")


def test_a_name_for_the_module() -> None:
    new, codes = migrated("print(FLAGS.name)", "tf.app.flags.FLAGS\nflags = tf.app.flags\nFLAGS = flags.FLAGS")
    assert "FLAGS(sys.argv)\n    print" in new and "TFM856" in codes
