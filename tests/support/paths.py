"""Where the tests find their data."""

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED_CASES = REPOSITORY.parent / "shared" / "cases"

needs_shared_cases = pytest.mark.skipif(
    not SHARED_CASES.is_dir(),
    reason=f"the shared cases are not beside this repository ({SHARED_CASES.name}/ not found)",
)
