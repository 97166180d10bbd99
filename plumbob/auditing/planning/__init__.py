"""What to audit: the plan and its file, its gate, the sweep, what applies to what, and whether the plan fits its data."""
