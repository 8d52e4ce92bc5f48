# shellcheck shell=sh
# Sourced by the other scripts: how to run a program that opens windows.

# Whether windows have somewhere to go.
has_display() {
    case $(uname -s) in
        Darwin | MINGW* | MSYS*) ;; # macOS and Windows always have one
        *) [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ] ;;
    esac
}

# Run a command on a virtual display.
with_virtual_display() {
    xvfb-run -a -s "-screen 0 1600x1000x24" "$@"
}

# Run a command on the display, or on a virtual one where there is none.
with_display() {
    if has_display; then
        "$@"
    else
        with_virtual_display "$@"
    fi
}
