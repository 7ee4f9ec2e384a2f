"""The targets: one shape for all, and the strategy that a program gets."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

import migrator.targets
from migrator.findings import Finding, Severity
from migrator.targets import LOOPS, STRATEGIES, registry
from tests.rules.programs import program, run


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


@pytest.mark.parametrize("made", ["MirroredStrategy(['/gpu:0'])", "experimental.CentralStorageStrategy()"])
def test_replicas_that_draw_whole_batches_are_refused(made: str) -> None:
    text = configured(f"tf.distribute.{made}")
    new, findings = run(text)
    assert new == text and "TFM704" in manual(findings)


@pytest.mark.parametrize("word", ["mirrored", "central-storage"])
def test_fit_on_replicas_is_refused(word: str) -> None:
    text = program(driver="estimator.train(input_fn)")
    new, findings = run(text, word)
    assert new == text and manual(findings) == ["TFM704"]


@pytest.mark.parametrize(
    "old, new",
    [
        ("def input_fn():", "def input_fn(input_context=None):"),
        (
            "optimizer.minimize(loss, global_step=tf.train.get_global_step())",
            "optimizer.apply_gradients(\n"
            "        zip(tf.gradients(loss, tf.trainable_variables()), tf.trainable_variables()),\n"
            "        tf.train.get_global_step())",
        ),
    ],
)
def test_what_estimators_do_not_scale_or_share_is_refused_on_workers(old: str, new: str) -> None:
    driver = (
        "tf.estimator.train_and_evaluate(\n"
        "    estimator, tf.estimator.TrainSpec(input_fn, max_steps=3), tf.estimator.EvalSpec(input_fn))"
    )
    text = configured("tf.distribute.experimental.MultiWorkerMirroredStrategy()", driver)
    assert manual(run(text)[1]) == []
    changed = text.replace(old, new)
    assert changed != text and "TFM704" in manual(run(changed)[1])


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
