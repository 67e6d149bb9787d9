#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The public headers in every dialect (C18, C19). Goal: a program includes any
# of them, alone, in whatever order and standard, and gets the same contract.
# Method, for each compiler and standard:
#	after	each header alone in a unit, <assert.h> after it
#	before	each one between the user's <assert.h> and <atomic> and, in
#		C++, inside his extern "C"
#	short	the umbrella, where the user has macros of one letter
#	embed	the library's structs in the user's own
#	names	a program's own names beside the library's (C++)
#	break	an assert that must fail does, with its message
#	macros	what the umbrella defines and standard headers do not begins
#		with DSTREF_ or dstref_
# That offsets and sizes are the same is same.sh's.
set -eu

cd "$(dirname "$0")/../.."
# shellcheck source=tests/layout/compilers.sh
. tests/layout/compilers.sh

mkdir "$tmp/c" "$tmp/c++"
for header in include/dstref/*.h; do
	noun=$(basename "$header" .h)
	for language in c c++; do
		cat >"$tmp/$language/$noun.after" <<END
#include <dstref/$noun.h>
#include <assert.h>
static_assert(sizeof(char) == 1, "the user's");
void user(int x);
void user(int x) { assert(x); (void)x; }
END
		cat >"$tmp/$language/$noun.before" <<END
#include <assert.h>
#ifdef __cplusplus
#include <atomic>
extern "C" {
#endif
#include <dstref/$noun.h>
#include <dstref/$noun.h>
#ifdef __cplusplus
}
#endif
static_assert(sizeof(char) == 1, "the user's");
END
	done
done
for language in c c++; do
	cat >"$tmp/$language/short" <<'END'
#define C 1
#define E 2.71
#define H h
#define N 1000
#define R(x) x
#define W -
#define X(x) x
#include <dstref/dstref.h>
END
done
for language in c c++; do
	cat >"$tmp/$language/embed" <<'END'
#include <dstref/dstref.h>
DSTREF_GROUPED
struct route {
	void *table;
	struct dstref_dst dst;
	int metric;
};
struct flow {
	struct dstref_sock sk;
	void *queue;
};
struct packet {
	struct packet *next;
	struct dstref_skb skb;
};
struct port {
	struct dstref_dst_slot slot;
	struct flow *flow;
};
DSTREF_GROUPED_END
static struct dstref_dst_slot start = DSTREF_DST_SLOT_INIT;
#ifdef __cplusplus
static struct route route{};
#else
static struct route route = { 0 };
#endif
unsigned int user(struct flow *flow, struct packet *packet, struct port *port);
unsigned int user(struct flow *flow, struct packet *packet, struct port *port)
{
	struct dstref_dst_slot own = DSTREF_DST_SLOT_INIT;

	dstref_skb_init(&packet->skb, 100);
	dstref_skb_set_owner_w(&packet->skb, &flow->sk);
	route.dst.mtu = 1500;
	route.metric += dstref_dst_slot_borrow(&own) == NULL;
	dstref_dst_slot_install(&start, &route.dst);
	return dstref_dst_slot_hold(&port->slot) == &route.dst;
}
END
done
cp tests/layout/names.cc "$tmp/c++/names"

units=0
bad=0
fault()
{
	echo "$cc $*" >&2
	bad=$((bad + 1))
}

# dialect STANDARD: every unit, and the assert that must fail.
dialect()
{
	# shellcheck disable=SC2086
	$cc "-std=$1" -Wall -Wextra -Wpedantic -Werror -I include \
		-fsyntax-only -x "$language" "$tmp/$language"/* \
		>"$tmp/said" 2>&1 || {
		fault "-std=$1: does not compile:"
		grep -E 'error' "$tmp/said" | cut -c 1-300 | head -n 5 >&2
	}
	units=$((units + $(find "$tmp/$language" -type f | wc -l)))
	# shellcheck disable=SC2086
	if $cc "-std=$1" -I include -fsyntax-only -x "$language" \
		-DBREAK_OFFSET tests/layout/reject/asserts.c >"$tmp/said" 2>&1
	then
		fault "-std=$1: an assert that must fail does not"
	elif ! grep -q 'offset.second is not at 4: move or' "$tmp/said"; then
		fault "-std=$1: an assert fails without its message"
	fi
}

# The macros of a unit that includes "$@".
macros()
{
	for header; do
		echo "#include <$header>"
	done >"$tmp/includes"
	# shellcheck disable=SC2086
	$cc -I include -dM -E -x "$language" "$tmp/includes" |
		sed 's/^#define \([A-Za-z_0-9]*\).*/\1/' | sort
}

leaks()
{
	case $language in
	c) set -- stdatomic.h ;;
	*) set -- atomic cstdint ;;
	esac
	macros "$@" stdbool.h stddef.h stdint.h >"$tmp/standard"
	macros dstref/dstref.h >"$tmp/umbrella"
	grep -q '^DSTREF_DST_H$' "$tmp/umbrella" ||
		fault "does not list macros"
	leaked=$(comm -13 "$tmp/standard" "$tmp/umbrella" |
		grep -vE '^(DSTREF|dstref)_' || true)
	# shellcheck disable=SC2086
	[ -z "$leaked" ] || fault "the umbrella leaks:" $leaked
}

for compiler in $compilers; do
	language=$(language "$compiler")
	case $language in
	c) standards='c11 c17 c2x' ;;
	*) standards='c++11 c++14 c++17 c++20 c++2b' ;;
	esac
	for machine in 64 32; do
		pick "$compiler" "$machine" || {
			echo "not here: $compiler for $machine bits"
			continue
		}
		leaks
		# The word size has little to do with dialects: both ends.
		[ "$machine" = 64 ] ||
			standards="${standards%% *} ${standards##* }"
		for standard in $standards; do
			dialect "$standard"
		done
	done
done
echo "$units units, $bad faults"
[ "$bad" = 0 ] && [ "$units" -gt 0 ]
