#!/bin/sh
# Fuzz the C analyses under AddressSanitizer and UndefinedBehaviorSanitizer: tests/fuzz/run.sh [SECONDS] [CORPUS_DIR]
# Needs clang with libFuzzer.  The last lines tell executions and coverage; any failed check aborts and leaves its input in $TMPDIR.
set -eu
seconds=${1:-60}
here=$(cd "$(dirname "$0")" && pwd)
src=$here/../../src
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
corpus=${2:-$work/corpus}
mkdir -p "$corpus"
${CLANG:-clang} -std=c11 -D_GNU_SOURCE -DLEAKPROBE_DEBUG -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
    -I"$src" -I"$here/../c" "$here/fuzz_graph.c" "$src"/analysis/*.c "$src"/base/*.c -o "$work/fuzz_graph" -lpthread
"$work/fuzz_graph" -max_len=400 -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="${TMPDIR:-/tmp}/" "$corpus"
