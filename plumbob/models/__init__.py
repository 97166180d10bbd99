"""Models that exist already: files of other libraries, read into Plumbob's plain arrays without running their code."""

from plumbob.models.files import digest_of, read_model
from plumbob.models.own import OwnModel, fitted

__all__ = ["OwnModel", "digest_of", "fitted", "read_model"]
