"""Log lines of the library go to the logger "headrace"."""

import logging

_logger = logging.getLogger("headrace")


def emit(level: int, text: str) -> None:
    _logger.log(level, "%s", text)
