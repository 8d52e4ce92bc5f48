#!/bin/sh
# Open the viewer on the sample cohort; without a display, on a virtual one,
# and keep a picture of it. Expects the environment that setup.sh makes.
set -eu
cd "$(dirname "$0")/.."
. scripts/display.sh

cohort=./sample-cohort
if [ -d "$cohort" ]; then
    echo "The sample cohort is in $cohort (make clean removes it)."
else
    echo "The sample cohort will be written to $cohort."
fi

if has_display; then
    echo "Opening the viewer ..."
    with_display .venv/bin/napari-panoptic demo --cohort "$cohort"
else
    echo "There is no display: opening the viewer on a virtual one ..."
    rm -f demo.png
    with_display .venv/bin/napari-panoptic demo --cohort "$cohort" --screenshot demo.png
    [ -s demo.png ] || { echo "The viewer closed without a picture." >&2; exit 1; }
    echo "A picture of the window is in $(pwd)/demo.png"
fi
