#!/bin/sh
# Formatting, lint, types, import rules, tests; fails where one of them does.
# Expects the environment that setup.sh makes.
set -eu
cd "$(dirname "$0")/.."

step() {
    title=$1
    shift
    printf '\n== %s\n' "$title"
    "$@"
}

checks() {
    step "formatting" .venv/bin/ruff format --check .
    step "lint" .venv/bin/ruff check .
    step "lint of the kernels" .venv/bin/cython-lint --no-pycodestyle napari_panoptic/kernels
    step "types" .venv/bin/mypy
    step "import rules" .venv/bin/lint-imports
}

# Beside the tests, which wait for a fifth of their time.
log=$(mktemp "${TMPDIR:-/tmp}/napari-panoptic-checks.XXXXXX")
checks >"$log" 2>&1 &
checks=$!
status=0
step "tests" sh scripts/pytest.sh -m "not long" || status=$?
wait "$checks" || status=$?
cat "$log"
rm -f "$log"
[ "$status" -eq 0 ] || exit "$status"
printf '\nAll checks passed.\n'
