"""The log file of chats, because a log on standard error would overwrite the footer."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler

from pegboard_plugins.chat.outside import private_file

NAME = "chat.log"
LIMIT_BYTES = 1_000_000
"""The most bytes of the log file; the file before it is left."""


@contextmanager
def logging_to_file(env: Mapping[str, str]) -> Iterator[None]:
    """Log to a file in the user's state folder within the context; log nothing if this fails."""
    file = private_file(env, NAME)
    handler = (
        logging.NullHandler()
        if file is None
        else RotatingFileHandler(file, maxBytes=LIMIT_BYTES, backupCount=1, encoding="utf-8")
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
