"""Equations of networks from scores that a known defence has changed: each becomes its mean given the release.

As for linear models (`_defended_equations.py`): a row's logits are l = g(x_own, x), and with x ~ N(m_i, S) about
    l_i ~ N(g(x_own, m_i), J S J'),   J the network's slope at m_i, J S J' averaged over rows
The mean of l_i given the release is drawn from this and from what the release says of scores.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plumbob.attacks.scores._boxed_gauss_newton import NonlinearEquations, chunks
from plumbob.attacks.scores._defended_equations import expected, known_nearly, read
from plumbob.federation import FloatArray
from plumbob.threats import View


def expected_answers(
    view: View,
    system: NonlinearEquations,
    answers: FloatArray,
    told: NDArray[np.intp],
    centres: FloatArray,
    covariance: FloatArray,
    between: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Differences of neighbouring logits given the release; as they are where no known defence changed the scores.

    `between` is the covariance of what is not known of the centres' own mean.
    """
    scores = np.asarray(view.received("scores"), dtype=np.float64)[told]
    release = read(scores, view.defence)
    if release is None or not len(told):
        return answers
    own, classes = view.own[told], scores.shape[1]
    to_logits = np.tril(np.ones((classes, classes - 1)), -1) * -1.0  # of differences l_k - l_{k+1}
    known = system.differences(own, centres[told]) @ to_logits.T
    spread, doubt = np.zeros((classes, classes)), np.zeros((classes, classes))
    for rows in chunks(np.arange(len(told))):
        slopes = np.einsum("ck,nkd->ncd", to_logits, system.tangents(own[rows], centres[told][rows]))
        spread += np.einsum("ncd,de,nfe->cf", slopes, covariance, slopes, optimize=True)
        mean = slopes.sum(axis=0)
        doubt += mean @ between @ mean.T / len(rows)
    spread, doubt = spread / len(told), doubt / len(told)
    sums = expected(release, known, np.zeros_like(known), spread, doubt, rng)
    changed = answers.copy()
    changed[told] = -np.diff(known + sums, axis=1)
    narrow = known_nearly(scores, view.defence)
    changed[told[narrow]] = -np.diff(np.log(release.start[narrow]), axis=1)
    return changed
