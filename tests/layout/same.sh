#!/bin/sh
# SPDX-License-Identifier: MIT
#
# One table of offsets and sizes per word size and line size, whoever makes it.
# Goal: a program and the library agree, whatever either was built by and with.
# Method: table.c's lines, taken from the assembly, by each compiler, language,
# dialect and flag that might move a member, and for machines of either byte
# order; the first is the reference of its word size and line size.
set -eu

usage()
{
	cat <<'END'
usage: sh tests/layout/same.sh [--table MACHINE LINE]

Compares the tables of all compilers, flags and machines that are here. With
--table prints one: MACHINE is 32 or 64 for this one, or a name that clang
knows (aarch64, s390x); LINE is 64, 128 or 256.
END
}

cd "$(dirname "$0")/../.."
# shellcheck source=tests/layout/compilers.sh
. tests/layout/compilers.sh

# table COMMAND...: the table that it makes.
table()
{
	"$@" -I include -S -o "$tmp/table.s" tests/layout/table.c \
		2>"$tmp/said" || return 1
	sed -n 's/.*"->\(.*\)".*/\1/p' "$tmp/table.s"
}

case ${1-} in
'') ;;
--table)
	case ${2-} in
	32 | 64) compiler=${compilers%% *} ;;
	*) compiler=clang ;;
	esac
	pick "$compiler" "${2-}" || {
		echo "same.sh: ${2-nothing}: give a machine that $compiler" \
			"compiles for" >&2
		exit 2
	}
	# shellcheck disable=SC2086
	table $cc -std=c11 "-DDSTREF_LINE_SIZE=${3-64}"
	exit
	;;
*) usage >&2; exit 2 ;;
esac

# Flags of the user's unit, one set a line, "-" for none; with a machine before
# "|" for that one only.
cat >"$tmp/flags" <<'END'
-
-O3
-O1 -fsanitize=address
-O1 -fsanitize=undefined
-O2 -march=native
-O2 -mtune=native
-fshort-enums
-funsigned-char -fwrapv
-DNDEBUG -Os
-DDSTREF_DEBUG=1
-g
32|-malign-double
32|-O2 -march=i686 -mfpmath=387
32|-malign-double -fshort-enums
END
dialects_c='c11 c17 c2x gnu11'
dialects_cxx='c++11 c++14 c++17 c++20 c++2b gnu++17'
machines='32 64 arm mips powerpc aarch64 powerpc64 riscv64 s390x'

tables=0
bad=0

# compare FLAGS...: one table more.
compare()
{
	# shellcheck disable=SC2086
	if ! table $cc -x "$language" "-DDSTREF_LINE_SIZE=$line" "$@" \
		>"$tmp/new"; then
		# A flag that this compiler does not know changes nothing.
		unknown='unrecognized|unknown (argument|target)|unsupported'
		! grep -qE "$unknown" "$tmp/said" || return 0
		echo "$cc -DDSTREF_LINE_SIZE=$line $*: fails" >&2
		grep -E 'error' "$tmp/said" | cut -c 1-300 | head -n 3 >&2
		bad=$((bad + 1))
		return
	fi
	tables=$((tables + 1))
	reference=$tmp/$(word "$machine").$line
	[ -s "$tmp/new" ] || {
		echo "$cc $*: the table is empty" >&2
		bad=$((bad + 1))
	}
	if [ ! -f "$reference" ]; then
		mv "$tmp/new" "$reference"
	elif ! diff "$reference" "$tmp/new" >"$tmp/diff"; then
		bad=$((bad + 1))
		echo "$cc -DDSTREF_LINE_SIZE=$line $*: differs" >&2
		head -n 9 "$tmp/diff" >&2
	fi
}

compare_flags()
{
	while IFS='|' read -r only flags; do
		if [ -z "$flags" ]; then
			flags=$only
		elif [ "$only" != "$machine" ]; then
			continue
		fi
		[ "$flags" != - ] || flags=
		# shellcheck disable=SC2086
		compare "-std=${language}11" $flags
	done <"$tmp/flags"
}

compare_dialects()
{
	case $language in
	c) dialects=$dialects_c ;;
	*) dialects=$dialects_cxx ;;
	esac
	for dialect in $dialects; do
		compare "-std=$dialect"
	done
}

for machine in $machines; do
	for compiler in $compilers; do
		language=$(language "$compiler")
		pick "$compiler" "$machine" || {
			case $machine-$compiler in
			[36]*) echo "not here: $compiler for $machine bits" ;;
			*-clang*) echo "not here: $compiler for $machine" ;;
			esac
			continue
		}
		for line in 64 128 256; do
			case $machine in
			32 | 64) compare_flags ;;
			*) compare "-std=${language}11"; continue ;;
			esac
		done
		case $machine in
		32 | 64) line=64; compare_dialects ;;
		esac
	done
done

# Cross compilers of gcc, where there are some.
for triple in aarch64-linux-gnu s390x-linux-gnu arm-linux-gnueabihf \
	powerpc64le-linux-gnu i686-linux-gnu; do
	for compiler in "$triple-gcc" "$triple-g++"; do
		command -v "$compiler" >/dev/null || {
			echo "not here: $compiler"
			continue
		}
		language=$(language "$compiler")
		cc=$compiler
		case $triple in
		arm* | i686*) machine=32 ;;
		*) machine=64 ;;
		esac
		for line in 64 128 256; do
			compare "-std=${language}11"
		done
	done
done
echo "$tables tables, $(cat "$tmp"/32.64 "$tmp"/64.64 2>/dev/null |
	wc -l) lines in the two of line 64, $bad faults"
[ "$bad" = 0 ] && [ "$tables" -gt 0 ]
