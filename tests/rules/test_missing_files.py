"""What is not among the files that were given is named."""

from __future__ import annotations

import pytest

from migrator.findings import Severity
from tests.rules.programs import program, run

MODEL = program().replace("Estimator(model_fn,", "Estimator(networks.model_fn,")
HOOKS = program(driver="estimator.train(input_fn, steps=3, hooks=making.hooks(3))")

MADE = program().replace("optimizer.minimize(loss, global_step=tf.train.get_global_step())", "making.train_op(loss)")


@pytest.mark.parametrize(
    ("text", "imported", "code", "told"),
    [
        (
            MODEL,
            "from far.away import networks",
            "TFM104",
            "not a function in the given files: pass `far/away/",
        ),
        (MODEL, "networks = 3", "TFM104", "the model_fn is not a function in the given files"),
        (
            HOOKS,
            "import making",
            "TFM110",
            "cannot tell which hook `making.hooks(...)` returns: pass `making.py`",
        ),
        (
            HOOKS,
            "making = 3",
            "TFM110",
            "cannot tell which hook `making.hooks(...)` returns: it is not in the given files",
        ),
        (
            MADE,
            "import making",
            "TFM403",
            "optimizer; cannot tell what `making.train_op(...)` returns: pass `making.py` to tf-migrate as well",
        ),
        (MADE, "making = 3", "TFM403", "this train_op does not apply gradients with an optimizer"),
    ],
)
def test_what_is_missing_is_named(text: str, imported: str, code: str, told: str) -> None:
    text = text.replace("import tensorflow as tf\n", f"import tensorflow as tf\n{imported}\n", 1)
    new, findings = run(text)
    (found,) = [finding for finding in findings if finding.severity is Severity.MANUAL]
    assert new == text and found.code == code and told in found.message
    assert found.message.endswith("as well") or "= 3" in imported
