#!/bin/sh
# The peers' Python environments, apart from the project's own .venv so that it stays small:
#   .venv-bench311  numpy, numcodecs, zarr, zarrs, tensorstore, obstore, rich   (also writes the archives, runs mini.py)
#   .venv-bench312  insitubatch with the newest zarr and obstore; neither installs on Python 3.11
# and for single cells, with the word `cells`:
#   .venv-bench312   besides, annbatch with zarrs, pandas and pyarrow (also writes the atlas)
#   .venv-bench-scdl bionemo-scdl, which brings torch
# A new run keeps what is there. PYTHON311 and PYTHON312 name the interpreters; a missing 3.12 is not an error, the
# columns of insitubatch and annbatch are then left out, and so is what of single cells cannot be installed.
set -eu
cd "$(dirname "$0")/.."

find_python() { # find_python 3.12 -> path
    for p in "python$1" "$HOME"/.pyenv/versions/"$1".*/bin/python; do
        if command -v "$p" >/dev/null 2>&1 &&
            [ "$("$p" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$1" ]; then
            command -v "$p"
            return
        fi
    done
}

make_venv() { # make_venv DIR PYTHON PACKAGE...
    dir=$1 python=$2
    shift 2
    [ -x "$dir/bin/python" ] || "$python" -m venv "$dir"
    "$dir/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

p311=${PYTHON311:-$(find_python 3.11)}
[ -n "$p311" ] || { echo "bench/venvs.sh: needs Python 3.11; set PYTHON311" >&2; exit 1; }
[ "${1:-}" = cells ] || make_venv .venv-bench311 "$p311" numpy numcodecs zarr obstore zarrs tensorstore rich

p312=${PYTHON312:-$(find_python 3.12)}

if [ "${1:-}" = cells ]; then
    if [ -n "$p312" ]; then
        make_venv .venv-bench312 "$p312" numpy annbatch zarr zarrs obstore pandas pyarrow ||
            echo "bench/venvs.sh: annbatch could not be installed, so no comparison with it" >&2
    else
        echo "bench/venvs.sh: no Python 3.12, so no comparison with annbatch; set PYTHON312" >&2
    fi
    make_venv .venv-bench-scdl "$p311" bionemo-scdl torch zarr ||
        echo "bench/venvs.sh: bionemo-scdl could not be installed, so no comparison with it" >&2
    exit
fi

if [ -n "$p312" ]; then
    make_venv .venv-bench312 "$p312" numpy insitubatch zarr obstore
else
    echo "bench/venvs.sh: no Python 3.12, so no insitubatch column; set PYTHON312" >&2
fi
