"""Records of what was written."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest

from napari_panoptic.report import writing


def test_versions_that_cannot_be_found_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """With OpenSlide from conda, `evaluate` ended with a traceback after all its work."""

    def of_conda(name: str) -> str:
        if name == "openslide-bin":
            raise PackageNotFoundError(name)
        return version(name)

    before = writing.versions()
    monkeypatch.setattr(writing, "version", of_conda)
    assert writing.versions() == {k: v for k, v in before.items() if k != "openslide-bin"}
    assert "openslide-bin" in before
