#!/bin/sh
# SPDX-License-Identifier: MIT
#
# man.sh DIRECTORY: every call that a header describes, every kind of report
# and every field of a list has its place in the manual, and groff has no word
# against a page.
set -eu

cd "$(dirname "$0")/../.."
[ -d "${1-}" ] || {
	echo "man.sh: ${1:-nothing}: give the directory of the pages" >&2
	exit 2
}
status=0
calls=0

# fault PAGE WHAT
fault()
{
	echo "$1: $2"
	status=1
}

for header in include/dstref/*.h; do
	noun=$(basename "$header" .h)
	page=$1/dstref_$noun.3
	[ -s "$page" ] || {
		fault "$page" "there is no page"
		continue
	}
	# shellcheck disable=SC2013
	for call in $(sed -n 's/^ \* \(dstref_[a-z0-9_]*\) - .*/\1/p' \
		"$header"); do
		calls=$((calls + 1))
		grep -q "^\\.B \".*[ *(]${call}[()]" "$page" ||
			fault "$page" "$call is not in its synopsis"
		grep -q "^\\.SS $call\$" "$page" ||
			fault "$page" "$call is not in its calls"
		[ -s "$1/$call.3" ] || fault "$1/$call.3" "there is no page"
	done
	if command -v groff >/dev/null; then
		words=$(groff -man -Tutf8 -ww -z "$page" 2>&1)
		[ -z "$words" ] || fault "$page" "$words"
	fi
done
# shellcheck disable=SC2013
for kind in $(sed -n 's/^	X([A-Z_]*, "\([a-z-]*\)".*/\1/p' \
	include/dstref/report.h | sed 's/-/\\\\-/g'); do
	grep -q "^\\.B $kind\$" "$1/dstref_report.3" ||
		fault "$1/dstref_report.3" "$kind is not in its kinds"
done
# "noun member" of each list of fields.
sed -n 's/^	X(struct dstref_\([a-z]*\), \([a-z_]*\),.*/\1 \2/p' \
	include/dstref/*.h >"$1/../fields"
while read -r noun field; do
	sed -n '/^\.SH FIELDS/,/^\.fi/p' "$1/dstref_$noun.3" |
		grep -q "^$field " ||
		fault "$1/dstref_$noun.3" "$field is not in its fields"
done <"$1/../fields"
[ -s "$1/../fields" ] || fault include/dstref "no list of fields was found"
[ $calls -gt 0 ] || fault include/dstref "no call was found"
echo "$calls calls"
exit $status
