"""One way to compile the numerical kernels."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a kernel with numba, cached on disk and without the GIL.

    Kernels release the GIL so that a worker thread never holds up the
    interface.
    """
    return cast("F", numba.njit(cache=True, nogil=True)(function))
