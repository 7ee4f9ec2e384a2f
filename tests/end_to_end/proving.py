"""A proof of a rule: TensorFlow 1 and the Keras form that the codemod writes are run, and the numbers compared."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from migrator.findings import Severity
from migrator.harness.case import training_tasks
from migrator.harness.cluster import LOCAL, ClusterShape, ForkServer, Launch
from migrator.harness.protocol import name_map
from migrator.harness.recording import LOSS_OF_BATCHES, LOSS_OF_EXAMPLES, Recording, read
from tests.rules.programs import run_project as migrate_texts

#: The interpreters of the original and of the migrated program (the fixture `servers`).
Servers = tuple[ForkServer, ForkServer]


def record(
    server: ForkServer,
    program: str,
    script: Path,
    folder: Path,
    initial: Path | None,
    devices: int = 1,
    cluster: str = "",
    tpu_cores: int = 1,
    training: int = 0,
) -> Recording:
    """Runs a program to its end; from `initial`, for which it waits, if that is given."""
    shape = ClusterShape.parse(cluster, coordinated=program == "migrated")
    plan = {
        "record": str(folder / "record"),
        "model_dir": str(folder / "model"),
        "trainers": list(training_tasks(shape)) or [str(LOCAL)],
        "steps": None,
        "state_steps": [1, 5],
        "initial": str(initial) if initial else None,
        "initial_awaited": initial is not None,
        "seed": 1,
        "ulp_seed": None,
        "learning_rate_factor": 1.0,
        "replay": None,
        "record_batches": True,
        "pin_dropout": True,
        "evaluate": True,
        "tpu_cores": tpu_cores,
        "devices": devices,
        "training": training,
    }
    folder.mkdir()
    outcome = server.run(Launch(program, script, (), shape, folder, plan))
    assert outcome.failure is None, outcome.failure
    return read(folder / "record")


def record_both(
    servers: Servers,
    original: Path,
    migrated: Path,
    folder: Path,
    devices: int = 1,
    clusters: tuple[str, str] = ("", ""),
    tpu_cores: int = 1,
) -> tuple[Recording, Recording, name_map.NameMap]:
    """Runs two programs, each on its cluster, the migrated one from the original's weights, and maps the variables of
    the two.

    A Keras one builds its model while the original trains, and waits for the weights. One on the bridge begins behind
    the original: its variables have the names of the original's.
    """
    initial, shown = folder / "initial.npz", folder / "migrated-run" / "record"
    if (migrated.parent / "keras_estimator.py").exists():
        first = record(servers[0], "original", original, folder / "original-run", None, cluster=clusters[0])
        np.savez(initial, **first.initial)  # type: ignore[arg-type]
        second = record(servers[1], "migrated", migrated, shown.parent, initial, devices, clusters[1], tpu_cores)
        names = name_map.build(first.variables, second.variables)
        assert names.complete, names
        assert all(ours == theirs for ours, theirs in names.pairs)
        return first, second, names
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(
            record, servers[1], "migrated", migrated, shown.parent, initial, devices, clusters[1], tpu_cores
        )
        values: dict[str, np.ndarray] = {}
        try:
            first = record(servers[0], "original", original, folder / "original-run", None, cluster=clusters[0])
            while not running.done() and not list(shown.glob("*/program.json")):
                time.sleep(0.02)
            if running.done():
                running.result()
            pairs = name_map.build(first.variables, read(shown).variables)
            assert pairs.complete, pairs
            renamed = pairs.to_migrated()  # of the model's variables: not of those of a hook
            values = {renamed[name]: value for name, value in first.initial.items() if name in renamed}
        finally:
            # Whatever came: without this file, or with nothing in it, the other program does not go on.
            with (folder / "initial.part").open("wb") as file:
                np.savez(file, **values)  # type: ignore[arg-type]
            (folder / "initial.part").rename(initial)
        return first, running.result(), pairs


def losses(recording: Recording) -> list[float]:
    """The loss of every step: the mean of those of the workers that took it together."""
    found: dict[int, list[float]] = {}
    for step in recording.steps:
        found.setdefault(step.number, []).append(step.loss)
    assert len({len(several) for several in found.values()}) == 1
    return [float(np.mean(found[number])) for number in sorted(found)]


def prove(
    text: str, servers: Servers, tmp_path: Path, *, steps: int = 5, style: str = "native", keras: str = "2"
) -> str:
    """Proves a program of one file, see prove_project; returns the new program."""
    new = prove_project({"train.py": text}, "train.py", servers, tmp_path, steps=steps, style=style, keras=keras)
    return new["train.py"]


def prove_project(
    texts: dict[str, str],
    script: str,
    servers: Servers,
    tmp_path: Path,
    *,
    steps: int = 5,
    style: str = "native",
    keras: str = "2",
    strategy: str = "auto",
    loop: str = "fit",
    devices: int = 1,
    rounding: float = 1e-4,
    clusters: tuple[str, str] = ("", ""),
    tpu_cores: int = 1,
) -> dict[str, str]:
    """Migrates a program that trains for `steps` steps (at least 5), runs both and compares; returns the new files.

    `texts` are its files by name, `script` is the one to run, on so many virtual `devices` once it is migrated.
    Both start from the original's weights. Compared are the losses of all steps, the weights after step 5, and the
    results of the last evaluation if the program evaluates. Bounds: the losses and metrics of one float32 program in
    two TensorFlow versions agree to 1e-6 or better over a few steps (reference figures: 2e-7 to 4e-6 for weights over
    60 to 100 steps), so 1e-5 leaves room for rounding and none for a wrong formula. A loss that Keras averages over
    examples is compared as its mean over batches (TFM303). `rounding` is the bound for the weights. Workers in step, of
    `clusters` for the original and the migrated program, have a loss together: the mean of theirs.
    """
    results = migrate_texts(texts, strategy, style=style, keras=keras, loop=loop)
    findings = [f for _, found in results.values() for f in found]
    assert not [f for f in findings if f.severity is Severity.MANUAL], findings
    new = {path: text for path, (text, _) in results.items()}
    for kind, files in (("original", texts), ("migrated", new)):
        (tmp_path / kind).mkdir()
        for name, text in files.items():
            (tmp_path / kind / name).write_text(text, encoding="utf-8")
    original, migrated, pairs = record_both(
        servers, tmp_path / "original" / script, tmp_path / "migrated" / script, tmp_path, devices, clusters, tpu_cores
    )
    assert len(losses(original)) == len(losses(migrated)) == steps
    np.testing.assert_allclose(losses(migrated), losses(original), rtol=1e-5)
    for ours, theirs in pairs.pairs:
        np.testing.assert_allclose(
            migrated.states[5][theirs], original.states[5][ours], rtol=rounding, atol=rounding / 100
        )
    if not original.evaluations:
        return new
    before, after = original.evaluations[-1].results, migrated.evaluations[-1].results
    assert before and set(before) <= set(after)
    if after.get(LOSS_OF_EXAMPLES) == pytest.approx(after["loss"], rel=1e-5):
        after = {**after, "loss": after[LOSS_OF_BATCHES]}
    for name in sorted(before):
        assert after[name] == pytest.approx(before[name], rel=1e-5), name
    return new


def told(document: Mapping[str, Any]) -> str:
    """What a report says of its verdict, for the message of a test: the reason, its levels, what did not run."""
    levels = [f"{one['id']}: {one['status']}: {one['summary']}" for one in document["levels"]]
    failed = [f"{one['role']} failed" for one in document["runs"] if one["failed"]]
    return "\n".join([document["verdict"], str(document["summary"]), str(document["error"]), *levels, *failed])
