#!/bin/sh
# Make an environment. Does nothing where all is there already.
#
#   setup.sh         for `make demo`: .venv with the package and its test tools, and the
#                    system libraries that Qt and OpenGL need
#   setup.sh test    for `make test`: the same, and a browser to open reports in
#   setup.sh tools   for `make docs` and `make test-all`: .venv-tools with nox, which makes the rest,
#                    and the system libraries
#   setup.sh bench   for `make bench`: .venv-bench with the package and its peers, and two
#                    more environments for peers that cannot be installed beside them
#
# PYTHON=/path/to/python chooses the interpreter (3.11 or newer).
set -eu
cd "$(dirname "$0")/.."

# venv: where it goes. made_from: the files that say what belongs in it.
purpose=${1:-work}
case $purpose in
    work | test) venv=.venv made_from=pyproject.toml ;;
    tools) venv=.venv-tools made_from=scripts/noxfile.py ;;
    bench) venv=.venv-bench made_from="pyproject.toml benchmarks/requirements.txt" ;;
    bench-panoptica | bench-torch)
        venv=.venv-$purpose made_from=benchmarks/requirements-${purpose#bench-}.txt ;;
    *) echo "unknown environment '$1': give none, test, tools or bench" >&2; exit 2 ;;
esac
# The environment remembers what it was made from. Scripts in it hold its
# absolute path, so that one that was moved or copied is of no use.
place_file=$venv/napari-panoptic-place
state_file=$venv/napari-panoptic-state

say() { printf '%s\n' "$*"; }
stop() { printf '\n%s\n' "$*" >&2; exit 1; }

# Run a command without its chatter; show all of it when it fails.
quietly() {
    log=$(mktemp "${TMPDIR:-/tmp}/napari-panoptic-setup.XXXXXX")
    if "$@" >"$log" 2>&1; then
        rm -f "$log"
    else
        cat "$log" >&2
        rm -f "$log"
        return 1
    fi
}

# --- System packages -------------------------------------------------------

# Run a command as root; `may_be_root` tells whether that works without a
# password.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

may_be_root() {
    [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; }
}

# Install the Debian packages named, or say how to and stop.
install_packages() {
    if ! command -v apt-get >/dev/null 2>&1; then
        stop "Something is missing that this script can install on Debian and Ubuntu only. Please
install what these Debian packages hold with the package manager of your system,
then run the same command again:
    $*"
    fi
    if ! may_be_root; then
        stop "System packages are missing and need an administrator. Please run this one command,
then the same make command again:
    sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends $*'"
    fi
    say "Installing system packages: $*"
    quietly as_root apt-get -o DPkg::Lock::Timeout=300 update ||
        say "The package lists could not be updated; going on with those there are."
    quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
        install -y --no-install-recommends "$@" ||
        stop "The system packages could not be installed; the reason is above."
}

# --- The interpreter -------------------------------------------------------

is_suitable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3 python}; do
        if is_suitable "$candidate"; then
            command -v "$candidate"
            return
        fi
    done
    stop "Python 3.11 or newer was not found. Please install it (Debian and Ubuntu:
apt-get install python3 python3-venv; macOS: python.org or brew install python@3.11),
or name one: PYTHON=/path/to/python3.11 make demo"
}

is_usable() {
    is_suitable "$venv/bin/python" && [ "$(cat "$place_file" 2>/dev/null)" = "$(pwd)" ]
}

make_venv() {
    say "Making the environment $venv with $("$python" --version 2>&1) ..."
    quietly "$python" -m venv --clear "$venv" ||
        stop "The environment could not be made; the reason is above."
    # Last, so that a half-made environment is made anew.
    pwd >"$place_file"
}

# --- What the system has to have -------------------------------------------

# Prints the package with which Debian and Ubuntu complete Python, where it is
# needed to make the environment.
missing_venv() {
    is_usable || "$python" - <<'PYTHON'
import sys

try:
    import ensurepip, venv
except ImportError:
    print("python%d.%d-venv" % sys.version_info[:2])
PYTHON
}

# Prints the Debian packages whose library the loader does not find.
missing_libraries() {
    "$python" - <<'PYTHON'
import ctypes

PACKAGES = {
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libfontconfig.so.1": "libfontconfig1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-shape.so.0": "libxcb-shape0",
}
for library, package in PACKAGES.items():
    try:
        ctypes.CDLL(library)
    except OSError:
        print(package)
PYTHON
}

# Prints the Debian packages of the C compiler that Python chooses, and of what it needs to
# compile the kernels.
missing_compiler() {
    "$python" - <<'PYTHON'
import os, subprocess, sys, sysconfig

compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
preprocess = [*compiler.split(), "-E", "-"]
try:
    subprocess.run(preprocess, input=b"#include <stdio.h>", check=True, capture_output=True)
except (OSError, subprocess.CalledProcessError):
    print("gcc libc6-dev")
if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
    print("python%d.%d-dev" % sys.version_info[:2])
PYTHON
}

# Prints the Debian packages of the programs that make a virtual display.
missing_virtual_display() {
    if [ -z "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then
        command -v xvfb-run >/dev/null 2>&1 || say xvfb
        command -v xauth >/dev/null 2>&1 || say xauth
    fi
}

# Prints the Debian package of the browser in which tests open the report. Where it
# cannot be had they are skipped: Ubuntu has it as a snap only, which containers lack.
missing_browser() {
    [ "$purpose" = test ] && grep -qs '^ID=debian' /etc/os-release && may_be_root || return 0
    command -v chromium >/dev/null 2>&1 || say chromium
}

# All at once, so that whoever has to ask an administrator asks once.
install_system_packages() {
    [ "$(uname -s)" = Linux ] || return 0
    missing="$(missing_venv) $(! needs_kernels || missing_compiler)"
    case $venv in
        # Of the tools too: tests run in their environments, and `make docs` lists the window's keys.
        .venv | .venv-tools)
            missing="$missing $(missing_libraries) $(missing_virtual_display) $(missing_browser)" ;;
    esac
    # Split into words on purpose: package names have no spaces.
    # shellcheck disable=SC2086
    set -- $missing
    [ $# -eq 0 ] || install_packages "$@"
}

# --- The package and its tools ---------------------------------------------

# Whether the environment has the package, and so its kernels.
needs_kernels() {
    case $venv in .venv | .venv-bench) true ;; *) false ;; esac
}

# Compile what has changed of the kernels since the package was installed.
build_kernels() {
    quietly "$venv/bin/python" -W ignore setup.py --quiet build_ext --inplace
}

state() {
    # Split into words on purpose: several files.
    # shellcheck disable=SC2086
    cat $made_from | cksum
}

is_up_to_date() {
    [ "$(cat "$state_file" 2>/dev/null)" = "$(state)" ]
}

pip_install() {
    # Modules are compiled when they are imported first: of most, that is never.
    quietly "$venv/bin/python" -m pip install --quiet --no-compile \
        --disable-pip-version-check "$@"
}

# The same by uv, which takes half the time; by pip where uv cannot be had or does not succeed.
fast_install() {
    { pip_install uv && "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" "$@"; } \
        >/dev/null 2>&1 || pip_install "$@"
}

install_package() {
    # --group needs pip 25.1.
    pip_install --upgrade "pip>=25.1" ||
        stop "pip could not be updated; the reason is above. Is there a network connection?"
    case $purpose in
        work | test)
            say "Installing napari-panoptic and its test tools (a few minutes the first time) ..."
            fast_install --editable ".[pyqt6]" --group test ;;
        bench)
            say "Installing napari-panoptic and its peers (a few minutes the first time) ..."
            pip_install --editable . "cython>=3.1" "setuptools>=77" ;;
        tools)
            say "Installing nox ..."
            pip_install nox uv ;;
        bench-torch)
            say "Installing peers that need PyTorch (a few minutes the first time) ..."
            install_torch ;;
        *)
            say "Installing peers for $venv ..." ;;
    esac ||
        stop "The packages could not be installed; the reason is above."
    case $purpose in
        # Not up to date with a peer missing: the next run tries again.
        bench*) install_peers || return 0 ;;
    esac
    state >"$state_file"
}

# All at once; where that fails one by one, so that a peer that cannot be had stops
# no other. The benchmarks name those that are missing.
install_peers() {
    peers=benchmarks/requirements${purpose#bench}.txt
    # Of cellpose only the figures are wanted, which need none of what it brings for its model.
    [ "$purpose" != bench-torch ] || pip_install --no-deps "cellpose>=4" || say "Left out: cellpose"
    pip_install --requirement "$peers" 2>/dev/null && return
    sed 's/#.*//' "$peers" | while read -r peer; do
        [ -z "$peer" ] || pip_install "$peer" || say "Left out: $peer"
    done
    return 1
}

# PyTorch for processors only: on Linux what PyPI has brings 3 GB for graphics cards. From a
# wheel beside pip (PIP_FIND_LINKS) or from PyTorch itself.
install_torch() {
    [ "$(uname -s)" = Linux ] || { pip_install torch; return; }
    pip_install --no-deps --no-index torch 2>/dev/null ||
        pip_install --no-deps --retries 1 --timeout 15 \
            --index-url https://download.pytorch.org/whl/cpu torch
}

# ---------------------------------------------------------------------------

if is_usable; then
    python=$venv/bin/python
else
    python=$(find_python)
fi
install_system_packages
is_usable || make_venv
is_up_to_date || install_package
! needs_kernels || build_kernels
if [ "$purpose" = bench ]; then
    # Without these environments the benchmarks leave their peers out, and say so.
    sh scripts/setup.sh bench-panoptica || say "Going on without panoptica."
    sh scripts/setup.sh bench-torch || say "Going on without cellpose and torchmetrics."
fi
