"""The fields of a ConfigProto: the `tf.config` call that says the same, or nothing where there is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

import libcst as cst

from migrator.findings import Severity
from migrator.program.calls import is_false, is_none, is_true, number, string
from migrator.rules.rule import Rule

CONFIG = "tf.ConfigProto"
# Messages of a ConfigProto that are made on their own, and the field that takes each.
PARTS = {
    "tf.GPUOptions": "gpu_options",
    "tf.GraphOptions": "graph_options",
    "tf.OptimizerOptions": "optimizer_options",
}
_GPUS = 'tf.config.list_physical_devices("GPU")'
_CPUS = """\
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * {value},
)"""
_DEFAULT = "default"
_REWRITES = (
    *("layout_optimizer", "constant_folding", "shape_optimization", "remapping", "arithmetic_optimization"),
    *("dependency_optimization", "loop_optimization", "function_optimization", "debug_stripper"),
    *("scoped_allocator_optimization", "implementation_selector", "auto_mixed_precision"),
)


@dataclass(frozen=True)
class Setting:
    """A statement of the new program: text in which `{value}` is the user's expression and `{gpu}` a free name.

    `of_replicas` says that it is for programs whose strategy takes several devices of one machine.
    """

    text: str
    value: cst.BaseExpression | None = None
    of_replicas: bool = False


Answer = Optional[list[Setting]]
Resolve = Callable[[cst.BaseExpression], Optional[str]]


def settings(path: str, value: cst.BaseExpression, resolve: Resolve) -> Answer:
    """What a field (`gpu_options.allow_growth`) given a value becomes: nothing for a default, None when unknown.

    TensorFlow 2.21 places softly unless told otherwise (measured: `tf.config.get_soft_device_placement()` is True);
    a ConfigProto does not. 0 threads mean as many as there are cores in both.
    """
    if is_none(value) or path == "use_per_session_threads":
        return []
    if path in ("inter_op_parallelism_threads", "intra_op_parallelism_threads"):
        if number(value) == 0:
            return []
        return [Setting(f"tf.config.threading.set_{path}({{value}})", value)]
    if path == "allow_soft_placement":
        return [] if is_true(value) else [Setting("tf.config.set_soft_device_placement({value})", value)]
    if path == "log_device_placement":
        return [] if is_false(value) else [Setting("tf.debugging.set_log_device_placement({value})", value)]
    if path == "gpu_options.allow_growth":
        growth = f"for {{gpu}} in {_GPUS}:\n    tf.config.experimental.set_memory_growth({{gpu}}, {{value}})"
        return [] if is_false(value) else [Setting(growth, value)]
    if path == "gpu_options.visible_device_list":
        return _visible(value)
    if path == "device_count":
        return _counted(value)
    if path == "graph_options.optimizer_options.global_jit_level":
        level = (resolve(value) or "").rpartition(".")[2]
        if level in ("ON_1", "ON_2"):
            return [Setting('tf.config.optimizer.set_jit("autoclustering")')]
        return [] if level in ("OFF", "DEFAULT") else None
    field = path.removeprefix("graph_options.rewrite_options.")
    if field in _REWRITES and field != path:
        switch = {"OFF": "False", "ON": "True"}.get((resolve(value) or "").rpartition(".")[2])
        return (
            [Setting(f'tf.config.optimizer.set_experimental_options({{{{"{field}": {switch}}}}})')] if switch else None
        )
    return None


def _visible(value: cst.BaseExpression) -> Answer:
    """A list of GPUs by number; a ConfigProto names none that the machine does not have."""
    numbers = string(value)
    if numbers is not None:
        wanted = [part.strip() for part in numbers.split(",")]
        if not numbers or not all(part.isdigit() for part in wanted):
            return [] if not numbers else None
        if len(wanted) == 1:
            start = int(wanted[0])
            text = f"{_GPUS}[{start or ''}:{start + 1}]"
        elif wanted == [str(i) for i in range(len(wanted))]:
            text = f"{_GPUS}[:{len(wanted)}]"
        else:
            return None  # the order of the devices counts, too
        return [Setting(f'tf.config.set_visible_devices({text}, "GPU")')]
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Name) and value.func.value == "str":
        if len(value.args) == 1:
            argument = value.args[0].value
            text = f"{_GPUS}[{{value}}:{{value}} + 1]"
            if isinstance(argument, (cst.Name, cst.Attribute)):
                return [Setting(f'tf.config.set_visible_devices({text}, "GPU")', argument)]
    return None


def _counted(value: cst.BaseExpression) -> Answer:
    """`{"GPU": n}`: so many are used at most. More or fewer CPU devices change nothing without several replicas."""
    if not isinstance(value, cst.Dict):
        return None
    found: list[Setting] = []
    for element in value.elements:
        kind = string(element.key) if isinstance(element, cst.DictElement) else None
        if kind is None or kind.upper() not in ("GPU", "CPU"):
            return None
        if kind.upper() == "GPU":
            if number(element.value) == 0:
                found.append(Setting('tf.config.set_visible_devices([], "GPU")'))
            else:
                found.append(Setting(f'tf.config.set_visible_devices({_GPUS}[:{{value}}], "GPU")', element.value))
        elif number(element.value) not in (0, 1):
            found.append(Setting(_CPUS, element.value, of_replicas=True))
    return found


RULES = (
    Rule(
        "TFM170",
        "session settings become tf.config calls",
        Severity.REVIEW,
        """
A `tf.ConfigProto` that is given to a RunConfig tells the session how to use the machine. TensorFlow 2 has no sessions
and is told the same by functions, in the place of the lines that made the ConfigProto:

| ConfigProto | TensorFlow 2 |
|---|---|
| `inter_op_parallelism_threads`, `intra_op_parallelism_threads` | `tf.config.threading.set_..._parallelism_threads` |
| `allow_soft_placement` | `tf.config.set_soft_device_placement`; True is what TensorFlow 2 does anyway |
| `log_device_placement` | `tf.debugging.set_log_device_placement` |
| `gpu_options.allow_growth` | `tf.config.experimental.set_memory_growth` for every GPU |
| `gpu_options.visible_device_list`, `device_count` of GPUs | `tf.config.set_visible_devices` |
| `device_count` of CPUs, for several replicas | `tf.config.set_logical_device_configuration` |
| `optimizer_options.global_jit_level` | `tf.config.optimizer.set_jit` |
| switches of `graph_options.rewrite_options` | `tf.config.optimizer.set_experimental_options` |

Threads and devices cannot be changed any more when the first operation has run: TensorFlow then raises a RuntimeError.
The calls are written only where nothing before them, in this file and those that it imports, can have run one; where
that is not sure the settings are left out (TFM140). Look at the place if you change what stands before it.
""",
    ),
)
