#!/bin/sh
# Compile the kernels with a check of every index, into build/checked: the ordinary ones stay as
# they are. `tests/support/checked_kernels.py` takes them. Expects what `setup.sh test` makes.
set -eu
cd "$(dirname "$0")/.."
echo "Compiling kernels that check every index ..."
NAPARI_PANOPTIC_CHECKED=1 .venv/bin/python -W ignore setup.py --quiet build_ext \
    --cython-c-in-temp --build-lib build/checked --build-temp build/checked/temp
