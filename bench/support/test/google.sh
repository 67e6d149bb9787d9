#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Goal: Google Benchmark's own compare.py reads what `run --json` writes.
# Method: it compares a run with itself, repetitions and aggregates: no
# difference, and no row is missing. Where it, or what it needs, is not
# installed: status 77.
#
# usage: google.sh PROGRAM
set -eu

program=${1:?give the path of dstref-bench}
compare=/usr/share/benchmark/compare.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# Debian's Python: it is what Debian's scipy is for.
if [ ! -f "$compare" ] || ! /usr/bin/python3 -c 'import scipy' 2>/dev/null; then
	echo "skipped: needs libbenchmark-tools and python3-scipy"
	exit 77
fi
first=$("$program" list | sed -n '1s/ .*//p')
"$program" run "$first" --seconds=0.001 --runs=3 --threads=1 \
	--json "$work/json" >/dev/null

# OPTION...: lines that show no difference, of all that begin with a name.
compares()
{
	/usr/bin/python3 "$compare" --no-color "$@" benchmarks "$work/json" \
		"$work/json" >"$work/out" 2>&1 || {
		cat "$work/out"
		exit 1
	}
	grep -c "^$first/.* +0.0000  *+0.0000 " "$work/out"
}

count()
{
	grep -c "\"run_type\": \"$1\"" "$work/json"
}

[ "$(compares)" -eq $(($(count iteration) + $(count aggregate))) ] ||
	{ cat "$work/out"; exit 1; }
[ "$(compares -a)" -eq "$(count aggregate)" ] || { cat "$work/out"; exit 1; }
