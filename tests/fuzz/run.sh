#!/bin/sh
# Fuzz the C core under AddressSanitizer and UndefinedBehaviorSanitizer: tests/fuzz/run.sh [SECONDS] [TARGET...]
# Targets: graph (the analyses), ledger, elf (the reader of loaded images); all of them as a default, SECONDS each.
# Needs clang with libFuzzer.  Inputs begin with corpus/TARGET; new ones are kept in $CORPUS/TARGET if CORPUS is set.
# The last lines tell executions and coverage; a failed check aborts and leaves its input in $TMPDIR.
set -eu
seconds=${1:-60}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || set -- graph ledger elf
here=$(cd "$(dirname "$0")" && pwd)
src=$here/../../src
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for target in "$@"; do
    case $target in
        graph) parts="analysis base" ;;
        ledger) parts="ledger base" ;;
        elf) parts="native ledger base" ;;
        *) echo "no such target: $target" >&2; exit 2 ;;
    esac
    sources=$(for part in $parts; do ls "$src/$part"/*.c; done)
    # shellcheck disable=SC2086
    ${CLANG:-clang} -std=c11 -D_GNU_SOURCE -DLEAKPROBE_DEBUG -DLP_FAULT_INJECTION -g -O1 -fsanitize=fuzzer,address,undefined \
        -fno-sanitize-recover=all -I"$src" -I"$here/../c" "$here/fuzz_$target.c" $sources -o "$work/$target" -lpthread -ldl -lm
    corpus=${CORPUS:-$work/corpus}/$target
    mkdir -p "$corpus"
    "$work/$target" -max_len=2000 -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="${TMPDIR:-/tmp}/" \
        "$corpus" "$here/corpus/$target"
done
