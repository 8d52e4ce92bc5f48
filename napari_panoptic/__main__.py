"""The command, from its first moment: Ctrl-C ends it in one line even while it is imported."""

import sys


def main() -> int:
    """Run the command line; gives its exit status."""
    try:
        # Importing takes seconds, in which the user may press Ctrl-C.
        from napari_panoptic.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("napari-panoptic: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
