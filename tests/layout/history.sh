#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The models of historic layouts (S0, S2, S3; C20). Goal: each member at the
# very offset that the threads name, so that a benchmark compares what was
# compared then. Method: their own asserts, in every build that the option
# XFRM and the option CLASS make of them (with the two structs of 2008, eight),
# for both word sizes, with the flags that move members on 32 bits, and with
# any line size of the library: history's lines stay as they were.
set -eu

cd "$(dirname "$0")/../.."
# shellcheck source=tests/layout/compilers.sh
. tests/layout/compilers.sh

builds=0
bad=0
build()
{
	builds=$((builds + 1))
	# shellcheck disable=SC2086
	$cc -x "$language" "-std=${language}11" -Wall -Wextra -Wpedantic \
		-Werror -I include -fsyntax-only "$@" tests/layout/history.c ||
		{
		echo "$cc $*: fails" >&2
		bad=$((bad + 1))
	}
}

for compiler in $compilers; do
	language=$(language "$compiler")
	for machine in 32 64; do
		pick "$compiler" "$machine" || {
			echo "not here: $compiler for $machine bits"
			continue
		}
		for options in '0 0' '0 1' '1 0' '1 1'; do
			set -- "-DROUTE_XFRM=${options% *}" \
				"-DROUTE_CLASS=${options#* }"
			for line in 64 256; do
				build "$@" "-DDSTREF_LINE_SIZE=$line"
			done
			build "$@" -O2 -fshort-enums
			[ "$machine" = 64 ] || case $compiler in
			g*) build "$@" -malign-double ;;
			esac
		done
	done
done
echo "$builds builds, $bad faults"
[ "$bad" = 0 ] && [ "$builds" -gt 0 ]
