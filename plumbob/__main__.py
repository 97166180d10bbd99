"""`python -m plumbob`."""

from plumbob.cli import main

main()
