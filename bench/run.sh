#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Forwards real packets under each release policy and prints a comparison; then
# the tables of dstref-bench.
set -eu

usage()
{
	cat <<'END'
usage: sh bench/run.sh [SECONDS]

Installs what is missing, builds the release preset, and runs the gateway for
SECONDS (10; up to 86400) under each release policy and once bare, on two cores,
with 1000 routes replaced per second. Then it runs every experiment of
dstref-bench and leaves the results in build/bench.json, and pictures of them in
build/pictures. Status 1 when a run's books did not balance.
END
}

# refuse ARGUMENT REMEDY
refuse()
{
	echo "run.sh: '$1': $2" >&2
	exit 2
}

seconds=${1-10}
range="give a number of seconds from 1 to 86400"
case $seconds in
-h | --help) usage; exit 0 ;;
'' | *[!0-9]* | ??????*) refuse "$seconds" "$range" ;;
esac
if [ "$seconds" -lt 1 ] || [ "$seconds" -gt 86400 ]; then
	refuse "$seconds" "$range"
fi
[ $# -le 1 ] || refuse "$2" "leave it out; SECONDS is the one argument"
cd "$(dirname "$0")/.."
# shellcheck source=bench/support/lib.sh
. bench/support/lib.sh

install gnuplot-nox
install_rivals
build_release
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
pin=$(two_cores)
failed=0

row()
{
	printf '%-28s %6s %10s %10s %10s %8s %9s %6s %7s  %s\n' "$@"
}

# measure OPTION...: one run, one row.
measure()
{
	status=0
	# shellcheck disable=SC2086
	$pin "$gateway" --seconds "$seconds" --json "$work/json" "$@" \
		>"$work/out" || status=$?
	if [ "$status" -eq 2 ]; then
		exit 2 # it said why
	fi
	[ "$status" -eq 0 ] || failed=1
	row "$(get policy "$work/json")" \
		"$(printf %.3f "$(get mpps "$work/json")")" \
		"$(get in "$work/json")" "$(get out "$work/json")" \
		"$(get received "$work/json")" "$(get dropped "$work/json")" \
		"$(get dead_route "$work/json")" \
		"$(get ring_full "$work/json")" \
		"$(get routes_replaced "$work/json")" \
		"$(get verdict "$work/json")"
}

row policy Mpps in out received dropped "dead rt" "full" replaced verdict
measure --bare
measure --churn 1000 --release=completion
measure --churn 1000 --release=xmit
measure --churn 1000 --release=xmit --noref
measure --churn 1000 --release=xmit --noref --early-uncharge
echo
"$bench" run --quick --json build/bench.json || exit 2
"$bench" plot build/bench.json -o build/pictures || exit 2
exit $failed
