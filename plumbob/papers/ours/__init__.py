"""What we claim ourselves, checked like any paper's claim."""

from plumbob.papers.ours import (
    averaged_noise,
    ceilings,
    deviating,
    fake_candidates,
    first_checks,
    floor,
    guarded_sums,
    labels_at_the_cut,
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
<<<<<<< HEAD
    quick_audit,
    floor,
=======
    labels_at_the_cut,
>>>>>>> 4cd6e9b (Claims on labels at the cut: P26, P27, li2022 and fu2022)
)
__all__ = ["PARTS"]
