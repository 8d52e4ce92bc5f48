#!/bin/sh
# Formatting, lint, types, import rules, tests; fails where one of them does.
# Expects the environment that setup.sh makes.
set -eu
cd "$(dirname "$0")/.."
. scripts/display.sh

step() {
    title=$1
    shift
    printf '\n== %s\n' "$title"
    "$@"
}

# Two halves that take about as long, side by side, each with a display of its own where there is
# none: all checks and the tests without a window, with those of layers and panels;
# and the other windows.
without_windows() {
    step "formatting" .venv/bin/ruff format --check .
    step "lint" .venv/bin/ruff check .
    step "types" .venv/bin/mypy
    step "import rules" .venv/bin/lint-imports
    step "tests" with_display .venv/bin/python -m pytest --ignore=tests/viewer
    step "tests of layers and panels" with_display .venv/bin/python -m pytest \
        tests/viewer/layers tests/viewer/panels
}

log=$(mktemp "${TMPDIR:-/tmp}/napari-panoptic-tests.XXXXXX")
without_windows >"$log" 2>&1 &
others=$!
# What all tests need, while the other half has checks to do; else each half would compile all of it.
status=0
step "kernels" .venv/bin/python -m napari_panoptic.viewer.warm || status=$?
step "tests of windows" with_display .venv/bin/python -m pytest tests/viewer \
    --ignore=tests/viewer/layers --ignore=tests/viewer/panels || status=$?
wait "$others" || status=$?
cat "$log"
rm -f "$log"
[ "$status" -eq 0 ] || exit "$status"
printf '\nAll checks passed.\n'
