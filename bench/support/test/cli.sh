#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Goal: `dstref-bench list` and `run` do what their options say; what they
# cannot do they say in one line with status 2, and leave no file behind.
# Method: short runs of one experiment; results that go to a full device, a
# full disk, a closed stdout; an affinity of one CPU.
#
# usage: cli.sh PROGRAM
set -eu

program=${1:?give the path of dstref-bench}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir "$work/dir"
failed=0

# check NAME COMMAND...
check()
{
	name=$1
	shift
	: >"$work/out"
	: >"$work/err"
	if "$@"; then
		echo "ok - $name"
		return
	fi
	echo "not ok - $name"
	sed 's/^/# /' "$work/out" "$work/err"
	failed=1
}

# refused ARG WORD COMMAND...: status 2, one line with ARG and WORD, no file.
refused()
{
	arg=$1 word=$2 status=0
	shift 2
	"$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
	[ "$status" -eq 2 ] && one_line "$arg" "$word" && [ ! -s "$work/out" ]
}

one_line()
{
	[ "$(wc -l <"$work/err")" -eq 1 ] && grep -qe "$1.*$2" "$work/err" &&
		[ -z "$(ls "$work/dir")" ]
}

# refuses NAME ARG WORD ARGUMENT...
refuses()
{
	name=$1 arg=$2 word=$3
	shift 3
	check "$name" refused "$arg" "$word" "$program" "$@"
}

# run OPTION...: the shortest run of the first experiment; no complaint.
first=$("$program" list | sed -n '1s/ .*//p')
run()
{
	"$program" run "$first" --seconds=0.001 --runs=1 --threads=1,2 "$@" \
		>"$work/out" 2>"$work/err" && [ ! -s "$work/err" ]
}

lists()
{
	"$program" list >"$work/out" && [ -n "$first" ] &&
		[ "$(cut -c 1-10 "$work/out" | sort -u | wc -l)" -eq \
			"$(wc -l <"$work/out")" ]
}

helps()
{
	"$program" "$@" >"$work/out" && grep -q -- --no-pin "$work/out" &&
		"$program" --version | grep -q '^dstref-bench [0-9.]*$'
}

prints_tables()
{
	run && grep -q '^variant  .*threads  .*ratio' "$work/out" &&
		grep -q '^cpus ' "$work/out" &&
		grep -q ' baseline' "$work/out" &&
		! grep -q "$(printf '\033')" "$work/out"
}

# The environment, both forms as files, and the tables all the same.
writes_files()
{
	run --json "$work/json" --csv="$work/csv" &&
		grep -q '^variant ' "$work/out" &&
		grep -q '"run_type": "iteration"' "$work/json" &&
		grep -q '"compiler": "[A-Za-z]' "$work/json" &&
		grep -q "^\"$first\",.*\",[0-9]*,[01],0,1,\"" "$work/csv" &&
		[ "$(echo "$work"/json* "$work"/csv*)" = \
			"$work/json $work/csv" ]
}

# By any name it is written to, and not replaced.
to_stdout()
{
	inode=$(stat -c %i "$work/out")
	run --json=- && [ "$(head -c 1 "$work/out")" = "{" ] &&
		! grep -q '^variant ' "$work/out" &&
		run --csv - && head -n 1 "$work/out" | grep -q '^experiment,' &&
		run --json /dev/fd/1 && [ "$(head -c 1 "$work/out")" = "{" ] &&
		grep -q '"benchmarks"' "$work/out" &&
		[ "$(stat -c %i "$work/out")" = "$inode" ]
}

# A link stays a link, to a file that has the rights of any other.
follows_links()
{
	: >"$work/there"
	ln -sf there "$work/link"
	(umask 027 && run --json "$work/link") && [ -L "$work/link" ] &&
		grep -q benchmarks "$work/there" &&
		[ "$(stat -c %a "$work/there")" = 640 ]
}

# The device is written to and not replaced. It is mounted on a file, for the
# sake of /dev/full, should it be.
full_device()
{
	status=0
	: >"$work/full"
	# shellcheck disable=SC2016
	unshare -rm sh -c 'status=0
		mount --bind /dev/full "$1/full" || exit 9
		"$0" run "$2" --seconds=0.001 --runs=1 --json "$1/full" ||
			status=$?
		[ -c "$1/full" ] && exit $status' "$program" "$work" "$first" \
		>/dev/null 2>"$work/err" || status=$?
	[ "$status" -eq 2 ] && one_line "--json=$work/full" "No space.*room"
}

full_stdout()
{
	status=0
	"$program" "$@" >/dev/full 2>"$work/err" || status=$?
	[ "$status" -eq 2 ] && one_line "standard output" room
}

closed_stdout()
{
	status=0
	"$program" "$@" >&- 2>"$work/err" || status=$?
	[ "$status" -eq 2 ] && one_line "standard output" "is closed"
}

# The error goes nowhere, and into no file either.
closed_stderr()
{
	status=0
	"$program" run --json "$work/json" --frobnicate 2>&- || status=$?
	[ "$status" -eq 2 ]
}

gone_reader()
{
	{
		status=0
		"$program" run "$first" --seconds 0.001 --runs 1 \
			2>"$work/err" || status=$?
		echo "$status" >"$work/status"
	} | true
	[ "$(cat "$work/status")" -eq 2 ] && one_line "standard output" room
}

# $0 is the program, $1 a folder, $2 the experiment.
full_disk()
{
	status=0
	# shellcheck disable=SC2016
	unshare -rm sh -c 'mount -t tmpfs -o size=8k none "$1/dir" || exit 9
		echo before >"$1/dir/a"
		"$0" run "$2" --seconds=0.001 --runs=9 --json "$1/dir/a" || {
			status=$?
			cat "$1"/dir/* >"$1/left"
			exit $status
		}' "$program" "$work" "$first" >/dev/null 2>"$work/err" ||
		status=$?
	[ "$status" -eq 2 ] && one_line "--json=" room &&
		[ "$(cat "$work/left")" = before ]
}

# The last CPU that this shell may run on.
last=$(sed -n 's/^Cpus_allowed_list:.*[^0-9]\([0-9]*\)$/\1/p' \
	/proc/self/status)

# C25: one CPU, and not the first where there are two. A row of two threads is
# marked, and each thread is where it was told to be.
one_cpu()
{
	taskset -c "$last" "$program" run --seconds=0.001 --runs=1 \
		--threads=1,2 --json "$work/json" --csv "$work/csv" \
		>"$work/out" && grep -q "^cpus .*used $last," "$work/out" &&
		grep -q "\"used_cpus\": \"$last\"" "$work/json" &&
		grep -q '"usable_cpus": 1,' "$work/json" &&
		grep -q '^".*",2,1,0,1,"' "$work/csv" &&
		! grep -E -v '^experiment,|",(1,0|[0-9]+,1),0,[01],"' \
			"$work/csv"
}

chosen_cpu()
{
	run --cpus="$last" && grep -q "^cpus .*used $last," "$work/out" &&
		run --cpus="$last" --no-pin &&
		grep -q "^cpus .*used $last,.* not pinned" "$work/out"
}

check "bench.list" lists
check "bench.help" helps --help
check "bench.help_of_run" helps run --help
check "bench.tables" prints_tables
check "bench.files" writes_files
check "bench.stdout" to_stdout
check "bench.links" follows_links
check "bench.full_stdout" full_stdout list
check "bench.full_stdout_run" full_stdout run "$first" --seconds=0.001 \
	--runs=1 --json="$work/dir/json"
check "bench.closed_stdout" closed_stdout list
check "bench.closed_stdout_run" closed_stdout run --json="$work/dir/json"
check "bench.closed_stderr" closed_stderr
check "bench.gone_reader" gone_reader
check "bench.chosen_cpu" chosen_cpu
check "bench.c25_one_cpu" one_cpu
if unshare -rm true 2>/dev/null; then
	check "bench.full_device" full_device
	check "bench.full_disk" full_disk
else
	echo "ok - bench.full_disk # SKIP this user may not unshare mounts"
fi

refuses "bench.no_command" command --help
refuses "bench.unknown_command" walk --help walk
refuses "bench.list_argument" all "leave it out" list all
refuses "bench.unknown_experiment" nothing list run nothing
refuses "bench.twice" "$first" "leave one out" run "$first" "$first"
refuses "bench.unknown_option" --frobnicate help run --frobnicate
refuses "bench.no_value" --runs "needs a value" run --runs
refuses "bench.empty_value" --json= "needs a value" run --json=
refuses "bench.value_to_flag" --quick=yes "leave it out" run --quick=yes
for bad in "" 0 -1 1,,2 "1," x 1x 1025 2,2 99999999999999999999; do
	refuses "bench.threads_$bad" --threads= "" run --threads="$bad"
done
for bad in 0 -1 nan inf 1e9 x 1s; do
	refuses "bench.seconds_$bad" --seconds= "give seconds" \
		run --seconds="$bad"
done
for bad in 0 -1 1.5 x 10001; do
	refuses "bench.runs_$bad" --runs= "1 to 10000" run --runs="$bad"
done
for bad in 100000 x "," 0- 0,100000 -1; do
	refuses "bench.cpus_$bad" --cpus= "give CPUs" run --cpus="$bad"
done
refuses "bench.quick_and_seconds" --seconds --quick run --quick --seconds 1
refuses "bench.two_on_stdout" --csv=- "a file" run --json=- --csv=-
refuses "bench.no_folder" "--json=$work/dir/no/file" folder \
	run --json "$work/dir/no/file"
refuses "bench.folder_as_file" "--csv=$work" folder run --csv="$work"
exit $failed
