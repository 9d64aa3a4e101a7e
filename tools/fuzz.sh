#!/bin/sh
# Fuzz every target for a number of seconds each, from its committed corpus; new inputs stay in build/fuzz.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
PATH="$PWD/.venv/bin:$PATH"
[ -f build/fuzz/build.ninja ] || CC=clang-14 meson setup build/fuzz -Dfuzz=true -Dunit_tests=false \
    -Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
targets=$(ninja -C build/fuzz -t targets all | sed -n 's|^\(fuzz/fuzz_[a-z0-9_]*\): .*|\1|p' | sort -u)
ninja -C build/fuzz >/dev/null
failed=0 n=0
for target in $targets; do
    name=${target#fuzz/fuzz_}
    mkdir -p "build/fuzz/found/$name"
    n=$((n + 1))
    if ! "build/fuzz/$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=0 \
        -artifact_prefix="build/fuzz/$name-" "build/fuzz/found/$name" $([ -d "fuzz/corpus/$name" ] && echo "fuzz/corpus/$name") \
        > "build/fuzz/$name.log" 2>&1; then
        failed=$((failed + 1))
        echo "fuzz $name failed:"; tail -40 "build/fuzz/$name.log"
    fi
done
echo "$n targets, $failed failed"
[ "$failed" = 0 ] && [ "$n" -gt 0 ]
