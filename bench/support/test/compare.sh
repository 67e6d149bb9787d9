#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Goal: `dstref-bench compare` finds a regression, and only that; what it
# cannot compare it refuses in one line with status 2.
# Method: files of results made here, whose medians and intervals are known: of
# five values the 95 % bootstrap interval of the median is their range.
#
# usage: compare.sh PROGRAM
set -eu

program=${1:?give the path of dstref-bench}
# shellcheck source=bench/support/test/results.sh
. bench/support/test/results.sh

# compares STATUS OPTION... OLD NEW
compares()
{
	want=$1 status=0
	shift
	"$program" compare "$@" >"$work/out" 2>"$work/err" || status=$?
	[ "$status" -eq "$want" ] && [ ! -s "$work/err" ]
}

# verdict ROW: the last column.
verdict()
{
	sed -n "s|^$1 .*  \\([a-z ]*\\)\$|\\1|p" "$work/out"
}

old=$work/old.json
new=$work/new.json

# judged STATUS VERDICT OLD NEW [OPTION...]: two files, each of the row t/a.
judged()
{
	want=$1 word=$2
	echo "$3" | results >"$old"
	echo "$4" | results >"$new"
	shift 4
	compares "$want" "$@" "$old" "$new" &&
		[ "$(verdict t/a/threads:1)" = "$word" ]
}

same_file()
{
	results >"$old" <<-END
		t/a 1 ns 10 11 12 13 14
		t/a 2 ns 20 25 30 35 90
		t/b 2 Mops/s 1 2 3 4 5 6 7
	END
	compares 0 "$old" "$old" && [ "$(verdict t/a/threads:1)" = same ] &&
		[ "$(verdict t/b/threads:2)" = same ] &&
		grep -q '^3 rows compared: 3 same, .* 100.0 %' "$work/out"
}

# One row of three is slower, and it is that one.
one_of_three()
{
	results >"$old" <<-END
		t/a 1 ns 10 11 12 13 14
		t/b 1 ns 10 11 12 13 14
		t/c 1 ns 10 11 12 13 14
	END
	sed 's/\(t.b.*"real_time": \)/\12/' "$old" >"$new"
	compares 1 "$old" "$new" && [ "$(verdict t/a/threads:1)" = same ] &&
		[ "$(verdict t/b/threads:1)" = slower ] &&
		[ "$(verdict t/c/threads:1)" = same ] &&
		grep -q '2 same, 0 faster, 1 slower' "$work/out" &&
		compares 0 "$new" "$old" &&
		[ "$(verdict t/b/threads:1)" = faster ]
}

# The interval of five values is their range, the median their third; given in
# no order.
known_interval()
{
	judged 0 same "t/a 1 ns 3 1 5 2 4" "t/a 1 ns 50 3 4 1 2" &&
		grep -q ' 3  *3 .* 1..5  *1..50 ' "$work/out"
}

# The bootstrap draws; it draws the same each time. An interval of nine values
# is inside their range, and not a point.
repeatable()
{
	judged 0 same "t/a 1 ns 1 2 3 4 5 6 7 8 9" \
		"t/a 1 ns 1 2 3 4 5 6 7 8 9" || return 1
	cp "$work/out" "$work/before"
	compares 0 "$old" "$new" && cmp -s "$work/out" "$work/before" &&
		grep -q ' 5  *5 .* 2..8  *2..8 ' "$work/out"
}

# Rows that one file has alone are listed, and do not count.
alone()
{
	printf 't/a 1 ns 1 1 1 1 1\nt/old 1 ns 1 1 1 1 1\n' | results >"$old"
	printf 't/a 1 ns 1 1 1 1 1\nt/new 1 ns 9 9 9 9 9\n' | results >"$new"
	compares 0 "$old" "$new" &&
		grep -qx "only in $old: t/old/threads:1" "$work/out" &&
		grep -qx "only in $new: t/new/threads:1" "$work/out" &&
		grep -q '^1 rows compared' "$work/out"
}

overlap()
{
	results >"$old" <<-END
		t/a 1 ns 10 11 12 13 14
		t/b 1 ns 10 11 12 13 14
		t/c 1 ns 10 11 12 13 14
		t/d 1 ns 10 11 12 13
	END
	sed 's/\(t.b.*"real_time": \)/\12/' "$old" >"$new"
	compares 0 --overlap "$old" "$new" &&
		[ "$(cat "$work/out")" = 66.7 ]
}

# As Google Benchmark writes it: no "value", a counter of that name, aggregates,
# a benchmark that failed, and units that differ.
google()
{
	cat >"$old" <<-END
		{ "context": { "date": "2026-01-01", "num_cpus": 4 },
		"benchmarks": [
		{ "name": "BM_x/8", "run_name": "BM_x/8", "threads": 1,
		"run_type": "aggregate", "aggregate_name": "mean",
		"real_time": 1e9, "cpu_time": 1, "time_unit": "ns" },
		{ "name": "BM_bad", "run_name": "BM_bad", "threads": 1,
		"run_type": "iteration", "error_occurred": true,
		"error_message": "no" }
	END
	for i in 0 1 2 3 4; do
		cat <<-END
			, { "name": "BM_x/8", "run_name": "BM_x/8",
			"run_type": "iteration", "repetitions": 5,
			"repetition_index": $i, "threads": 1, "iterations": 9,
			"real_time": 2.$i, "cpu_time": 2e+00,
			"time_unit": "us", "value": $i }
		END
	done >>"$old"
	echo ']}' >>"$old"
	sed -e 's/: 2\./: 2000./' -e 's/"us"/"ns"/' "$old" >"$new"
	compares 0 "$old" "$new" && [ "$(verdict BM_x/8)" = same ] &&
		grep -q '^1 rows compared: 1 same' "$work/out" &&
		! grep -q BM_bad "$work/out" || return 1
	sed -e 's/: 2\./: 3./' "$old" >"$new"
	compares 1 "$old" "$new" && [ "$(verdict BM_x/8)" = slower ]
}

# text NAME ARG...: a file with that text is refused, as either of the two.
text()
{
	check "compare.$1" unreadable "$2"
}

unreadable()
{
	echo 't/a 1 ns 1 1 1 1 1' | results >"$old"
	printf %s "$1" >"$new"
	refused "$new" "run --json" "$program" compare "$old" "$new" &&
		refused "$new" "run --json" "$program" compare "$new" "$old"
}

# Wherever a file is cut, it is refused.
cut_file()
{
	echo 't/a 1 ns 1 1 1 1 1' | results >"$old"
	for size in 1 50 100 200 400; do
		head -c "$size" "$old" >"$new"
		refused "$new" "not JSON" "$program" compare "$old" "$new" ||
			return 1
	done
}

# few OLD NEW: it cannot be said that nothing is slower.
few()
{
	echo "$1" | results >"$old"
	echo "$2" | results >"$new"
	status=0
	"$program" compare "$old" "$new" >"$work/out" 2>"$work/err" ||
		status=$?
	[ "$status" -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] &&
		grep -q '5 or more' "$work/err"
}

full_stdout()
{
	status=0
	echo 't/a 1 ns 1 1 1 1 1' | results >"$old"
	"$program" compare "$old" "$old" >/dev/full 2>"$work/err" || status=$?
	[ "$status" -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] &&
		grep -q 'standard output.*room' "$work/err"
}

tight='t/a 1 ns 100 100.1 100.2 100.3 100.4'
check compare.same_file same_file
check compare.one_of_three one_of_three
check compare.slower judged 1 slower "$tight" 't/a 1 ns 120 121 122 123 124'
check compare.faster judged 0 faster "$tight" 't/a 1 ns 80 81 82 83 84'
check compare.less_mops judged 1 slower 't/a 1 Mops/s 10 10 10 10 10' \
	't/a 1 Mops/s 8 8 8 8 8'
check compare.more_mops judged 0 faster 't/a 1 Mops/s 10 10 10 10 10' \
	't/a 1 Mops/s 12 12 12 12 12'
# The intervals are apart, the change is small.
check compare.small_change judged 0 same "$tight" 't/a 1 ns 104 104 104 104 104'
check compare.threshold judged 1 slower "$tight" \
	't/a 1 ns 104 104 104 104 104' --threshold 3
check compare.threshold_is judged 0 same "$tight" \
	't/a 1 ns 120 121 122 123 124' --threshold=25
# The change is large, the intervals overlap.
check compare.wide judged 0 same 't/a 1 ns 100 100 100 100 160' \
	't/a 1 ns 150 150 150 150 150'
check compare.known_interval known_interval
check compare.repeatable repeatable
check compare.zero judged 0 same 't/a 1 ns 0 0 0 0 0' 't/a 1 ns 0 0 0 0 0'
check compare.from_zero judged 1 slower 't/a 1 ns 0 0 0 0 0' \
	't/a 1 ns 1 1 1 1 1'
check compare.alone alone
check compare.overlap overlap
check compare.google google

text empty ""
text no_json "ns per operation: 12"
text object "{}"
text array "[]"
text number "12"
text no_benchmarks '{"context": {}}'
text no_context '{"benchmarks": []}'
text none '{"context": {}, "benchmarks": []}'
text numbers '{"context": {}, "benchmarks": [1, 2]}'
text no_name '{"context": {}, "benchmarks": [{"real_time": 1}]}'
text no_time '{"context": {}, "benchmarks": [{"name": "a"}]}'
text text_for_time '{"context": {}, "benchmarks":
	[{"name": "a", "real_time": "1"}]}'
text strange_unit '{"context": {}, "benchmarks":
	[{"name": "a", "real_time": 1, "time_unit": "fortnight"}]}'
text negative_time '{"context": {}, "benchmarks":
	[{"name": "a", "real_time": -1}]}'
check compare.cut cut_file
check compare.few few 't/a 1 ns 1 1 1 1' 't/a 1 ns 9 9 9 9 9'
check compare.nothing_in_common few 't/a 1 ns 1 1 1 1 1' 't/b 1 ns 1 1 1 1 1'
check compare.no_file refused "$work/no" "No such file" \
	"$program" compare "$work/no" "$work/no"
check compare.folder refused "$work" "directory" \
	"$program" compare "$work" "$work"
check compare.no_arguments refused compare "give OLD.json" "$program" compare
check compare.one_argument refused compare "give OLD.json" \
	"$program" compare "$old"
check compare.three_arguments refused "$new" "leave it out" \
	"$program" compare "$old" "$old" "$new"
check compare.unknown_option refused --frobnicate help \
	"$program" compare --frobnicate "$old" "$old"
for value in -1 x 5x nan inf ''; do
	check "compare.threshold_'$value'" refused --threshold percentage \
		"$program" compare --threshold "$value" "$old" "$old"
done
check compare.threshold_none refused --threshold percentage \
	"$program" compare "$old" "$old" --threshold
check compare.full_stdout full_stdout
exit $failed
