#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The debug information of the public structs against the lists of fields.
# Goal: no member is missing from a list, none is listed that is not there, and
# a group's marks can be seen at both its ends. Method: dwarf.c prints what the
# debug information has, table.c what the lists have; the two must agree.
set -eu

cd "$(dirname "$0")/../.."
# shellcheck source=tests/layout/compilers.sh
. tests/layout/compilers.sh

host=${compilers%% *}
echo '#include <elfutils/libdwfl.h>' >"$tmp/libdw.c"
"$host" -fsyntax-only "$tmp/libdw.c" 2>/dev/null || {
	echo "skipped: libdw is not installed (Debian: libdw-dev)"
	exit 77
}
"$host" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Werror \
	-o "$tmp/dwarf" tests/layout/dwarf.c -ldw

# What the lists have: "struct NAME.MEMBER OFFSET SIZE", and of each group the
# marks that it must have, where its first member begins and its last one ends.
from_lists()
{
	awk '
	!/^struct [a-z_]*[.]/ {
		next
	}
	{
		print $1, $2, $3, $4
	}
	$5 != "-" {
		split($2, name, ".")
		mark = "struct " name[1] ".group_" $5
		if (!(mark in begin) || $3 < begin[mark])
			begin[mark] = $3
		if ($3 + $4 > end[mark])
			end[mark] = $3 + $4
	}
	END {
		for (mark in begin) {
			print mark "_begin", begin[mark], 0
			print mark "_end", end[mark], 0
		}
	}' "$tmp/table"
}

checked=0
bad=0
for compiler in $compilers; do
	language=$(language "$compiler")
	for machine in 32 64; do
		pick "$compiler" "$machine" || {
			echo "not here: $compiler for $machine bits"
			continue
		}
		set -- -x "$language" "-std=${language}11" -I include \
			-w -Wno-psabi
		# shellcheck disable=SC2086
		$cc "$@" -S -o "$tmp/table.s" tests/layout/table.c
		# shellcheck disable=SC2086
		$cc "$@" -g -fno-eliminate-unused-debug-types \
			-c -o "$tmp/table.o" tests/layout/table.c
		sed -n 's/.*"->\(.*\)".*/\1/p' "$tmp/table.s" >"$tmp/table"
		from_lists | sort >"$tmp/lists"
		"$tmp/dwarf" "$tmp/table.o" | sort >"$tmp/debug"
		checked=$((checked + $(wc -l <"$tmp/debug")))
		diff "$tmp/lists" "$tmp/debug" >"$tmp/diff" || {
			bad=$((bad + 1))
			echo "$cc: < is in the lists, > in the debug" \
				"information" >&2
			cat "$tmp/diff" >&2
		}
	done
done
echo "$checked members and marks, $bad faults"
[ "$bad" = 0 ] && [ "$checked" -gt 0 ]
