"""Prints the newest step below a directory of Orbax checkpoints, and a fingerprint of all that a restore gives back."""

import hashlib
import json
import pathlib
import sys

import jax
import numpy as np
import orbax.checkpoint

directory = pathlib.Path(sys.argv[1]).resolve()
step = max(int(path.name) for path in directory.iterdir() if path.name.isdigit())
state = orbax.checkpoint.PyTreeCheckpointer().restore(directory / str(step) / "items")
sha = hashlib.sha256()
for path, leaf in jax.tree_util.tree_leaves_with_path(state):
    is_key = jax.dtypes.issubdtype(getattr(leaf, "dtype", None), jax.dtypes.prng_key)
    array = np.asarray(jax.random.key_data(leaf) if is_key else leaf)
    sha.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape}".encode() + array.tobytes())
print(json.dumps({"step": step, "digests": {"state": sha.hexdigest()[:16]}}))  # noqa: T201  the answer
