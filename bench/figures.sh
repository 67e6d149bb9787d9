#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Measures the figures that the project holds itself to; bench/README.md says
# more of them. A figure is a row below and a function fig_NAME (with _ for -)
# that prints its samples, a number a line.
set -eu

# Name, comparison, bound, which samples have to keep it; on the next line what
# it is. A count of something keeps its bound in each sample. Timings scatter
# with whatever else the machine does: their median keeps it, and their
# quartiles are shown.
figures()
{
	sed -n '/^[a-z]/{N;s/\n[[:blank:]]*/ /;p;}' <<'END'
hold-insns <= 6 each
	instructions of a hold, the route being one that may not be split
release-insns <= 6 each
	instructions of its release
charge-locked <= 1 each
	locked instructions to charge a packet
uncharge-locked <= 1 each
	locked instructions to complete it
uncharge-locked-space <= 2 each
	the same with a write-space callback
dst-size = 128 each
	bytes of a route on 64-bit
skb-size = 24 each
	bytes of what a packet pins
count-size = 4 each
	bytes of a count
cold-dst = 2 each
	lines that a packet with a held route brings into a cold cache
cold-noref = 1 each
	lines with a borrowed route
layout-same = 0 each
	tables of offsets that differ between compilers
gateway-mpps >= 0.30 median
	million packets a second, kernel sockets at both ends, on two cores
gateway-ratio >= 0.5 median
	the same by a bare read-and-write loop
gateway-lost = 0 each
	packets unexplained, objects alive, reports
count-floor <= 1.10 median
	get and put of a count by two bare locked adds, 1 thread
count-urcu-1 <= 0.80 median
	get and put of a count by those of `urcu_ref`, 1 thread
count-urcu-2 <= 0.85 median
	the same, 2 threads
release-2 <= 0.85 median
	decrement and look at the result by read, then decrement, 2 threads
wmem-1 <= 0.60 median
	a packet by an account that starts at one by hold, charge and put
wmem-2 <= 0.60 median
	the same, transmit on one thread, completion on another
wmem-1-space <= 0.85 median
	a packet with a write-space callback, 1 thread
wmem-2-space <= 0.85 median
	the same, 2 threads
neighbour <= 0.25 median
	reading beside a written count, on another line by on its line
cold-hashinfo <= 0.75 median
	hashinfo from a cold cache, embedded by through a pointer
xmit-2 <= 0.80 median
	both cores' time for a packet, its route let go at transmit by later
stable >= 90 each
	percent of rows whose intervals overlap in two runs of `dstref-bench`
explore-rate >= 5000 median
	schedules a second, 2 threads, one core
explore-cut = 0 each
	cases of the explorer whose space was neither exhausted nor bounded
mutants = 100 each
	percent of the seeded faults that the explorer finds
split-floor <= 4 median
	get and put of a split count by two thread-local increments
split-count-1 <= 0.15 median
	get and put of a split count by those of a count, 1 thread
split-count-2 <= 0.02 median
	the same, 2 threads
hot-scaling >= 1.9 median
	packets a second by a hot route, 2 threads by 1
hot-over >= 0.9 median
	the same, 16 threads on 2 cores by 2 threads
promote-ticks <= 2 each
	ticks from contention to a split route
cold-entry <= 1.10 median
	hold and release of a route that is not split by those of a count
burst-1 <= 0.20 median
	a burst of 32 to one route by single calls, 1 thread
burst-2 <= 0.20 median
	the same, 2 threads
burst-mixed-1 <= 0.6 median
	a burst of 32 over 8 routes by single calls, 1 thread
burst-mixed-2 <= 0.3 median
	the same, 2 threads
million <= 1 each
	percent of memory more, a million routes, 64 threads, 100 split
coverage >= 90 each
	percent of the lines of `src/` and `include/` that the tests execute
cross-i386 <= 90 each
	seconds to build and pass the tests on i386
END
}

usage()
{
	cat <<'END'
usage: sh bench/figures.sh [--readme] [NAME...]
       sh bench/figures.sh --list

Measures each NAME, or all figures, and prints a row for each: name, bound,
median, quartiles, ok or short. Status 1 when one is short, 2 for a name that
does not exist or a machine that cannot measure it. With --readme the rows
become the table in README.md, under the name of this machine.
END
}

list()
{
	figures | sed 's/ .*//'
}

# The row of a name, without it.
figure()
{
	figures | sed -n "s/^$1 //p"
}

readme=
if [ "${1-}" = --readme ]; then
	readme=README.md
	shift
fi
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

# The lines of a probe that start with a name.
field()
{
	probe "$1" >"$work/$1.out"
	sed -n "s/^$2 //p" "$work/$1.out"
}

fig_hold_insns()
{
	field steps hold-insns
}

fig_release_insns()
{
	field steps release-insns
}

fig_charge_locked()
{
	field steps charge-locked
}

fig_uncharge_locked()
{
	field steps uncharge-locked
}

fig_uncharge_locked_space()
{
	field steps uncharge-locked-space
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

# experiment NAME: makes $work/NAME.json, once. With more rounds than a user
# gets: a figure is one number, and two threads on one line have two modes.
experiment()
{
	[ ! -s "$work/$1.json" ] || return 0
	# shellcheck disable=SC2046
	$(two_cores) "$bench" run "$1" --threads 1,2 --runs 15 \
		--json "$work/$1.json" >"$work/out" 2>&1 ||
		die "dstref-bench run $1 failed: $(tail -n 1 "$work/out")"
}

# quotient EXPERIMENT OF BY: the value of a row by that of another in the same
# round; a sample is a round.
quotient()
{
	experiment "$1"
	jq -r --arg of "$2" --arg by "$3" '
	def rounds($name): .benchmarks[] | select(.run_name == $name and
		.run_type == "iteration" and .value > 0);
	[rounds($by)] as $base | rounds($of) as $own | $base[] |
	select(.repetition_index == $own.repetition_index) |
	$own.value / .value' "$work/$1.json"
}

# ratio EXPERIMENT/TABLE VARIANT BASE THREADS
ratio()
{
	quotient "${1%%/*}" "$1/$2/threads:$4" "$1/$3/threads:$4"
}

# scaling EXPERIMENT/TABLE VARIANT THREADS BASE-THREADS
scaling()
{
	quotient "${1%%/*}" "$1/$2/threads:$3" "$1/$2/threads:$4"
}

# values EXPERIMENT/TABLE VARIANT THREADS
values()
{
	experiment "${1%%/*}"
	jq -r --arg of "$1/$2/threads:$3" '.benchmarks[] |
	select(.run_name == $of and .run_type == "iteration" and .value > 0) |
	.value' "$work/${1%%/*}.json"
}

fig_count_floor()
{
	ratio counts/pair count floor 1
}

fig_count_urcu_1()
{
	ratio counts/urcu count urcu_ref 1
}

fig_count_urcu_2()
{
	ratio counts/urcu count urcu_ref 2
}

fig_release_2()
{
	ratio release/pair look read-first 2
}

fig_wmem_1()
{
	ratio wmem/flow-1 account hold-charge-put 1
}

fig_wmem_1_space()
{
	ratio wmem/flow-1-space account-space hold-charge-put-space 1
}

fig_wmem_2()
{
	ratio wmem/flow-1 account hold-charge-put 2
}

fig_wmem_2_space()
{
	ratio wmem/flow-1-space account-space hold-charge-put-space 2
}

fig_neighbour()
{
	ratio layout/neighbour own-line shared-line 2
}

fig_cold_hashinfo()
{
	ratio cold/hashinfo embedded pointer 1
}

fig_xmit_2()
{
	ratio xmit/throughput xmit completion 2
}

# As the tests have it, with the explorer in it.
build_dev()
{
	[ -z "$dev_built" ] || return 0
	install libdw-dev patch spin
	if ! { cmake --preset dev && cmake --build --preset dev; } \
		>build/dev.log 2>&1; then
		die "the dev preset does not build: see build/dev.log"
	fi
	dev_built=yes
}
dev_built=

fig_explore_rate()
{
	build_dev
	for _ in 1 2 3 4 5; do
		build/dev/tests/explore/explore.net_destroy \
			--case destroy-put_sock
	done | sed -n 's/.* rate \([0-9]*\).*/\1/p'
}

fig_explore_cut()
{
	build_dev
	for explorer in build/dev/tests/explore/explore.*; do
		case $explorer in
		*selftest*) ;;
		*) "$explorer" ;;
		esac
	done >"$work/explore" || die "a scenario fails: see its test"
	grep '^case' "$work/explore" |
		grep -vcE ', (exhausted|bound [0-9]+),' || true
}

fig_mutants()
{
	build_dev
	(cd build/dev && ctest -R '^mutant' >"$work/mutants" 2>&1) || true
	sed -n 's/^\([0-9]*\)% tests passed.*/\1/p' "$work/mutants"
}

fig_split_floor()
{
	ratio hot/pair split-alone plain 1
}

fig_split_count_1()
{
	ratio hot/pair split-alone count 1
}

fig_split_count_2()
{
	ratio hot/pair split-alone count 2
}

fig_hot_scaling()
{
	scaling hot/scale split 2 1
}

fig_hot_over()
{
	scaling hot/scale split 16 2
}

fig_cold_entry()
{
	ratio hot/pair auto-cold count 1
}

fig_promote_ticks()
{
	values promote/ticks 1-ms 2
}

fig_burst_1()
{
	ratio burst/route-32 bulk single 1
}

fig_burst_2()
{
	ratio burst/route-32 bulk single 2
}

fig_burst_mixed_1()
{
	ratio burst/mixed-32 bulk single 1
}

fig_burst_mixed_2()
{
	ratio burst/mixed-32 bulk single 2
}

fig_million()
{
	values million/memory 1000000 64
}

# Two runs of everything, as a user starts them.
fig_stable()
{
	for run in first second; do
		# shellcheck disable=SC2046
		$(two_cores) "$bench" run --json "$work/$run.json" \
			>"$work/out" 2>&1 ||
			die "dstref-bench failed: $(tail -n 1 "$work/out")"
	done
	"$bench" compare --overlap "$work/first.json" "$work/second.json"
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

# judge COMPARISON BOUND WHICH: samples in; out their median, their quartiles,
# ok or short. Status 2 without a sample.
judge()
{
	sort -g | awk -v op="$1" -v bound="$2" -v which="$3" '
	function at(q, i) {
		i = int((NR - 1) * q) + 1
		return x[i] + ((NR - 1) * q + 1 - i) * (x[i + (i < NR)] - x[i])
	}
	function keeps(y) {
		return op == ">=" ? y >= bound + 0 : \
			op == "<=" ? y <= bound + 0 : y == bound + 0
	}
	{ x[NR] = $1 + 0 }
	END {
		if (!NR)
			exit 2
		ok = which == "each" ? keeps(x[1]) && keeps(x[NR]) : \
			keeps(at(0.5))
		printf "%.4g %.4g %.4g %s\n", at(0.5), at(0.25), at(0.75),
			ok ? "ok" : "short"
	}'
}

# What the figures are of.
machine()
{
	kind=machine
	! grep -qw hypervisor /proc/cpuinfo || kind="virtual machine"
	cpu=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)
	echo "Of a $kind with $(nproc) CPUs of ${cpu:-$(uname -m)}, Linux" \
		"$(uname -r | cut -d . -f 1,2), gcc $(gcc -dumpfullversion)," \
		"on $(date -u +'%-d %B %Y'), by \`sh bench/figures.sh\`:"
}

# The rows in $work/rows, with what each of them is.
table()
{
	printf '%s\n\n' "$(machine)"
	echo '| figure | bound | median | quartiles | |'
	echo '|---|---|---|---|---|'
	while read -r name op bound median q1 q3 verdict; do
		what=$(figure "$name" | cut -d ' ' -f 4-)
		quartiles="$q1 - $q3"
		[ "$q1" != "$q3" ] || quartiles=
		echo "| \`$name\` $what | $op $bound | $median |" \
			"$quartiles | $verdict |"
	done <"$work/rows"
}

# Puts the table between the two comments in README.md.
write_readme()
{
	table >"$work/table"
	sed -e "/^<!-- figures -->\$/r $work/table" \
		-e '/^<!-- figures -->$/,/^<!-- \/figures -->$/{/^<!--/!d;}' \
		"$readme" >"$work/readme"
	cat "$work/readme" >"$readme"
}

if [ -n "$readme" ] && ! { grep -qx '<!-- figures -->' "$readme" &&
	grep -qx '<!-- /figures -->' "$readme"; }; then
	die "$readme has no lines <!-- figures --> and <!-- /figures -->"
fi

# Most figures need the library as it is shipped.
install gcc libc6-dev binutils jq
build_release
case " $* " in
*" coverage "* | *" layout-same "*) install gcovr g++ clang ;;
esac

# print NAME BOUND MEDIAN Q1 Q3 VERDICT
print()
{
	printf '%-22s %-9s %8s %8s %8s  %s\n' "$@"
}

short=0
print name bound median q1 q3 ""
for name; do
	samples=$(fig_"$(echo "$name" | tr - _)") || exit 2
	rule=$(figure "$name" | cut -d ' ' -f -3)
	# shellcheck disable=SC2086
	row=$(echo "$samples" | judge $rule) ||
		die "$name: nothing was measured"
	# shellcheck disable=SC2086
	print "$name" "${rule% *}" $row
	echo "$name ${rule% *} $row" >>"$work/rows"
	[ "${row##* }" = ok ] || short=1
done
[ -z "$readme" ] || write_readme
exit $short
