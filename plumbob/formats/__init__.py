"""Existing models: files of other libraries, read into plain arrays without running their code."""

from plumbob.formats.model_files import digest_of, read_model
from plumbob.formats.own_model import OwnModel, fitted

__all__ = ["OwnModel", "digest_of", "fitted", "read_model"]
