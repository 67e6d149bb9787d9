#!/bin/sh
# SPDX-License-Identifier: MIT
#
# selftest.sh PROGRAM FAULTY RANDOM: the explorer is held against what is known
# of small programs (selftest.c), against a search without the reduction, for
# those and for drawn ones (selftest_random.c), and against faults of each kind
# (selftest_fail.c): numbers of schedules, sets of outcomes under each memory
# model, reports, replays, bounds, seeds, and what it says to bad input.
set -eu

program=$1
faulty=$2
drawn=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
status=0

wrong()
{
	echo "wrong: $*"
	status=1
}

# A search with the reduction sees the traces and the outcomes of one without.
for memory in sc tso weak; do
	option=
	[ $memory = sc ] || option=--$memory
	# shellcheck disable=SC2086
	for search in '' --no-reduction; do
		"$program" --outcomes $option $search >"$tmp/$memory$search"
		grep ^outcomes "$tmp/$memory$search" >"$tmp/$memory$search.set"
	done
	cmp -s "$tmp/$memory.set" "$tmp/$memory--no-reduction.set" || {
		wrong "$memory: the reduction sees other traces:"
		diff "$tmp/$memory.set" "$tmp/$memory--no-reduction.set" || :
	}
done

# The same for programs that are drawn; where the plain search is too large it
# is cut, and then there is nothing to compare.
compared=0
for option in '' --tso --weak; do
	for name in $("$drawn" --list); do
		# shellcheck disable=SC2086
		"$drawn" --case "$name" $option --outcomes >"$tmp/reduced"
		# shellcheck disable=SC2086
		"$drawn" --case "$name" $option --outcomes --no-reduction \
			--max 30000 >"$tmp/plain"
		grep -q 'cut at' "$tmp/plain" && continue
		compared=$((compared + 1))
		grep ^outcomes "$tmp/reduced" >"$tmp/reduced.set"
		grep ^outcomes "$tmp/plain" >"$tmp/plain.set"
		cmp -s "$tmp/reduced.set" "$tmp/plain.set" ||
			wrong "$option $name: the reduction sees other traces"
	done
done
[ $compared -ge 28 ] || wrong "only $compared drawn programs are compared"

# schedules MEMORY CASE NUMBER: and no trace twice
schedules()
{
	grep -q "^case $2: schedules $3," "$tmp/$1" ||
		wrong "$1: not $3 schedules: $(grep "^case $2:" "$tmp/$1")"
	grep -q "^outcomes $2: traces $3 " "$tmp/$1" ||
		wrong "$1: not $3 traces: $(grep "^outcomes $2:" "$tmp/$1")"
}

# outcomes MEMORY CASE VALUE...
outcomes()
{
	memory=$1
	name=$2
	shift 2
	found=$(sed -n "s/^outcomes $name: traces .*: //p" "$tmp/$memory")
	[ "$found" = "$*" ] ||
		wrong "$memory: $name leads to $found, and not to $*"
}

# n writers of one location: n!; n readers beside a writer: 2^n; two threads
# of 2 additions: 4! / (2! 2!), three: 6! / (2! 2! 2!); lastzero(n):
# (n + 3) 2^(n-2).
schedules sc independent 1
schedules sc writers-2 2
schedules sc writers-3 6
schedules sc writers-4 24
schedules sc readers-2 4
schedules sc readers-3 8
schedules sc add-2 6
schedules sc add-3 90
schedules sc last-zero 12
schedules sc mutex-1 2
schedules sc mutex-2 6
schedules sc mutex-3 6
schedules sc mutex-apart 1
schedules sc call_rcu 2
schedules sc await 1
outcomes sc writers-4 0x1 0x2 0x3 0x4
outcomes sc add-3 0x6
outcomes sc lost 0x1 0x2 0x3
outcomes sc mutex-2 0x3 0x5 0x6 0x9 0xa 0xc
outcomes sc call_rcu 0x6 0x9
outcomes sc call_rcu-read 0x0 0x100 0x1100
outcomes sc synchronize 0x0 0x1000 0x1100
outcomes sc timeout 0x1000 0x2000
outcomes sc await 0x7000

# Store buffering (SB) shows under TSO, message passing (MP) does not; without
# an order, MP shows under weak, and with release and acquire, or fences, or
# through a read-modify-write, it never does. Load buffering is not shown.
# Coherence (CoRR) is kept. IRIW shows with acquire, not with a total order.
sb='0x100 0x1000 0x1100'
mp='0x0 0x100 0x1100'
iriw='0x0 0x1 0x10 0x11 0x100 0x101 0x110 0x111 0x1000 0x1001'
for memory in sc tso weak; do
	for name in sb-fence sb-total; do
		outcomes "$memory" "$name" "$sb"
	done
	for name in mp-both mp-fences; do
		outcomes "$memory" "$name" "$mp"
	done
	outcomes "$memory" mp-sequence 0x0 0x100 0x1000 0x1100 0x2100
	outcomes "$memory" corr 0x0 0x100 0x200 0x1100 0x1200 0x2200
	outcomes "$memory" lb 0x0 0x100 0x1000
	outcomes "$memory" iriw-total "$iriw" 0x1011 0x1100 0x1101 0x1110 0x1111
done
outcomes sc sb "$sb"
outcomes tso sb 0x0 "$sb"
outcomes weak sb 0x0 "$sb"
outcomes tso sb-rmw "$sb"
outcomes weak sb-rmw 0x0 "$sb"
outcomes sc sb-own 0x1011 0x1110 0x1111
outcomes tso sb-own 0x1010 0x1011 0x1110 0x1111
for name in mp mp-release mp-acquire; do
	outcomes sc "$name" "$mp"
	outcomes tso "$name" "$mp"
	outcomes weak "$name" 0x0 0x100 0x1000 0x1100
done
outcomes tso iriw "$iriw" 0x1011 0x1100 0x1101 0x1110 0x1111
outcomes weak iriw "$iriw" 0x1010 0x1011 0x1100 0x1101 0x1110 0x1111

# Two threads of three steps: none, at most one, and at most two preemptions.
"$program" --case independent --bound 1 | grep -q 'schedules 6,.*bound 1,' ||
	wrong "bound 1: $("$program" --case independent --bound 1)"
"$program" --case independent --bound 2 | grep -q 'schedules 14,.*bound 2,' ||
	wrong "bound 2: $("$program" --case independent --bound 2)"
"$program" --case writers-4 --max 5 | grep -q 'schedules 5,.*cut at 5,' ||
	wrong "max 5: $("$program" --case writers-4 --max 5)"

# fault CASE WORDS [OPTION]: is reported in these words, and replays.
fault()
{
	code=0
	"$faulty" --case "$1" ${3:+"$3"} >"$tmp/fault" || code=$?
	[ $code = 1 ] || wrong "$1: exit $code and not 1"
	grep -q "^replay: .* ${3:-}${3:+ }--replay" "$tmp/fault" ||
		wrong "$1: the replay is not for $3"
	grep -q "fails: .*$2" "$tmp/fault" ||
		wrong "$1: not '$2': $(grep fails: "$tmp/fault")"
	replay=$(sed -n "s/^replay: .* --replay '\(.*\)'$/\1/p" "$tmp/fault")
	code=0
	"$faulty" ${3:+"$3"} --replay "$replay" >"$tmp/again" || code=$?
	[ $code = 1 ] || wrong "$1: the replay ends with $code"
	sed -n 's/.*schedule [0-9]* fails/fails/p' "$tmp/fault" >"$tmp/first"
	sed -n 's/.*schedule [0-9]* fails/fails/p' "$tmp/again" >"$tmp/second"
	cmp -s "$tmp/first" "$tmp/second" ||
		wrong "$1: another failure when replayed"
	"$faulty" --case "$1" ${3:+"$3"} --expect-failure |
		grep -q '^found after' ||
		wrong "$1: not found when expected"
}

fault assert 'assertion failed: '
fault no-release 'data race on data'
fault no-acquire 'data race on data'
fault broken-sequence 'data race on data'
fault use-after-free 'freed memory'
fault free-unordered 'free'
fault double-free 'second free'
fault beside 'beside an allocation'
fault free-inside 'not allocated'
fault leak 'left allocated'
fault malloc-unordered 'races with the allocation'
fault deadlock 'none can go on: T0 (lock), T1 (lock)'
fault lost-wakeup 'none can go on: T0 (cond woken)'
fault unlock 'does not hold'
fault use-after-reader 'free by rcu'
fault unpublish-late 'free by rcu'
fault reader-stays 'none can go on: rcu'
fault wait-inside 'inside a reader'
fault leave-twice 'outside a reader'
fault queued-twice 'head that is queued'
fault null 'signal'
fault report 'count-underflow'
fault frame 'stack of T0'
fault no-end 'no end after'
fault abort 'signal'

# What a memory model shows it alone shows, and the replay is for it.
fault store-buffer 'missed' --tso
fault store-buffer 'missed' --weak
fault older-value 'other' --weak
for name in store-buffer older-value; do
	"$faulty" --case $name >"$tmp/out" || wrong "$name: found without"
done
"$faulty" --case older-value --tso >"$tmp/out" || wrong 'tso: an older value'
"$faulty" --case older-value --weak >"$tmp/trace" || :
grep -q 'an older value' "$tmp/trace" || wrong 'no older value in the trace'

# Random schedules: the same from the same seed, and a fault is found.
for run in 1 2; do
	"$program" --random 500 --seed 7 --outcomes |
		grep ^outcomes >"$tmp/random$run"
done
cmp -s "$tmp/random1" "$tmp/random2" || wrong 'the seed does not tell all'
"$faulty" --case deadlock --random 1000 --expect-failure >"$tmp/random" ||
	wrong "not found at random: $(cat "$tmp/random")"

# No fault, though expected: 1. Bad input: one line, 2.
if "$program" --case sb --expect-failure >"$tmp/out"; then
	wrong 'a failure is found where there is none'
fi
refused()
{
	code=0
	"$program" "$@" >"$tmp/out" 2>"$tmp/err" || code=$?
	lines=$(wc -l <"$tmp/err")
	if [ "$code" != 2 ] || [ "$lines" != 1 ] || [ -s "$tmp/out" ]; then
		wrong "$*: exit $code, $(cat "$tmp/out" "$tmp/err")"
	fi
}
refused --case none
refused --bound x
refused --bound -1
refused --random 0
refused --seed ''
refused --depth 0
refused --max 1e3
refused --time -1
refused --tso --weak
refused --replay sb
refused --replay sb:7
refused --replay sb:0*
refused --replay none:0
refused --random 5 --replay sb:0
refused --nothing
refused --case
refused more

[ $status = 0 ] && echo 'the explorer finds what is known'
exit $status
