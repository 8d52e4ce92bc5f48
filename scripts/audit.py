"""Ask whether any of the installed packages has a known weakness; needs pip-audit and a network.

pip-audit says "no known vulnerabilities" also where the service knew nothing of any
package, as behind a mirror that has files only. This says what was really looked up.
Exit status: 0 none is known, 1 some are, 3 nothing could be looked up.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

OWN = "napari-panoptic"
COMMAND = ("-m", "pip_audit", "--local", "--progress-spinner=off", "--format=json")
UNREACHED = 3


def main() -> int:
    """Run pip-audit, and say what came of it."""
    done = subprocess.run([sys.executable, *COMMAND], capture_output=True, text=True, check=False)
    try:
        dependencies = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        print(done.stderr.strip()[-2000:], file=sys.stderr)
        print("audit: the service could not be reached; NOTHING was checked", file=sys.stderr)
        return UNREACHED
    return report(dependencies)


def report(dependencies: list[dict[str, Any]]) -> int:
    """Print weaknesses and what was not looked up; give the exit status."""
    others = [each for each in dependencies if each["name"] != OWN]
    looked_up = [each for each in others if "skip_reason" not in each]
    weak = [each for each in looked_up if each["vulns"]]
    for each in weak:
        for known in each["vulns"]:
            mended = ", ".join(known["fix_versions"]) or "no version"
            print(f"{each['name']} {each['version']}: {known['id']}, mended in {mended}")
    for each in others:
        if "skip_reason" in each:
            print(f"not looked up: {each['name']} ({each['skip_reason']})", file=sys.stderr)
    if not looked_up:
        print("audit: the service knew none of the packages; NOTHING was checked", file=sys.stderr)
        return UNREACHED
    print(f"audit: {len(weak)} of {len(looked_up)} packages have known weaknesses")
    return 1 if weak else 0


if __name__ == "__main__":
    sys.exit(main())
