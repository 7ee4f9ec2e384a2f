"""Lets ``python -m tf_migrate`` stand for ``tf-migrate``."""

import sys

# Python puts the folder it was started in first, for us the tree to look at: its click.py must not be imported as ours.
if sys.path[0] != __file__.rpartition("tf_migrate")[0][:-1] and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

try:
    from tf_migrate import main

    main()
except KeyboardInterrupt:
    print("Interrupted.", file=sys.stderr)
    sys.exit(130)
