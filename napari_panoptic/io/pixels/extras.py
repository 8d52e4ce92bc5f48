"""Packages that only extras of this package install, imported when a file needs them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from napari_panoptic.common.errors import MissingPackageError
from napari_panoptic.io.pixels.decode import without_warnings


def import_extra(package: str, extra: str, path: Path, alternative: str) -> Any:
    """Import a package that an extra installs.

    Parameters
    ----------
    package, extra
        Names of the package and of the extra.
    path
        The file that needs it.
    alternative
        What the user can do instead of installing it.

    Raises
    ------
    MissingPackageError
        If the package cannot be imported.
    """
    try:
        with without_warnings():
            return importlib.import_module(package)
    except ImportError as error:
        raise MissingPackageError(
            f"reading this file needs the Python package {package} ({error}); run "
            f'pip install "napari-panoptic[{extra}]", or {alternative}',
            path=path,
        ) from None
