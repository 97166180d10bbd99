"""Defences of split training: what workers change in the gradients they send up."""
