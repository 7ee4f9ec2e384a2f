"""One RunConfig of what a condition chooses, where its strategy is: those that stay first."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.program.parsed import ParsedFile
from migrator.program.reductions import reduced

TOP = "import tensorflow as tf\n\n\n"
MAIN = "def main(several):\n{}    tf.estimator.Estimator(model_fn, config=config).train(read)\n"
MIRRORED = "tf.distribute.MirroredStrategy()"


def main(*lines: str) -> str:
    return TOP + MAIN.format("".join(f"    {line}\n" for line in lines))


def said(text: str) -> str:
    return reduced(ParsedFile.parse(Path("train.py"), text), lambda name: False).module.code


def configs(first: str, second: str) -> str:
    return main(
        "if several:",
        f"    config = tf.estimator.RunConfig({first})",
        "else:",
        f"    config = tf.estimator.RunConfig({second})",
    )


STAYS = {
    "no strategy": configs("save_summary_steps=1", "save_summary_steps=2"),
    "what one of them has another default for": configs(f"train_distribute={MIRRORED}, keep_checkpoint_max=3", ""),
    "only one way makes one": main("if several:", f"    config = tf.estimator.RunConfig(train_distribute={MIRRORED})"),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_stays(name: str) -> None:
    assert said(STAYS[name]) == STAYS[name]


def test_two_configs() -> None:
    assert said(configs(f"'m', train_distribute={MIRRORED}", "'m'")) == main(
        "if several:",
        f"    train_distribute = {MIRRORED}",
        "else:",
        "    train_distribute = None",
        "config = tf.estimator.RunConfig(model_dir='m', train_distribute=train_distribute)",
    )


def test_an_estimator_without_one() -> None:
    """It has a RunConfig that says nothing, as Estimator itself makes one."""
    text = TOP + (
        "def main(several):\n"
        "    if several:\n"
        f"        config = tf.estimator.RunConfig(train_distribute={MIRRORED})\n"
        "        model = tf.estimator.Estimator(model_fn, config=config)\n"
        "    else:\n"
        "        model = tf.estimator.Estimator(model_fn)\n"
        "    model.train(read)\n"
    )
    assert said(text) == TOP + (
        "def main(several):\n"
        "    if several:\n"
        f"        train_distribute = {MIRRORED}\n"
        "    else:\n"
        "        train_distribute = None\n"
        "    config_2 = tf.estimator.RunConfig(train_distribute=train_distribute)\n"
        "    model = tf.estimator.Estimator(model_fn=model_fn, config=config_2)\n"
        "    model.train(read)\n"
    )
