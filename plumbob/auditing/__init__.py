"""Plan, run, judge."""
