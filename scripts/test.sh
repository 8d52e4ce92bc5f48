#!/bin/sh
# Formatting, lint, types, import rules, tests; stops at the first that fails.
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

# Two halves that take about as long, the tests of the window in one of them, side by
# side, each on a display of its own where there is none. Shows both; fails where either does.
run_tests() {
    log=$(mktemp "${TMPDIR:-/tmp}/napari-panoptic-tests.XXXXXX")
    with_display .venv/bin/python -m pytest --ignore=tests/viewer >"$log" 2>&1 &
    others=$!
    status=0
    with_display .venv/bin/python -m pytest tests/viewer || status=$?
    wait "$others" || status=$?
    cat "$log"
    rm -f "$log"
    return "$status"
}

step "formatting" .venv/bin/ruff format --check .
step "lint" .venv/bin/ruff check .
step "types" .venv/bin/mypy
step "import rules" .venv/bin/lint-imports
step "tests" run_tests
printf '\nAll checks passed.\n'
