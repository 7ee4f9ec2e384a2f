"""Scaffolds: what only keeps checkpoints is left out with the lines that made it, the rest is refused."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

SAVER = "tf.train.Saver(max_to_keep=3, save_relative_paths=True)"


def with_scaffold(before: str, given: str) -> str:
    loss = f"loss = tf.losses.mean_squared_error(labels, logits)\n{before}"
    return program(loss=loss, spec=f", scaffold={given}")


@pytest.mark.parametrize("style", ["native", "mapped"])
@pytest.mark.parametrize(
    ("before", "given"),
    [
        (f"saver = {SAVER}\nscaffold = tf.train.Scaffold(saver=saver)", "scaffold"),
        ("scaffold = None\nif params['rate'] > 1:\n    scaffold = tf.train.Scaffold()", "scaffold"),
        ("pass", f"tf.train.Scaffold(saver={SAVER})"),
        ("pass", "tf.train.Scaffold(summary_op=tf.summary.merge_all())"),
    ],
)
def test_what_only_keeps_checkpoints_is_left_out(before: str, given: str, style: str) -> None:
    new, findings = run(with_scaffold(before, given), style=style)
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    assert "TFM854" in [f.code for f in findings]
    assert "caffold" not in new and "aver(" not in new and "merge_all" not in new


@pytest.mark.parametrize(
    ("before", "given", "says"),
    [
        ("pass", "tf.train.Scaffold(init_fn=lambda scaffold, session: None)", "warm_start_from"),
        ("pass", "tf.train.Scaffold(local_init_op=tf.tables_initializer())", "`local_init_op`"),
        ("pass", "tf.train.Scaffold(saver=tf.train.Saver([logits]))", "`var_list`"),
        ("kept = tf.train.Checkpoint(a=loss)", "tf.train.Scaffold(saver=kept)", "called here"),
        ("pass", "params['scaffold']", "made in the model_fn"),
    ],
)
def test_what_may_change_the_training_is_refused(before: str, given: str, says: str) -> None:
    text = with_scaffold(before, given)
    new, findings = run(text, style="auto")
    assert new == text
    assert any(f.code == "TFM855" and says in f.message for f in findings), findings
