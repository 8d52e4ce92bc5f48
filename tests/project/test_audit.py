from __future__ import annotations

import importlib.util
import subprocess
from types import ModuleType

import pytest

from tests.support.paths import REPOSITORY


@pytest.fixture(scope="module")
def audit() -> ModuleType:
    spec = importlib.util.spec_from_file_location("audit", REPOSITORY / "scripts" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CLEAN = '{"name": "a", "version": "1", "vulns": []}'
WEAK = '{"name": "b", "version": "2", "vulns": [{"id": "X-1", "fix_versions": ["3"]}]}'
UNKNOWN = '{"name": "c", "skip_reason": "Dependency not found on PyPI"}'
OWN = '{"name": "napari-panoptic", "skip_reason": "Dependency not found on PyPI"}'


@pytest.mark.parametrize(
    ("found", "status", "said"),
    [
        (f"[{CLEAN}, {OWN}]", 0, "0 of 1"),
        (f"[{CLEAN}, {WEAK}, {UNKNOWN}]", 1, "b 2: X-1, mended in 3"),
        (f"[{UNKNOWN}, {OWN}]", 3, "NOTHING was checked"),
        (None, 3, "NOTHING was checked"),
    ],
)
def test_what_was_not_looked_up_is_no_success(
    audit: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    found: str | None,
    status: int,
    said: str,
) -> None:
    output = "" if found is None else f'{{"dependencies": {found}, "fixes": []}}'
    done = subprocess.CompletedProcess([], 0, output, "no network")
    monkeypatch.setattr(audit.subprocess, "run", lambda *_, **__: done)
    assert audit.main() == status
    printed = capsys.readouterr()
    assert said in printed.out + printed.err
