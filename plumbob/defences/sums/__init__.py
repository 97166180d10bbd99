"""Defences of encrypted training: whether an active party hides something in its gradients."""
