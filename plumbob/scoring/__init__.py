"""Where guess meets truth, and nowhere else."""
