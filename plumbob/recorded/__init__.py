"""Runs that Plumbob did not make: recorded by a tap around somebody's own loop, or read from plain files."""
