#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The struct that README.md guards compiles, in C and C++, and says what README
# says when refs moves to where packets read.
set -eu

cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
flags="-Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only"

awk '/^```c$/ { inside = 1; text = ""; next }
/^```$/ { if (inside && text ~ /DSTREF_GROUPED/) printf "%s", text
	inside = 0; next }
inside { text = text $0 "\n" }' README.md >"$tmp/right.c"
grep -q 'struct dstref_count refs;' "$tmp/right.c" || {
	echo "README.md shows no struct that guards its refs"
	exit 1
}
awk '/struct dstref_count refs;/ { next }
/DSTREF_GROUP_END\(read\)/ { print "\tstruct dstref_count refs;" }
{ print }' "$tmp/right.c" >"$tmp/wrong.c"
tr '\n' ' ' <README.md | tr -s ' ' >"$tmp/said"

for compiler in "${CC:-cc} -x c -std=c11" "${CXX:-c++} -x c++ -std=c++11"; do
	# shellcheck disable=SC2086
	$compiler $flags "$tmp/right.c"
	# shellcheck disable=SC2086
	if $compiler $flags "$tmp/wrong.c" 2>"$tmp/words"; then
		echo "$compiler: refs on the line of device was let through"
		exit 1
	fi
	words=$(sed -n 's/.*\(struct my_route\.refs shares .*between\).*/\1/p' \
		"$tmp/words" | head -n 1)
	grep -qF "\"$words\"" "$tmp/said" || {
		echo "$compiler says: $words"
		echo "README.md says something else"
		exit 1
	}
done
