"""What cannot be used of the data that somebody has named."""

from minitransformer.core.errors import InputError


class CorpusError(InputError):
    """A corpus cannot be used; says what is wrong with it, where, and what to do."""


class PictureError(InputError):
    """A file cannot be used as a picture; says which, what is wrong with it, and what to do."""
