#!/bin/sh
# pytest with two workers, each with a display of its own where there is none; what is given goes
# to pytest. A worker takes the next file of tests when it has done its own.
set -eu
cd "$(dirname "$0")/.."
. scripts/display.sh

# These plugins only: pytest would compile all of napari, zarr and others again in each worker,
# because they bring plugins too. And compiled modules are kept, also for programs that tests start.
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
unset PYTHONDONTWRITEBYTECODE
plugins="-p xdist -p pytestqt.plugin -p napari.utils._testsupport -p _hypothesis_pytestplugin"

if [ -n "${OTHER_DISPLAY:-}" ]; then
    other=popen//env:DISPLAY=$OTHER_DISPLAY//env:XAUTHORITY=$OTHER_XAUTHORITY
elif has_display; then
    other=popen
else
    # Starts this script again, inside a display that the other worker gets, with one of its own.
    with_virtual_display sh -c '
        . scripts/display.sh
        export OTHER_DISPLAY="$DISPLAY" OTHER_XAUTHORITY="$XAUTHORITY"
        with_virtual_display "$@"' sh sh scripts/pytest.sh "$@"
    exit
fi
# Split into words on purpose: several options.
# shellcheck disable=SC2086
exec .venv/bin/python -m pytest $plugins --dist loadfile --no-loadscope-reorder \
    --tx "$other" --tx popen "$@"
