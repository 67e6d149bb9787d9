#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Measures the figures that the project holds itself to; bench/README.md says
# what each of them means. A figure is a function fig_NAME (with _ for -) that
# prints its samples, a number a line.
set -eu

# name, comparison, bound.
figures='hold-insns <= 6
release-insns <= 6
charge-locked <= 1
uncharge-locked <= 1
uncharge-locked-space <= 2
dst-size = 128
skb-size = 24
count-size = 4
cold-dst = 2
cold-noref = 1
layout-same = 0
gateway-mpps >= 0.30
gateway-ratio >= 0.5
gateway-lost = 0
coverage >= 90
cross-i386 <= 90'

usage()
{
	cat <<'END'
usage: sh bench/figures.sh [NAME...]
       sh bench/figures.sh --list

Measures each NAME, or all figures, and prints a row for each: name, bound,
median, quartiles, ok or short. Status 1 when one is short, 2 for a name that
does not exist or a machine that cannot measure it.
END
}

list()
{
	echo "$figures" | sed 's/ .*//'
}

for name; do
	case $name in
	-h | --help) usage; exit 0 ;;
	-l | --list) list; exit 0 ;;
	esac
	list | grep -qxFe "$name" || {
		echo "figures.sh: $name: no such figure; there are" \
			"$(list | tr '\n' ' ')" >&2
		exit 2
	}
done
cd "$(dirname "$0")/.."
# shellcheck source=bench/support/lib.sh
. bench/support/lib.sh
# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $(list)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

die()
{
	echo "figures.sh: $*" >&2
	exit 2
}

# probe NAME [LIBRARY...]: compiles it as a user would, runs it.
probe()
{
	[ -x "$work/$1" ] || ${CC:-cc} -std=c11 -O2 -DNDEBUG -Iinclude \
		-o "$work/$1" "bench/figures/$1.c" "$release"/libdstref.a \
		-lurcu-memb -lpthread || die "$1.c does not compile"
	"$work/$1" || die "$1 cannot be measured here"
}

# The instructions of a function of insns.c up to its return; the return not.
# One of them, and only one, is to be locked.
insns()
{
	${CC:-cc} -std=c11 -O2 -DNDEBUG -Iinclude -c -o "$work/hot.o" \
		bench/figures/insns.c || die "insns.c does not compile"
	objdump -d --no-show-raw-insn "$work/hot.o" |
		sed -n "/<$1>:$/,/\tret/p" | grep "^ *[0-9a-f]*:" >"$work/$1"
	[ "$(grep -c 'lock' "$work/$1")" -eq 1 ] ||
		die "$1 has not one locked instruction: $(cat "$work/$1")"
	grep -vc 'ret' "$work/$1"
}

fig_hold_insns()
{
	insns hot_hold
}

fig_release_insns()
{
	insns hot_release
}

# The lines of a probe that start with a name.
field()
{
	probe "$1" >"$work/$1.out"
	sed -n "s/^$2 //p" "$work/$1.out"
}

fig_charge_locked()
{
	field locked charge-locked
}

fig_uncharge_locked()
{
	field locked uncharge-locked
}

fig_uncharge_locked_space()
{
	field locked uncharge-locked-space
}

fig_dst_size()
{
	field sizes dst-size
}

fig_skb_size()
{
	field sizes skb-size
}

fig_count_size()
{
	field sizes count-size
}

fig_cold_dst()
{
	field sizes cold-dst
}

fig_cold_noref()
{
	field sizes cold-noref
}

# Tables of offsets that differ from the first of their word and line size.
fig_layout_same()
{
	sh tests/layout/same.sh >"$work/same" 2>&1 || true
	tail -n 1 "$work/same" | sed -n 's/^.* \([0-9]*\) faults$/\1/p'
}

# forward OPTION...: the gateway on two cores; status 1 when its books do not
# balance.
forward()
{
	status=0
	rm -f "$work/json"
	# shellcheck disable=SC2046
	$(two_cores) "$gateway" --json "$work/json" "$@" >"$work/out" ||
		status=$?
	if [ "$status" -gt 1 ] || [ ! -s "$work/json" ]; then
		die "the gateway failed: $* $(tail -n 1 "$work/out")"
	fi
	return "$status"
}

# run OPTION...: the same, its books balanced.
run()
{
	forward "$@" ||
		die "the gateway failed: $* $(tail -n 1 "$work/out")"
}

# A minute of new routes under traffic; a sample is a second of it.
fig_gateway_mpps()
{
	run --seconds 60 --churn 1000
	sed -n 's/^ *[0-9]* s .* \([0-9.]*\) Mpps$/\1/p' "$work/out"
}

# In turn, so that whatever else the machine does falls on both; a sample is
# a pair.
fig_gateway_ratio()
{
	for _ in 1 2 3 4 5 6 7; do
		run --seconds 3 --bare
		bare=$(get mpps "$work/json")
		run --seconds 3 --churn 1000
		echo "$(get mpps "$work/json") $bare" |
			awk '{ printf "%.3f\n", $1 / $2 }'
	done
}

# Unexplained packets, objects alive and reports; a sample is a policy. What
# else the gateway finds wrong counts as one.
fig_gateway_lost()
{
	for policy in --release=xmit --release=completion \
		"--release=xmit --noref" "--release=completion --noref" \
		"--noref --early-uncharge" "--noref --sndbuf 4000" \
		"--full=wait --sndbuf 4000" "--workers 2 --strays"; do
		wrong=0
		# shellcheck disable=SC2086
		forward --seconds 2 --churn 1000 $policy || wrong=1
		for key in in out dropped dst sock callbacks total; do
			get "$key" "$work/json"
		done | tr '\n' ' ' | awk -v wrong="$wrong" '{
			lost = $1 - $2 - $3
			lost = (lost < 0 ? -lost : lost) + $4 + $5 + $6 + $7
			print lost ? lost : wrong
		}'
	done
}

# Lines of the library that its tests execute, in percent.
fig_coverage()
{
	rm -rf build/coverage
	cmake --workflow --preset coverage >build/coverage.log 2>&1 ||
		die "the tests fail under coverage: see build/coverage.log"
	gcovr --root . --filter src/ --filter include/ build/coverage \
		--print-summary 2>"$work/gcovr" |
		sed -n 's/^lines: \([0-9.]*\)%.*/\1/p'
}

# Seconds to build and to run the tests on i386, what they need being there.
fig_cross_i386()
{
	log=build/cross-i386.log
	sh tests/cross.sh --prepare i386 >"$log" 2>&1 ||
		die "no i386 here: $(tail -n 1 "$log")"
	rm -rf build/cross-i386
	start=$(date +%s)
	sh tests/cross.sh i386 >"$log" 2>&1 ||
		die "the tests fail on i386: see $log"
	echo $(($(date +%s) - start))
}

# Sorted samples in; name and bound in the environment; out a row, and status
# 1 when the median is short. A figure that must be exact or stay below has to
# do so in the worst sample.
judge()
{
	sort -n | awk -v name="$1" -v op="$2" -v bound="$3" '
	function at(q, i) {
		i = int((NR - 1) * q) + 1
		return x[i] + ((NR - 1) * q + 1 - i) * (x[i + (i < NR)] - x[i])
	}
	{ x[NR] = $1 }
	END {
		if (!NR)
			exit 2
		if (op == ">=")
			ok = at(0.5) >= bound
		else
			ok = x[NR] <= bound && (op == "<=" || x[1] == bound)
		printf "%-22s %2s %-6s %8.4g %8.4g %8.4g  %s\n", name, op,
			bound, at(0.5), at(0.25), at(0.75), ok ? "ok" : "short"
		exit !ok
	}'
}

# Most figures need the library as it is shipped.
install gcc libc6-dev binutils
build_release
case " $* " in
*" coverage "* | *" layout-same "*) install gcovr g++ clang ;;
esac

short=0
printf '%-22s %-9s %8s %8s %8s\n' name bound median q1 q3
for name; do
	samples=$(fig_"$(echo "$name" | tr - _)") || exit 2
	rule=$(echo "$figures" | grep "^$name ")
	status=0
	# shellcheck disable=SC2086
	echo "$samples" | judge $rule || status=$?
	[ "$status" -ne 2 ] || die "$name: nothing was measured"
	[ "$status" -eq 0 ] || short=1
done
exit $short
