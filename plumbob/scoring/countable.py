"""What can be counted: the bits of a release that takes few values, the error that so many bits leave, and open equations.

Bits. A row's release is one of K values. Beyond own columns it carries H(release | own) bits at most. Both of these are at
least that, and the smaller one is taken: the entropy of the releases (with Miller and Madow's correction), and the log loss of a
forecast of the release from own columns, made for each row from the others.

Error. Whoever has own columns and b bits on average about a row is left with a squared error of at least D(b), the
distortion-rate function (Shannon 1959) of what own columns leave of the column. That remainder is taken to be spread alike in
all rows: the residuals of the best learner without messages. For every slope s and any weights q,
    D(b) >= (E log l - log c - b log 2) / s,   l(x) = 1 / sum_y q(y) e^{-s (x - y)^2},   c = max_y E l(x) e^{-s (x - y)^2}
and Blahut's iterations choose q.

Equations. The scores of a logistic regression with c classes are c - 1 linear equations for the d unknown columns of a row.
"""

from __future__ import annotations

import numpy as np

from plumbob.attacks.row_messages import WIDE, reduced
from plumbob.federation import FloatArray, IntArray
from plumbob.scoring._leave_one_out import Ridge
from plumbob.threats import View

MOST_FORECAST = 64  # distinct releases up to which they are forecast from own columns
MIXED = 0.1  # weight of the plain frequencies in a forecast
POINTS = 60  # groups of neighbours whose means stand for the residuals
STEPS = 30  # of Blahut's iterations
SLOPES = np.geomspace(0.25, 256.0, 12)
EXACT_UNDER = ("dp_sgd", "dropout", "hide_model", "verification")  # defences that leave released scores as they are


def bits_of(cells: IntArray, own: FloatArray) -> float:
    """An upper bound of the bits that a row's release carries beyond own columns.

    >>> round(bits_of(np.arange(1_000) % 2, np.zeros((1_000, 0))), 2)
    1.0
    """
    count = len(cells)
    number = np.bincount(cells)
    shares = number[number > 0] / count
    entropy = -float((shares * np.log(shares)).sum()) + (len(shares) - 1) / (2 * count)
    table = reduced(own, WIDE)
    if table.shape[1] and 1 < len(number) <= MOST_FORECAST:
        members = np.eye(len(number))[cells]
        others = (number - members) / (count - 1)  # frequencies among the other rows
        forecasts = np.maximum(0.0, Ridge("", table).predictions(members))
        forecasts = forecasts / np.maximum(1e-12, forecasts.sum(axis=2, keepdims=True))
        mixed = (1 - MIXED) * forecasts + MIXED * np.maximum(others, 1 / count)
        losses = -np.log(mixed[:, np.arange(count), cells]).mean(axis=1)
        entropy = min(entropy, float(losses.min()))
    return float(max(0.0, entropy / np.log(2)))


def least_error(residuals: FloatArray, bits: float) -> float:
    """The mean squared error that anybody with so many bits about each residual is left with.

    >>> [round(least_error(np.array([-1.0, 1.0] * 50), bits), 1) for bits in (0.0, 1.0)]
    [1.0, 0.0]
    """
    parts = np.array_split(np.sort(residuals), min(POINTS, len(residuals)))
    points = np.array([part.mean() for part in parts])
    variance = float(points.var())
    if variance <= 1e-15:
        return 0.0
    guesses = np.linspace(points[0], points[-1], 2 * POINTS)
    distance = (points[:, None] - guesses) ** 2 / variance
    decay = np.exp(-SLOPES[:, None, None] * distance)  # slopes x points x guesses
    weights = np.full((len(SLOPES), len(guesses), 1), 1 / len(guesses))
    for _ in range(STEPS):
        inverse = 1 / (decay @ weights)
        likely = decay.transpose(0, 2, 1) @ inverse / len(points)
        slack = np.log(likely.max(axis=(1, 2)))
        bound = (np.log(inverse).mean(axis=(1, 2)) - slack - bits * np.log(2)) / SLOPES
        weights = weights * likely
    return max(0.0, float(bound.max())) * variance


def open_dimensions(view: View) -> int | None:
    """The dimensions of a row that exact scores leave open; None where scores are no exact linear equations."""
    exact = view.protocol == "logistic_regression" and set(view.defence.names) <= set(EXACT_UNDER)
    if not exact or not any(message.name == "scores" for message in view.messages):
        return None
    unknown, equations = len(view.unknown), len(view.classes) - 1
    if view.model is not None and "weights" in view.model:
        weights = np.asarray(view.model["weights"], dtype=np.float64)[view.unknown]
        equations = int(np.linalg.matrix_rank(weights - weights.mean(axis=1, keepdims=True), rtol=1e-9))
    return max(0, unknown - equations)
