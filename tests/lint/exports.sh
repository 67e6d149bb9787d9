#!/bin/sh
# SPDX-License-Identifier: MIT
#
# exports.sh LIBRARY: what the headers declare DSTREF_EXPORT, what
# src/dstref.map lists and what LIBRARY exports are the same names.
set -eu

cd "$(dirname "$0")/../.."
[ -r "${1-}" ] || {
	echo "exports.sh: ${1:-nothing}: give the shared library" >&2
	exit 2
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# A declaration is what stands between DSTREF_EXPORT and its ( or [, or the
# model of a thread's variable.
name='^[^([]*\(dstref_[a-z0-9_]*\)'
for header in include/dstref/*.h; do
	grep -v '^#' "$header" | tr '\n' ' ' |
		awk 'BEGIN { RS = "DSTREF_EXPORT" } NR > 1' |
		sed -n "s/$name\([([]\| DSTREF_THREAD_\).*/\1/p"
done | sort >"$tmp/headers"
sed -n 's/^	\(dstref_[a-z0-9_]*\);$/\1/p' src/dstref.map | sort >"$tmp/map"
nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' |
	sed 's/@@DSTREF_[0-9.]*$//' | sort >"$tmp/library"

[ -s "$tmp/headers" ] || {
	echo "no DSTREF_EXPORT was found in include/dstref"
	exit 1
}
status=0
for other in map library; do
	diff -u "$tmp/headers" "$tmp/$other" || status=1
done
echo "$(wc -l <"$tmp/headers") names"
exit $status
