#!/bin/sh
# The C tests that take no folder of libraries to load, and need no threads at once, under valgrind's memcheck: tests/c/memcheck.sh [NAME...]
# Any error or lost block fails; the last line is a tally.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
src=$here/../../src
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- $(cd "$here" && grep -L 'main(int' test_*.c | grep -v test_threads)
flags="-std=c11 -D_GNU_SOURCE -DLEAKPROBE_DEBUG -DLP_FAULT_INJECTION -g -O1"
sources=$(ls "$src"/base/*.c "$src"/ledger/*.c "$src"/snapshot/*.c "$src"/analysis/*.c "$src"/native/*.c "$src"/process/*.c)
for source in $sources; do
    # shellcheck disable=SC2086
    ${CC:-cc} $flags -I"$src" -c "$source" -o "$work/$(echo "${source#"$src"/}" | tr / _).o"
done
passed=0
for name in "$@"; do
    name=${name%.c}
    # shellcheck disable=SC2086
    ${CC:-cc} $flags -I"$src" -I"$here" "$here/$name.c" "$work"/*.o -o "$work/$name" -lpthread -ldl -lm
    if ! valgrind -q --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
        --log-file="$work/log" "$work/$name" > "$work/out"; then
        cat "$work/out" "$work/log"
        echo "$name: memcheck found something" >&2
        exit 1
    fi
    echo "$name: $(tail -1 "$work/out")"
    passed=$((passed + 1))
done
echo "$passed programs without an error of memcheck"
