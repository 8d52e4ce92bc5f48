#!/bin/sh
# All tests, also those marked as long: of kernels, readers and nuclei with kernels that check
# every index, the others with the ordinary ones. Expects what `setup.sh test` makes.
set -eu
cd "$(dirname "$0")/.."
sh scripts/checked.sh
status=0
sh scripts/pytest.sh -p tests.support.checked_kernels tests/kernels tests/io tests/nuclei ||
    status=$?
sh scripts/pytest.sh --ignore=tests/kernels --ignore=tests/io --ignore=tests/nuclei || status=$?
exit "$status"
