"""The exceptions of Headrace: a small tree under `Error`, each also the built-in exception a user would catch there."""

import builtins
import sys


class Error(Exception):
    """Base of all. `retryable` says whether the same call may succeed later."""

    retryable = False


class InvalidError(Error, ValueError):
    """An argument that makes no sense."""


class InvalidTypeError(InvalidError, TypeError):
    """An argument of a type that makes no sense."""


class OutOfRangeError(InvalidError, IndexError):
    """An index outside its dimension."""


class NotFoundError(Error, KeyError):
    """No such archive, array, dimension or label."""

    __str__ = Exception.__str__  # KeyError would show the message quoted


class FormatError(Error, ValueError):
    """Metadata that breaks its format."""


class UnsupportedError(Error, ValueError):
    """A codec, data type, chunk grid or URL that is not read."""


class StoreError(Error, OSError):
    """The store failed or refused."""


class DataError(Error, ValueError):
    """A chunk of wrong size or checksum."""


class BudgetError(Error, MemoryError, ValueError):
    """The memory budget is too small; the message has the numbers and the ways out."""


class StateError(Error, ValueError):
    """A state that does not fit the loader, or a call in the wrong order."""


class ForkError(Error, RuntimeError):
    """The object belongs to the parent process: open a new one in the child."""


class ClosedError(Error, RuntimeError):
    """The loader is closed."""


class TimeoutError(Error, builtins.TimeoutError):
    """No batch within the time given."""


_BY_CODE = {
    -1: MemoryError,
    -2: InvalidError,
    -3: NotFoundError,
    -4: FormatError,
    -5: UnsupportedError,
    -6: StoreError,
    -7: DataError,
    -8: BudgetError,
    -9: StateError,
    -10: ForkError,
    -11: ClosedError,
    -12: TimeoutError,
    -13: KeyboardInterrupt,
    1: InvalidTypeError,  # of the extension alone
}


def make(code: int, text: str, retryable: int) -> BaseException:
    """The exception for a code of headrace.h."""
    error = _BY_CODE.get(code, Error)(text)
    if retryable and isinstance(error, Error):
        error.retryable = True
    stores = sys.modules.get("headrace._store")
    if stores is not None:
        stores.explain(error)
    return error
