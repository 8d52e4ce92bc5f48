"""The command, from its first moment: Ctrl-C ends it in one line even while it is imported."""

import gc
import sys


def main() -> int:
    """Run the command line; gives its exit status."""
    try:
        gc.disable()  # what is imported is no garbage: looking through it takes a tenth of a second
        try:
            # Takes seconds, in which somebody may think better of it.
            from napari_panoptic.cli import main as run
        finally:
            gc.freeze()
            gc.enable()
        return run()
    except KeyboardInterrupt:
        print("napari-panoptic: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
