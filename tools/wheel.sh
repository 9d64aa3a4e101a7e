#!/bin/sh
# One abi3 wheel, installed into a clean environment and imported on every Python from 3.11 on that is found
# here, those of pyenv included.
set -eu
cd "$(dirname "$0")/.."
rm -rf dist
.venv/bin/pip wheel -q --no-build-isolation --no-deps -w dist -Cbuild-dir=build/wheel .
wheel=$(ls dist/*.whl)
echo "$wheel"
tried=0
for version in 3.11 3.12 3.13 3.14; do
    python=$(ls -d "$HOME"/.pyenv/versions/$version.*/bin/python 2>/dev/null | tail -1)
    [ -n "$python" ] || python=$(command -v python$version || true)
    if [ -z "$python" ] || ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        echo "python$version: not here, not tried"
        continue
    fi
    env=$(mktemp -d)
    "$python" -m venv "$env"
    "$env/bin/pip" install -q --no-deps "$wheel"
    (cd "$env" && bin/python -c 'import headrace, sys; assert "numpy" not in sys.modules; print("python", sys.version.split()[0], "headrace", headrace.__version__)' &&
        bin/headrace --version >/dev/null)
    rm -rf "$env"
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ]
