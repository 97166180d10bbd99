"""Split networks: parties send outputs of their cut layer."""
