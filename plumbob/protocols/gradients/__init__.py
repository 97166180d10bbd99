"""Split training: workers send gradients up to a server."""
