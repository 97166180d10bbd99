"""Defences that change the sums of encrypted boosting."""
