"""What we claim ourselves, checked like any paper's claim."""

from plumbob.papers.ours import ceilings, levels, private_answers, scores, trees, unseen

PARTS = (
    scores,
    unseen,
    levels,
    ceilings,
    trees,
    private_answers,
)  # each has CLAIMS; those of one file share models and views
__all__ = ["PARTS"]
