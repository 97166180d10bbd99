"""Baselines: guesses that need no message of the protocol. An attack has to beat their errors.

`uniform` and `normal` are the papers'; `own_mean` and `own_row_mean` use only the curious party's columns, `no_message` all
that it has before a score arrives (its columns as a prior, complete rows where granted), `own_columns` what learners find in
complete rows without messages; `best_constant` is each column's true mean, which nobody but scoring knows.
"""

from __future__ import annotations

import numpy as np

from plumbob.federation import BoolArray, FloatArray


def squared_errors(
    truth: FloatArray,
    own: FloatArray,
    no_message: FloatArray | None = None,
    seen: BoolArray | None = None,
    own_columns: FloatArray | None = None,
) -> dict[str, FloatArray]:
    """Squared error of every cell under each baseline; for the two random ones its expectation, which is exact.

    The best constant is that of the cells that were seen.

    E (U - x)^2 = (1/2 - x)^2 + 1/12 for the uniform guess and (1/2 - x)^2 + 1/16 for N(1/2, 1/4^2).

    >>> import numpy as np
    >>> errors = squared_errors(np.array([[0.5], [0.5]]), np.zeros((2, 0)))
    >>> {name: round(float(error.mean()), 4) for name, error in errors.items()}
    {'uniform': 0.0833, 'normal': 0.0625, 'best_constant': 0.0}
    """
    off_centre = (truth - 0.5) ** 2
    errors = {"uniform": off_centre + 1 / 12, "normal": off_centre + 1 / 16}
    if own.shape[1]:
        errors["own_mean"] = (truth - own.mean()) ** 2
        errors["own_row_mean"] = (truth - own.mean(axis=1, keepdims=True)) ** 2
    if no_message is not None:
        errors["no_message"] = (truth - no_message) ** 2
    if own_columns is not None:
        errors["own_columns"] = (truth - own_columns) ** 2
    mean = truth.mean(axis=0)
    if seen is not None:
        for j in np.flatnonzero(~seen.all(axis=0) & seen.any(axis=0)):
            mean[j] = truth[seen[:, j], j].mean()
    errors["best_constant"] = (truth - mean) ** 2
    return errors
