#!/bin/sh
# SPDX-License-Identifier: MIT
#
# floors.sh [TREE] holds a tree against the rules that no compiler knows:
#	floor	a header includes headers of lower floors, never sideways
#	inside	a public header includes nothing of src/, nor of liburcu
#	umbrella	dstref.h includes every public header
#	order	outside atomic.h every atomic names its order, and none is
#		sequentially consistent
#	spdx	each source names its licence in its first two lines
#	columns	and fits 80 columns
# One line for each fault, "rule: file:line: what"; status 1 when there is one.
#
# floors.sh --self-test breaks each rule in a copy of the tree and demands
# that it is told: a check that cannot fail is none.
set -eu

# The floor of each noun. A header that is not here is a fault.
floors='
0 config
1 atomic line report
2 count wmem
3 split
4 net
5 dst table
6 sock dst_cache
7 skb timewait
8 dstref
'

check_includes()
{
	printf '%s' "$floors" | awk '
	FILENAME == "-" {
		for (i = 2; i <= NF; i++)
			floor[$i] = $1
		next
	}
	function fault(rule, what)
	{
		printf "%s: %s:%d: %s\n", rule, FILENAME, FNR, what
	}
	FNR == 1 {
		noun = FILENAME
		gsub(/.*\/|\.h$/, "", noun)
		if (!(noun in floor))
			fault("floor", noun " has no floor: give it one in " \
				"tests/lint/floors.sh")
	}
	!/^[ \t]*#[ \t]*include/ {
		next
	}
	/<dstref\// {
		other = $0
		sub(/.*<dstref\//, "", other)
		sub(/\.h>.*/, "", other)
		if (!(other in floor) || floor[other] >= floor[noun])
			fault("floor", noun " (" floor[noun] ") includes " \
				other " (" floor[other] "): move what it " \
				"needs to a lower floor")
		next
	}
	/"/ || /urcu/ {
		fault("inside", "a public header stands alone: " $0)
	}' - include/dstref/*.h
	for header in include/dstref/*.h; do
		name=${header#include/}
		[ "$name" = dstref/dstref.h ] ||
			grep -q "^#include <$name>" include/dstref/dstref.h ||
			echo "umbrella: $header:1: dstref.h does not include it"
	done
}

# The names that C11, C++, the compiler and liburcu give to an operation that
# is ordered fully and does not say so.
check_order()
{
	call='atomic_(load|store|exchange|compare_exchange_(weak|strong)|'
	call="${call}fetch_(add|sub|or|and|xor)|flag_(test_and_set|clear))"
	call="${call}[[:space:]]*[(]|seq_cst|SEQ_CST|__sync_|uatomic_|cmm_smp_"
	call="$call|_Atomic[[:space:](]|std::atomic"
	grep -rnE --include='*.[ch]' "$call" include src |
		grep -v '^include/dstref/atomic\.h:' |
		sed 's/^\([^:]*:[0-9]*\):[[:space:]]*/order: \1: /' || true
	grep -nH seq_cst include/dstref/atomic.h | sed 's/^/order: /' || true
}

check_text()
{
	# shellcheck disable=SC2016
	find . -name .git -prune -o -path ./build -prune -o -type f \( \
		-name '*.[ch]' -o -name '*.cc' -o -name '*.sh' -o \
		-name '*.awk' -o -name '*.map' -o -name '*.in' -o \
		-name '*.cmake' -o -name '*.supp' -o -name '*.pml' -o \
		-name CMakeLists.txt -o -path './.ci/*' \) -exec awk '
	function fault(rule, line, what)
	{
		printf "%s: %s:%d: %s\n", rule, file, line, what
	}
	function end()
	{
		if (file && !spdx)
			fault("spdx", 1, "SPDX-License-Identifier is missing")
	}
	FNR == 1 {
		end()
		file = FILENAME
		spdx = 0
	}
	FNR <= 2 && /SPDX-License-Identifier: MIT/ {
		spdx = 1
	}
	{
		while ((i = index($0, "\t")) > 0)
			$0 = substr($0, 1, i - 1) \
				substr("        ", (i - 1) % 8 + 1) \
				substr($0, i + 1)
		if (length($0) > 80)
			fault("columns", FNR, length($0) " columns")
	}
	END {
		end()
	}' {} +
}

check()
{
	faults=$(cd "$1" && { check_includes; check_order; check_text; })
	[ -z "$faults" ] && return 0
	printf '%s\n' "$faults"
	return 1
}

# breaks RULE FILE TEXT: a copy to whose FILE the line TEXT is added is
# refused by RULE.
breaks()
{
	rm -rf "$tmp/tree"
	mkdir "$tmp/tree"
	cp -R include src tests CMakeLists.txt "$tmp/tree"
	printf '%s\n' "$3" >>"$tmp/tree/$2"
	tried=$((tried + 1))
	check "$tmp/tree" | grep -vxF -f "$tmp/known" >"$tmp/out" || true
	if [ ! -s "$tmp/out" ]; then
		echo "not refused: $3 in $2"
		missed=$((missed + 1))
	elif ! grep -q "^$1: .*$2:" "$tmp/out"; then
		echo "refused, but not as $1: $3 in $2"
		cat "$tmp/out"
		missed=$((missed + 1))
	fi
}

self_test()
{
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	tried=0
	missed=0
	mit='/* SPDX-License-Identifier: MIT */'
	# What is wrong already proves nothing.
	{ echo known; check . || true; } >"$tmp/known"
	breaks floor include/dstref/count.h '#include <dstref/net.h>'
	breaks floor include/dstref/count.h '#include <dstref/wmem.h>'
	breaks floor include/dstref/net.h '# include <dstref/nobody.h>'
	breaks floor include/dstref/nobody.h "$mit"
	breaks inside include/dstref/net.h '#include "rcu.h"'
	breaks inside include/dstref/net.h '#include "../src/park.h"'
	breaks inside include/dstref/dst.h '#include <urcu/flavor.h>'
	breaks umbrella include/dstref/table.h "$mit"
	breaks order src/count.c 'int x = atomic_load(&y);'
	breaks order src/count.c 'x = atomic_fetch_add (&y, 1);'
	breaks order src/count.c 'z(memory_order_seq_cst);'
	breaks order src/count.c '__atomic_load_n(&y, __ATOMIC_SEQ_CST);'
	breaks order src/count.c '__sync_synchronize();'
	breaks order src/count.c 'uatomic_inc(&y);'
	breaks order src/count.c 'cmm_smp_mb();'
	breaks order include/dstref/dst.h 'static _Atomic(int) y;'
	breaks order include/dstref/dst.h 'static std::atomic<int> y;'
	breaks order include/dstref/atomic.h '#define X memory_order_seq_cst'
	breaks spdx src/nobody.c 'int x;'
	breaks spdx tests/nobody.sh 'true'
	breaks columns src/count.c "/* $(printf '%075d' 0) */"
	breaks columns CMakeLists.txt "$(printf '\t%073d' 0)"
	echo "$tried broken trees, $missed not refused as they should be"
	[ "$missed" = 0 ]
}

cd "$(dirname "$0")/../.."
case ${1-} in
--self-test) self_test ;;
-*) echo "floors.sh: $1: give a tree, --self-test, or nothing" >&2; exit 2 ;;
*) check "${1:-.}" ;;
esac
