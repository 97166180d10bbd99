"""Thin layers over real cryptographic libraries."""
