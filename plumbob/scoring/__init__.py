"""Scoring: the only place where a guess is compared with the truth."""
