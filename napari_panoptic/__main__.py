"""The command, from its first moment: Ctrl-C ends it in one line even while it is imported."""

import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

STOPPED = 130
"""Exit status after Ctrl-C."""


def main() -> int:
    """Run the command line; gives its exit status."""
    try:
        # Importing takes seconds, in which the user may press Ctrl-C.
        from napari_panoptic.cli.main import main as run

        status = run()
        if status == STOPPED:
            _leave()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("napari-panoptic: stopped", file=sys.stderr)
        _leave()
    return status


def _leave() -> NoReturn:
    """End the process at once.

    A second Ctrl-C ends the interpreter's waiting for its threads, and a thread that is in native
    code while the interpreter is torn down brings the process down.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # its reader has ended, or there is no console
            stream.flush()
    os._exit(STOPPED)


if __name__ == "__main__":
    sys.exit(main())
