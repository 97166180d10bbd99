"""What differential privacy proves about reconstruction (Balle, Cherubin, Hayes, IEEE S&P 2022).

Whoever hits the cell of a row with probability k without its messages hits it with at most
    e^epsilon k + delta
from messages that are (epsilon, delta)-differentially private for that row, whatever the attack and whatever it knows of
other rows. A hit is a guess within 10 % of the column's range; k is that of the best constant.

It is given where everything that the curious receive is private for the attacked rows. That is so of `dp_gradients` against a
coordinator that has neither columns nor outputs of its own: each party's uploads are (epsilon, delta)-private, and g parties'
(g epsilon, g delta). `dp_sgd` protects the rows that train, and not those that are predicted; `amplified` is no promise
against whoever draws the batches.
"""

from __future__ import annotations

import numpy as np

from plumbob.federation import FloatArray
from plumbob.known_defences import KnownDpGradients
from plumbob.scoring.rows_at_risk import crowded
from plumbob.threats import View

TOLERANCE = 0.1  # of the range


def private(view: View) -> tuple[float, float] | None:
    """Epsilon and delta of all that the curious receive about a row; None where some of it is not private."""
    known = view.defence.get(KnownDpGradients)
    if known is None or known.amplified or view.own.shape[1]:
        return None
    received = [m.name for m in view.messages if m.receiver in view.curious and m.phase in ("train", "predict")]
    parties = {name.split("/")[1] for name in received if name.startswith("gradient/")}
    if not parties or any(not name.startswith("gradient/") for name in received):
        return None
    return len(parties) * known.epsilon, len(parties) * known.delta


def most_hits(column: FloatArray, guarantee: tuple[float, float]) -> float:
    """The largest share of rows that anybody guesses to within 10 % of the range.

    >>> round(most_hits(np.linspace(0, 1, 1_000), (0.5, 1e-5)), 2)
    0.33
    """
    constant = float(crowded(column[:, None], TOLERANCE)[0])
    hit = float(np.mean(np.abs(column - constant) <= TOLERANCE * (1 + 1e-9)))
    epsilon, delta = guarantee
    return min(1.0, hit * float(np.exp(min(epsilon, 700.0))) + delta)
