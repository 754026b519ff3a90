# Sourced by ./demo and ./check: a virtual environment of this checkout's own, made once, first on PATH.

# venv_with EXTRA: EXTRA is "" (the tool alone) or "dev" (with everything that the checks need).
venv_with() {
    python=${PYTHON:-python3}
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        echo "needs Python 3.11 or newer: set PYTHON to one ($("$python" --version) found)" >&2
        exit 1
    }
    [ -x .venv/bin/python ] || "$python" -m venv .venv || {
        echo "needs Python's venv module: on Debian or Ubuntu, apt-get install python3-venv" >&2
        exit 1
    }
    PATH=$PWD/.venv/bin:$PATH
    for stamp in ".venv/.installed-${1:-tool}" .venv/.installed-dev; do  # dev has everything
        [ ! -e "$stamp" ] || [ pyproject.toml -nt "$stamp" ] || return 0
    done
    echo "== installing into .venv"
    pip install --quiet --disable-pip-version-check --editable ".${1:+[$1]}"
    python -m compileall -q dspark_deploy  # once, and not by each of the first processes
    touch ".venv/.installed-${1:-tool}"
}
