#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh MODEL: checks tests/models/MODEL.pml with spin, as it must hold and as
# it must not. A line of the list is a model, what must come out, and the
# switches. "error" is a negative control: a protocol with one thing taken from
# it, where spin has to find a counterexample; a model in which nothing can go
# wrong shows nothing.
#
# Each search is complete. Larger ones pass as well, in minutes: split with
# OPS=3, or NW=3.
set -eu

checks='
split	holds	-DNOBJ=1 -DNW=2 -DOPS=2 -DFLUSH
split	holds	-DNOBJ=1 -DNW=2 -DOPS=2 -DFLUSH -DKILL
split	holds	-DNOBJ=2 -DNW=2 -DOPS=1 -DBASE -DFLUSH
split	holds	-DNOBJ=1 -DNW=2 -DOPS=1 -DFLUSH -DNOSLOT
split	holds	-DNOBJ=1 -DNW=2 -DOPS=1 -DFLUSH -DINHERIT
split	holds	-DNOBJ=1 -DNW=2 -DOPS=3 -DBIAS=2 -DFLUSH -DF=0
split	error	-DNOBJ=1 -DNW=2 -DOPS=2 -DNOBIAS
split	error	-DNOBJ=1 -DNW=2 -DOPS=2 -DNOGP
split	error	-DNOBJ=1 -DNW=2 -DOPS=2 -DMERGE_ADD
split	error	-DNOBJ=2 -DNW=2 -DOPS=1 -DRESIDUE
split	error	-DNOBJ=1 -DNW=2 -DOPS=3 -DBIAS=2
wake	holds	-DW4
wake	holds	-DW4 -DNC=3
wake	error	-DW1
wake	error	-DW2
zones	holds	-DNT=2 -DOPS=3 -DNMAX=9
zones	holds	-DNT=2 -DOPS=3 -DNMAX=3 -DMISUSE
zones	error	-DNT=3 -DOPS=3 -DNMAX=64
'

usage()
{
	echo "usage: sh tests/models/run.sh MODEL"
	echo
	echo "Checks a model: $models."
}

models=$(echo "$checks" | awk 'NF && !seen[$1]++ { printf "%s%s", sep, $1
	sep = ", " }')
case ${1-} in
-h | --help) usage; exit 0 ;;
esac
echo "$checks" | grep -q "^${1:-nothing}	" || {
	echo "run.sh: ${1:-no model}: give one of $models" >&2
	exit 2
}
for tool in spin gcc; do
	command -v "$tool" >/dev/null || {
		echo "$tool is not installed"
		exit 77
	}
done
model=$(cd "$(dirname "$0")" && pwd)/$1.pml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work"

# search SWITCH...: what came of it, and how many states were seen.
search()
{
	# shellcheck disable=SC2068
	spin -a $@ "$model" >spin.out || return 1
	gcc -w -O2 -DCOLLAPSE -DSAFETY -o pan pan.c || return 1
	./pan -m100000 >pan.out
	if grep -q 'max search depth too small\|out of memory' pan.out; then
		outcome=incomplete
	elif grep -q 'errors: 0$' pan.out; then
		outcome=holds
	else
		outcome=error
	fi
	states=$(awk '/states, stored/ { print $1 }' pan.out)
}

failed=0
tab=$(printf '\t')
while IFS=$tab read -r name expected switches; do
	[ "$name" = "$1" ] || continue
	outcome=broken
	states=0
	# shellcheck disable=SC2086
	search $switches || outcome=broken
	verdict=ok
	if [ "$outcome" != "$expected" ]; then
		verdict=WRONG
		failed=1
		tail -n 5 spin.out pan.out 2>/dev/null || true
	fi
	printf '%s\t%s, %s states\t%s\n' "$verdict" "$outcome" "$states" \
		"$name $switches"
done <<END
$checks
END
exit $failed
