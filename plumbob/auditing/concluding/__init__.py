"""From findings to verdicts: summaries by column, the frontier of defences, and what is inconclusive or was not tried."""
