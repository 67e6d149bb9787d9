#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Goal: the gateway forwards real packets under every policy, its books
# balance, and what it cannot do it says in one line with status 2, leaving
# nothing behind.
# Method: short runs, whose JSON is looked at; faults that a mount namespace
# makes (no TUN device, a full disk) or a limit (no network namespaces).
# Where the machine has no TUN device or allows no namespaces: status 77.
#
# usage: test.sh PROGRAM
set -eu

program=${1:?give the path of dstref-gateway}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
chmod 755 "$work" # for the test as another user
failed=0

ok()
{
	echo "ok - $1"
}

not_ok()
{
	echo "not ok - $1"
	[ ! -s "$work/out" ] || sed 's/^/# /' "$work/out"
	[ ! -s "$work/err" ] || sed 's/^/# /' "$work/err"
	failed=1
}

# The first number of a key in the JSON file.
get()
{
	sed -n "s/^ *\"$1\": \([0-9]*\),*$/\1/p" "$work/json" | head -n 1
}

# run OPTION...: one run with its JSON; false unless it ended well.
run()
{
	rm -f "$work/json"
	"$program" --json "$work/json" "$@" >"$work/out" 2>"$work/err" &&
		[ ! -s "$work/err" ] && ended_well && balanced
}

# By the summary, and by the file.
ended_well()
{
	grep -q '^verdict  *ok$' "$work/out" &&
		grep -q '"verdict": "ok"' "$work/json"
}

# in = out + dropped, packets came through, all objects are gone.
balanced()
{
	[ "$(get in)" -eq $(($(get out) + $(get dropped))) ] &&
		[ "$(get out)" -gt 0 ] && [ "$(get received)" -gt 0 ] &&
		[ "$(get dst)" -eq 0 ] && [ "$(get sock)" -eq 0 ] &&
		[ "$(get total)" -eq 0 ]
}

# check NAME CONDITION...: the condition is a command.
check()
{
	name=$1
	shift
	if "$@"; then ok "$name"; else not_ok "$name"; fi
}

policy()
{
	run --seconds 1 --churn 2000 --strays --workers 2 "$@" &&
		[ "$(get accounts)" -eq 64 ] &&
		[ "$(get routes_replaced)" -gt 500 ] &&
		[ "$(get ttl)" -gt 0 ] && [ "$(get no_flow)" -gt 0 ] &&
		[ "$(get not_udp)" -gt 0 ]
}

# A flow may have one packet in flight: the rest is dropped, and counted.
back_pressure()
{
	run --seconds 1 --sndbuf 1 && [ "$(get back_pressure)" -gt 0 ]
}

# Uncharged at transmit, the same account is empty each time it is asked.
no_back_pressure()
{
	run --seconds 1 --sndbuf 1 --early-uncharge &&
		[ "$(get back_pressure)" -eq 0 ]
}

# Completions wake who waits for room, and nobody who waits for data.
wait_for_room()
{
	run --seconds 1 --sndbuf 4000 --full=wait --churn 1000 --noref &&
		[ "$(get room)" -gt 0 ] && [ "$(get data)" -eq 0 ]
}

bare()
{
	run --seconds 1 --bare --size 1500 && [ "$(get dropped)" -eq 0 ]
}

# For a program at the other end of a pipe: JSON alone on standard output, what
# is printed on standard error.
json_to_stdout()
{
	"$program" --seconds 1 --json - >"$work/json" 2>"$work/out" &&
		: >"$work/err" && ended_well && balanced &&
		[ "$(head -c 1 "$work/json")" = "{" ] &&
		[ "$(tail -n 1 "$work/json")" = "}" ] &&
		grep -q '^forwarding by xmit$' "$work/out"
}

# SIG: the run of a minute ends at once, in order.
signalled()
{
	rm -f "$work/json"
	"$program" --seconds 60 --churn 1000 --json "$work/json" \
		>"$work/out" 2>"$work/err" &
	pid=$!
	sleep 1.5
	kill "-$1" "$pid"
	wait "$pid" && ended_well && balanced &&
		[ "$(grep -c Mpps "$work/out")" -lt 10 ] && nothing_beside
}

# No temporary file beside the JSON.
nothing_beside()
{
	[ "$(echo "$work"/json*)" = "$work/json" ]
}

# As nohup starts it: runs on, to its two lines.
hangup_ignored()
{
	rm -f "$work/json"
	(
		trap '' HUP
		exec "$program" --seconds 2 --json "$work/json" \
			>"$work/out" 2>"$work/err"
	) &
	pid=$!
	sleep 1
	kill -HUP "$pid"
	wait "$pid" && ended_well && [ "$(grep -c ' Mpps$' "$work/out")" -eq 2 ]
}

# OPTION...: output that cannot be written is not a success.
full_stdout()
{
	status=0
	mkdir -p "$work/dir"
	: >"$work/out"
	"$program" "$@" >/dev/full 2>"$work/err" || status=$?
	[ "$status" -eq 1 ] && [ "$(wc -l <"$work/err")" -eq 1 ] &&
		grep -q 'standard output.*room' "$work/err" &&
		[ -z "$(ls "$work/dir")" ]
}

full_json_to_stdout()
{
	status=0
	: >"$work/out"
	"$program" --seconds 1 --json - >/dev/full 2>"$work/err" || status=$?
	[ "$status" -eq 2 ] &&
		tail -n 1 "$work/err" | grep -qe '--json=-.*room'
}

# refused ARG WORD COMMAND...: exit 2, one line with ARG and WORD, no output,
# no file left.
refused()
{
	arg=$1 word=$2 status=0
	shift 2
	mkdir -p "$work/dir"
	"$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
	[ "$status" -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] &&
		grep -qe "$arg.*$word" "$work/err" &&
		[ ! -s "$work/out" ] && [ -z "$(ls "$work/dir")" ]
}

refuses()
{
	name=$1 arg=$2 word=$3
	shift 3
	check "$name" refused "$arg" "$word" "$program" "$@"
}

# As root of a user namespace with its own mounts; $0 is the program, $1 ours.
faulty()
{
	unshare -rm sh -c "$1" "$program" "$work"
}

full_disk()
{
	status=0
	# shellcheck disable=SC2016
	faulty 'mount -t tmpfs -o size=8k none "$1/dir" || exit 9
		"$0" --seconds 1 --json "$1/dir/a" || exit 9
		head -c 8k /dev/zero >"$1/dir/fill" 2>/dev/null
		cp "$1/dir/a" "$1/a"; status=0
		"$0" --seconds 1 --json "$1/dir/a" || status=$?
		ls "$1/dir" >"$1/left"
		cmp "$1/a" "$1/dir/a" && exit $status' \
		>"$work/out" 2>"$work/err" || status=$?
	[ "$status" -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] &&
		grep -q 'json.*room' "$work/err" &&
		[ "$(tr '\n' ' ' <"$work/left")" = "a fill " ]
}

# as_user UID COMMAND...: a user who is not root, and a device that he may
# open, as Debian sets it up. The program is at $work/program.
as_user()
{
	cp "$program" "$work/program" && chmod 755 "$work/program"
	# shellcheck disable=SC2016
	unshare -m sh -c 'mount -t tmpfs none /dev/net
		mknod -m 666 /dev/net/tun c 10 200
		exec setpriv --reuid "$0" --regid "$0" --clear-groups "$@"' "$@"
}

other_user()
{
	as_user 65534 "$work/program" --seconds 1 \
		>"$work/out" 2>"$work/err" &&
		grep -q '^verdict  *ok$' "$work/out"
}

# However many threads can be started, fewer than needed are refused, and
# those that were started end. One is liburcu's, which dies without it. A leak
# sanitizer would want a thread too.
few_threads()
{
	mkdir -p "$work/dir" && chmod 777 "$work/dir"
	for few in 2 3 4 5 6; do
		refused "too many threads" limit as_user 65533 \
			prlimit --nproc="$few" \
			env ASAN_OPTIONS=detect_leaks=0 "$work/program" \
			--seconds 1 \
			--json "$work/dir/a" || return 1
	done
}

helps()
{
	"$program" --help >"$work/out" && grep -q -- --churn= "$work/out"
}

# Can it run at all?
status=0
"$program" --seconds 1 >"$work/out" 2>"$work/err" || status=$?
if [ "$status" -eq 2 ]; then
	echo "skipped: $(cat "$work/err")"
	exit 77
fi
check "gateway.defaults" [ "$status" -eq 0 ]
check "gateway.help" helps

check "gateway.xmit" policy --release=xmit
check "gateway.xmit_noref" policy --release=xmit --noref
check "gateway.xmit_noref_early" policy --noref --early-uncharge
check "gateway.completion" policy --release=completion
check "gateway.completion_noref" policy --release completion --noref
check "gateway.back_pressure" back_pressure
check "gateway.early_has_none" no_back_pressure
check "gateway.wait_for_room" wait_for_room
check "gateway.bare" bare
check "gateway.json_to_stdout" json_to_stdout
check "gateway.sigint" signalled INT
check "gateway.sigterm" signalled TERM
if grep -q '^SigIgn:.*[13579bdf]$' /proc/self/status; then
	echo "ok - gateway.sighup # SKIP ignored here, as under nohup"
else
	check "gateway.sighup" signalled HUP
fi
check "gateway.sighup_ignored" hangup_ignored

refuses "gateway.unknown" --frobnicate help --frobnicate
refuses "gateway.stray_word" word help word
refuses "gateway.range_low" --workers=0 "1 to 16" --workers 0
refuses "gateway.range_high" --flows=1025 "1 to 1024" --flows=1025
refuses "gateway.not_a_number" --sndbuf=4k "a number" --sndbuf=4k
refuses "gateway.negative" --churn=-1 "a number" --churn=-1
refuses "gateway.no_value" --seconds "needs a value" --seconds
refuses "gateway.empty_value" --json "needs a value" --json=
refuses "gateway.no_choice" --release=later "xmit or completion" \
	--release=later
refuses "gateway.value_to_flag" --noref=yes "leave it out" --noref=yes
refuses "gateway.early_at_completion" --early-uncharge release=xmit \
	--early-uncharge --release=completion
refuses "gateway.bare_gateway" --churn=1 --bare --bare --churn=1
refuses "gateway.no_folder" "--json=$work/dir/no/file" folder \
	--json "$work/dir/no/file"
refuses "gateway.device_as_file" --json=/dev/null "not a file" --json=/dev/null
check "gateway.full_stdout" full_stdout --seconds 1 --json "$work/dir/a"
check "gateway.full_json_to_stdout" full_json_to_stdout
check "gateway.full_stdout_help" full_stdout --help

if unshare -rm true 2>/dev/null; then
	# shellcheck disable=SC2016
	check "gateway.no_tun" refused /dev/net/tun modprobe faulty \
		'mount -t tmpfs none /dev && "$0" --json "$1/dir/a"'
	# shellcheck disable=SC2016
	check "gateway.no_namespace" refused namespace sysctl faulty \
		'echo 0 >/proc/sys/user/max_net_namespaces
		"$0" --json "$1/dir/a"'
	check "gateway.full_disk" full_disk
else
	echo "ok - gateway.faults # SKIP this user may not unshare mounts"
fi
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	check "gateway.other_user" other_user
	check "gateway.few_threads" few_threads
else
	echo "ok - gateway.other_user # SKIP needs root and setpriv"
fi
exit $failed
