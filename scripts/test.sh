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

step "formatting" .venv/bin/ruff format --check .
step "lint" .venv/bin/ruff check .
step "types" .venv/bin/mypy
step "import rules" .venv/bin/lint-imports
step "tests" with_display .venv/bin/python -m pytest
printf '\nAll checks passed.\n'
