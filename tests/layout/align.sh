#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Objects on their lines (C21, C22), with lines of 64, 128 and 256, under
# UBSan, and the line as a constant of the build (C23): the library asks no
# system what a line is, and refuses a program that was built for another.
#
# CC and CFLAGS are heeded. 77 says that liburcu is not installed.
set -eu

cd "$(dirname "$0")/../.."
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
cc=${CC:-cc}

echo '#include <urcu/urcu-memb.h>' >"$tmp/probe.c"
"$cc" -fsyntax-only "$tmp/probe.c" 2>/dev/null || {
	echo "skipped: liburcu is not installed (Debian: liburcu-dev)"
	exit 77
}

# compile LINE ARGS...
compile()
{
	line=$1
	shift
	# shellcheck disable=SC2086
	"$cc" ${CFLAGS-} -std=c11 -D_POSIX_C_SOURCE=200809L -O1 -g -Wall \
		-Wextra -Wpedantic -Werror -fsanitize=undefined \
		-fno-sanitize-recover=all "-DDSTREF_LINE_SIZE=$line" \
		-I include "$@"
}

for line in 64 128 256; do
	mkdir "$tmp/$line"
	for source in src/*.c; do
		compile "$line" -c -o "$tmp/$line/$(basename "$source" .c).o" \
			"$source"
	done
	compile "$line" -c -o "$tmp/align.$line.o" tests/layout/align.c
done

# link PROGRAM-LINE LIBRARY-LINE: and run.
run()
{
	compile "$2" -o "$tmp/align" "$tmp/align.$1.o" "$tmp/$2"/*.o \
		-lurcu-memb -lurcu-common -lpthread
	"$tmp/align"
}

for line in 64 128 256; do
	run "$line" "$line"
	nm -u "$tmp/$line"/*.o | grep -E 'sysconf|getauxval' && {
		echo "align.sh: the library asks the system for a line" >&2
		exit 1
	}
done
[ "$(run 128 64)" = refused ]
[ "$(run 64 256)" = refused ]
echo "others refused"
