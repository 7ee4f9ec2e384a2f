"""Names behind TensorFlow 1.15's interface that are other names of public symbols: the same Python objects.

The answer is that of `aliases.json`, which tools/make_alias_table.py makes from an installed TensorFlow 1.15.5.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

_CELLS = (
    *("BasicRNNCell", "BasicLSTMCell", "LSTMCell", "GRUCell", "MultiRNNCell", "DropoutWrapper", "ResidualWrapper"),
    *("DeviceWrapper", "RNNCell", "LSTMStateTuple"),
)
#: Public names of contrib that are other names of public symbols, and are read so by the rules.
OF_CONTRIB = {
    **{f"tf.contrib.rnn.{name}": f"tf.nn.rnn_cell.{name}" for name in _CELLS},
    "tf.contrib.cluster_resolver.TPUClusterResolver": "tf.distribute.cluster_resolver.TPUClusterResolver",
    "tf.contrib.tpu.bfloat16_scope": "tf.tpu.bfloat16_scope",
    "tf.contrib.training.python.training.hparam.HParams": "tf.contrib.training.HParams",
    "tf.python.lib.io.file_io.FileIO": "tf.gfile.GFile",  # which is derived from it, with a mode to begin with
    "tf.contrib.rnn.static_rnn": "tf.nn.static_rnn",
    "tf.contrib.rnn.static_bidirectional_rnn": "tf.nn.static_bidirectional_rnn",
    **{
        f"tf.contrib.framework.nest.{name}": f"tf.nest.{name}"
        for name in ("map_structure", "flatten", "pack_sequence_as", "assert_same_structure")
    },
}
_HIDDEN = ("tf.python.", "tensorflow_estimator.python.", "tf.contrib.")
#: Modules as programs of TensorFlow before 1.15 name them, and as 1.15 does.
_MOVED = {
    "tf.python.training.distribute": "tf.python.distribute.distribute_lib",
    "tensorflow_estimator.python.estimator": "tf.python.estimator",  # a package of its own since 1.14
}
#: Modules of TensorFlow before 1.0, and where 1.15 has what they held.
_EARLIER = {
    **dict.fromkeys(("tf.nn.seq2seq", "tf.python.ops.seq2seq", "tf.models.rnn.seq2seq"), "tf.contrib.legacy_seq2seq"),
    "tf.models.rnn.rnn_cell": "tf.nn.rnn_cell",
    "tf.models.rnn.rnn": "tf.nn",
}
#: Where 1.15 has the public functions of a module of earlier versions, beside what that module has there.
_BESIDE = {
    "tf.python.estimator": "tensorflow_estimator.python.estimator",
    "tf.python.feature_column.feature_column": "tf.python.feature_column.feature_column_lib",
    "tf.contrib.data.python.ops": "tf.python.data.experimental.ops",
}


def without_alias(name: str) -> str:
    """The public name of a symbol that `name` reaches by another way, or the name that 1.15 has for its module.

    `name` has `tf` for the TensorFlow module: `tf.python.ops.math_ops.add` is `tf.add`. A name that has no public one
    stays, and so does a public name.
    """
    if name in OF_CONTRIB:
        return OF_CONTRIB[name]
    earlier = _below(_EARLIER, name)
    if earlier is not None:
        return without_alias(earlier)
    if not name.startswith(_HIDDEN):
        return name
    moved = _below(_MOVED, name) or name
    return _public(name) or _public(moved) or _public(_below(_BESIDE, moved)) or moved


def beside(module: str) -> frozenset[str]:
    """Names that a module of earlier versions had besides those that 1.15 has there."""
    return frozenset(public_names().get(_BESIDE.get(module, ""), {}))


def _below(moved: dict[str, str], name: str) -> str | None:
    """`name` in the module that its own became."""
    old = next((module for module in moved if f"{name}.".startswith(f"{module}.")), None)
    return None if old is None else moved[old] + name[len(old) :]


def _public(name: str | None) -> str | None:
    parts = (name or "").split(".")
    for end in range(len(parts) - 1, 2, -1):
        known = public_names().get(".".join(parts[:end]))
        if known is not None:
            found = known.get(parts[end])
            return None if found is None else ".".join([found, *parts[end + 1 :]])
    return None


@lru_cache(maxsize=1)
def public_names() -> dict[str, dict[str, str]]:
    """Modules behind the interface, and the public names of what each holds."""
    data = json.loads(Path(__file__).with_name("aliases.json").read_text(encoding="utf-8"))
    return {
        module: {
            name.partition("=")[0]: f"{home}.{name.rpartition('=')[2]}"
            for home, names in homes.items()
            for name in names.split()
        }
        for module, homes in data.items()
    }
