#!/bin/sh
# Every session of noxfile.py; what is given goes to nox. Expects what `setup.sh tools` makes.
set -eu
cd "$(dirname "$0")/.."
. scripts/display.sh
PATH=$(pwd)/.venv-tools/bin:$PATH with_display .venv-tools/bin/nox -f scripts/noxfile.py "$@"
