"""Writes migrator/names/compat.json: which symbols TensorFlow 2.21 (with tf_keras) still has in `tf.compat.v1`.

Run it with the interpreter of the migrated environment:

    python tools/make_compat_table.py migrator/names/compat.json

The mapped form leaves TensorFlow 1 code in place and spells its symbols `tf.compat.v1.X`: what is not in this table
cannot stay. `two` are the names of TensorFlow 2 that mean something else than in TensorFlow 1, or that TensorFlow 1
does not have. Symbols that live on in TensorFlow 2 under a name of their own are in symbols.json.
"""

import json
import sys
from pathlib import Path

from make_symbol_table import compare, public_symbols

if __name__ == "__main__":
    known = compare()  # imports TensorFlow with tf_keras
    import tensorflow as tf

    elsewhere = {*known["same"], *known["renamed"]}
    left = sorted(set(public_symbols(tf.compat.v1, "tf")) - elsewhere)
    plain = public_symbols(tf, "tf")
    own = ("tf.estimator.", "tf.raw_ops.", "tf.compat.")
    two = sorted(n for n in set(plain) - {*known["same"], *known["new"]} if not n.startswith(own))
    text = json.dumps({"tensorflow": tf.__version__, "compat": left, "two": two}, indent=0, sort_keys=True)
    Path(sys.argv[1]).write_text(text + "\n", encoding="utf-8")
