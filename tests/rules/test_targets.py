"""The targets: one shape for all, and the strategy that a program gets."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

import migrator.targets
from migrator.findings import Finding, Severity
from migrator.targets import LOOPS, STRATEGIES, registry
from tests.rules.programs import program, run

CREATOR = "tf.keras.utils.experimental.DatasetCreator(lambda context: input_fn())"


def manual(findings: list[Finding]) -> list[str]:
    return [f.code for f in findings if f.severity is Severity.MANUAL]


def migrated(text: str) -> str:
    new, findings = run(text)
    assert manual(findings) == []
    return new


def configured(strategy: str, driver: str = "estimator.train(input_fn, steps=3)") -> str:
    """The program with this train_distribute."""
    config = f"tf.estimator.RunConfig(train_distribute={strategy})"
    return program(driver=driver).replace(', params={"rate": 0.1})', f", config={config}, params=dict(rate=0.1))")


def test_the_command_line_knows_every_target_and_loop() -> None:
    modules = [import_module(f"migrator.targets.{m.name}") for m in pkgutil.iter_modules(migrator.targets.__path__)]
    targets = {module.TARGET.word for module in modules if hasattr(module, "TARGET")}
    loops = {module.LOOP.word for module in modules if hasattr(module, "LOOP")}
    assert targets == set(STRATEGIES) == set(registry.TARGETS)
    assert loops == set(LOOPS) == set(registry.LOOPS)


@pytest.mark.parametrize("target", registry.TARGETS.values(), ids=lambda target: target.word)
def test_a_class_asks_for_one_target(target: registry.Target) -> None:
    assert [registry.target_of(f"tf.distribute.{name}") for name in target.classes] == [target] * len(target.classes)


def test_devices_of_the_run_config_are_kept_and_each_gets_batches_of_its_own() -> None:
    new = migrated(configured('tf.distribute.MirroredStrategy(["/gpu:0", "/gpu:1"])'))
    assert 'strategy = tf.distribute.MirroredStrategy(devices=["/gpu:0", "/gpu:1"])\nwith strategy.scope():\n' in new
    assert CREATOR in new and "steps_per_epoch=3" in new


@pytest.mark.parametrize(
    "word, made",
    [
        ("mirrored", "tf.distribute.MirroredStrategy()"),
        ("central-storage", "tf.distribute.experimental.CentralStorageStrategy()"),
    ],
)
def test_a_strategy_may_be_asked_for(word: str, made: str) -> None:
    new, findings = run(program(driver="estimator.train(input_fn)"), word)
    assert manual(findings) == []
    assert f"strategy = {made}\n" in new and CREATOR in new and "steps_per_epoch=-1" in new


def test_one_device_that_is_asked_for_counts_more_than_the_run_config() -> None:
    new, findings = run(configured("tf.distribute.MirroredStrategy()"), "one-device")
    assert manual(findings) == [] and "Strategy" not in new and "model.fit(input_fn().take(3))" in new


@pytest.mark.parametrize("word", ["mirrored", "central-storage", "multi-worker-mirrored", "parameter-server"])
def test_no_strategy_is_claimed_on_keras_3_untried(word: str) -> None:
    text = program()
    new, findings = run(text, word, keras="3")
    assert new == text and set(manual(findings)) <= {"TFM872", "TFM704"} and manual(findings)


def test_a_strategy_from_elsewhere_is_blocked() -> None:
    text = configured("pick()").replace("def model_fn", "def pick():\n    return None\n\n\ndef model_fn")
    new, findings = run(text)
    assert new == text and "TFM704" in manual(findings)
