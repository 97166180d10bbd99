"""What we claim ourselves, checked like any paper's claim."""

from plumbob.papers.ours import (
    averaged_noise,
    ceilings,
    levels,
    private_answers,
    rounds_alone,
    safe_sums,
    scores,
    trees,
    unseen,
)

# Each has CLAIMS; those of one file share models and views.
PARTS = (scores, unseen, levels, ceilings, trees, private_answers, safe_sums, averaged_noise, rounds_alone)
__all__ = ["PARTS"]
