# shellcheck shell=sh disable=SC2034
# SPDX-License-Identifier: MIT
#
# What compare.sh and plot.sh have in common: results like those of
# `dstref-bench run --json`, and the form of a check. To be read by a script
# that runs at the repository's root.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
failed=0

# check NAME COMMAND...
check()
{
	name=$1
	shift
	rm -f "$work/out" "$work/err"
	if "$@"; then
		echo "ok - $name"
		return
	fi
	echo "not ok - $name"
	[ ! -s "$work/out" ] || sed 's/^/# /' "$work/out"
	[ ! -s "$work/err" ] || sed 's/^/# /' "$work/err"
	failed=1
}

# refused ARG WORD COMMAND...: exit 2, one line with ARG and WORD, no output.
refused()
{
	arg=$1 word=$2 status=0
	shift 2
	"$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
	[ "$status" -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] &&
		grep -qe "$arg.*$word" "$work/err" && [ ! -s "$work/out" ]
}

# Lines TABLE/VARIANT THREADS UNIT VALUE... in, JSON out; a value is a run.
results()
{
	awk '
	BEGIN {
		print "{\"context\": {\"date\": \"2008-11-18T00:00:00\","
		print "\"host_name\": \"here\", \"num_cpus\": 2},"
		print "\"benchmarks\": ["
	}
	{
		gsub(/["\\]/, "\\\\&", $1)
		table = $1
		sub(/\/[^\/]*$/, "", table)
		for (i = 4; i <= NF; i++) {
			printf "%s{\"run_name\": \"%s/threads:%d\", ",
				n++ ? "," : "", $1, $2
			printf "\"run_type\": \"iteration\", "
			printf "\"repetition_index\": %d, ", i - 4
			printf "\"threads\": %d, \"unit\": \"%s\", ", $2, $3
			printf "\"title\": \"title of %s\", ", table
			printf "\"more_is_better\": %s, ",
				$3 == "ns" ? "false" : "true"
			printf "\"real_time\": %s, \"time_unit\": \"ns\"}\n", $i
		}
	}
	END { print "]}" }'
}
