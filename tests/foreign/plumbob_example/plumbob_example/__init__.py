"""What another package adds to Plumbob. The entry points are in pyproject.toml."""
