"""What we claim ourselves, checked like any paper's claim."""

from plumbob.papers.ours import ceilings, deviating, levels, private_answers, safe_sums, scores, trees, unseen

# Each has CLAIMS; those of one file share models and views.
PARTS = (scores, unseen, levels, ceilings, trees, private_answers, safe_sums, deviating)
__all__ = ["PARTS"]
