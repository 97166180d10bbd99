"""What we claim ourselves, checked like any paper's claim."""

from plumbob.papers.ours import (
    averaged_noise,
    ceilings,
    deviating,
    fake_candidates,
    first_checks,
    floor,
    guarded_sums,
    levels,
    membership,
    private_answers,
    quick_audit,
    redrawn_batches,
    rounds_alone,
    safe_sums,
    scores,
    trained_models,
    trees,
    unseen,
    whole_numbers,
    without_coordinator,
)

# Each has CLAIMS; those of one file share models and views.
PARTS = (
    scores,
    unseen,
    levels,
    ceilings,
    trees,
    private_answers,
    safe_sums,
    without_coordinator,
    redrawn_batches,
    guarded_sums,
    averaged_noise,
    rounds_alone,
    trained_models,
    fake_candidates,
    first_checks,
    deviating,
    membership,
    whole_numbers,
    quick_audit,
    floor,
)
__all__ = ["PARTS"]
