#!/bin/sh
# SPDX-License-Identifier: MIT
#
# clang.sh [FLAG...]: clang has no word against the library, nor against a
# public header in C or in C++. It also tells what no text search can: a plain
# read or write of an atomic member, which is sequentially consistent. That it
# does tell is seen first.
set -eu

cd "$(dirname "$0")/../.."
if ! command -v clang++ >/dev/null; then
	echo "skipped: clang is not installed"
	exit 77
fi
warn="-Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only"
c="$warn -Wstrict-prototypes -Wmissing-prototypes -D_POSIX_C_SOURCE=200809L"
c="$c -Wshadow -Watomic-implicit-seq-cst"
status=0

# in_c [FLAG...] UNIT, and the same in C++; the words of $c are flags.
# shellcheck disable=SC2086
in_c()
{
	clang -std=c11 $c "$@" || status=1
}
# shellcheck disable=SC2086
in_cc()
{
	clang++ -std=c++11 $warn "$@" || status=1
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/implicit.c" <<END
#include <dstref/sock.h>
void f(struct dstref_sock *sk);
void f(struct dstref_sock *sk)
{
	sk->sndbuf = 1;
}
END
in_c "$tmp/implicit.c" 2>/dev/null
[ $status = 1 ] || {
	echo "clang does not refuse a plain write of an atomic member"
	exit 1
}
status=0

for debug in 0 1; do
	for source in src/*.c; do
		in_c -DDSTREF_DEBUG=$debug "$@" "$source"
	done
	for header in include/dstref/*.h; do
		echo "#include <${header#include/}>" >"$tmp/header.c"
		in_c -DDSTREF_DEBUG=$debug "$@" "$tmp/header.c"
		cp "$tmp/header.c" "$tmp/header.cc"
		in_cc -DDSTREF_DEBUG=$debug "$@" "$tmp/header.cc"
	done
done
exit $status
