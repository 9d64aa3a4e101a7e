#!/bin/sh
# Build the package (library, extension, command line) and put it into .venv/. Repeated runs rebuild only what changed.
set -eu
cd "$(dirname "$0")/.."
# A fresh hash of all sources tells whether there is anything to do.
stamp=$(git ls-files -co --exclude-standard src include cli python meson.build meson_options.txt pyproject.toml | LC_ALL=C sort |
    xargs cat | sha256sum | cut -c1-16)
if [ "$(cat .venv/.installed 2>/dev/null || true)" != "$stamp" ]; then
    .venv/bin/pip install -q --no-build-isolation --no-deps --force-reinstall \
        -Cbuild-dir=build/package "${HEADRACE_SETUP:--Csetup-args=-Dwerror=true}" .
    echo "$stamp" > .venv/.installed
fi
