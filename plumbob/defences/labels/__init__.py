"""Defences of labels in split networks: what the active party changes in what it trains on and in the gradients it sends."""
