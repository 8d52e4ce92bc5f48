#!/bin/sh
# pytest with three workers, each with a display of its own where there is none; what is given
# goes to pytest. A worker takes the next file of tests when it has done its own. Three on two
# cores, because tests of windows and of other processes wait for a fifth of their time.
set -eu
cd "$(dirname "$0")/.."
. scripts/display.sh

# These plugins only: pytest would compile all of napari, zarr and others again in each worker,
# because they bring plugins too. And compiled modules are kept, also for programs that tests start.
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
unset PYTHONDONTWRITEBYTECODE
# Mesa draws on as many threads as there are processors, which the workers keep busy already.
export LP_NUM_THREADS="${LP_NUM_THREADS:-0}"
plugins="-p xdist -p pytestqt.plugin -p napari.utils._testsupport -p _hypothesis_pytestplugin"

# Once, in a fresh checkout: each worker would compile these tests for itself.
if [ ! -d tests/__pycache__ ]; then
    # Split into words on purpose: several options.
    # shellcheck disable=SC2086
    .venv/bin/python -m pytest $plugins --collect-only --quiet "$@" >/dev/null 2>&1 || true
fi

# Without a display, this script starts itself again inside a virtual one, once for each worker.
displays=${DISPLAYS_MADE:-0}
if [ "$displays" -eq 0 ] && has_display; then
    workers="--tx 3*popen"
else
    workers=${WORKERS:-}
    if [ "$displays" -gt 0 ]; then
        workers="$workers --tx popen//env:DISPLAY=$DISPLAY//env:XAUTHORITY=$XAUTHORITY"
    fi
    if [ "$displays" -lt 3 ]; then
        export WORKERS="$workers" DISPLAYS_MADE=$((displays + 1))
        with_virtual_display sh scripts/pytest.sh "$@"
        exit
    fi
fi
# Split into words on purpose: several options.
# shellcheck disable=SC2086
exec .venv/bin/python -m pytest $plugins --dist loadfile --no-loadscope-reorder $workers "$@"
