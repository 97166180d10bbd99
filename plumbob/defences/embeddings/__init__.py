"""Defences of split networks: what parties change in the outputs of their cut layer."""
