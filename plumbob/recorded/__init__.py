"""Runs made outside Plumbob: recorded by a tap around the user's own training loop, or read from plain files."""
