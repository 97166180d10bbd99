"""The page, the terminal tables and the plots."""
