"""The documentation of each version is published beside the others."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import REPOSITORY

SH, GIT = shutil.which("sh"), shutil.which("git")
pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or not (SH and GIT), reason="needs a shell and git"
)


def test_versions_stand_beside_each_other(tmp_path: Path) -> None:
    script = tmp_path / "checkout" / "scripts" / "publish_docs.sh"
    script.parent.mkdir(parents=True)
    shutil.copy(REPOSITORY / "scripts" / script.name, script)
    site, remote = tmp_path / "checkout" / "site", tmp_path / "remote.git"
    site.mkdir()
    subprocess.run([GIT, "init", "--quiet", "--bare", remote], check=True)
    # A correction of an older version comes after the newest one.
    for version in ("0.9.0", "0.10.0", "0.9.1", "0.9.1", "0.11.0rc1"):
        (site / "index.html").write_text(version, encoding="utf-8")
        subprocess.run([SH, script, remote, version], check=True, capture_output=True)
    pages = tmp_path / "pages"
    clone = (GIT, "clone", "--quiet", "--branch", "gh-pages", str(remote), str(pages))
    subprocess.run(clone, check=True)
    found = {path.parent.name: path.read_text("utf-8") for path in pages.glob("*/index.html")}
    versions = ("0.9.0", "0.9.1", "0.10.0", "0.11.0rc1")
    assert found == {**{name: name for name in versions}, "latest": "0.10.0"}
    assert "url=latest/" in (pages / "index.html").read_text("utf-8")
    assert (pages / ".nojekyll").is_file()
