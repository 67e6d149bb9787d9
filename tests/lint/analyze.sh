#!/bin/sh
# SPDX-License-Identifier: MIT
#
# analyze.sh TOOL BUILD: an analyzer has no word against any C source of the
# tree, each as BUILD/compile_commands.json compiles it first. Left out is what
# BUILD made itself, and tests/explore, whose scenarios run under the explorer's
# rules: memory never ends, and some are faults. TOOL is
#	gcc	-fanalyzer: what a path through a function does to memory, but
#		for leaks, which tidy tells: gcc 12 takes what is stored behind
#		a pointer for lost
#	tidy	clang-tidy, as .clang-tidy says
#	cppcheck	as tests/lint/cppcheck.supp says
# Another version of a tool finds other things: only Debian 12's is asked.
#
# Before that it looks at units with seeded faults, and demands that each is
# told by its name and one without a fault is not: a check that cannot fail is
# none.
set -eu

die()
{
	echo "analyze.sh: $*" >&2
	exit 2
}

# tool_of VERSION COMMAND...: the first COMMAND that there is, in $tool.
tool_of()
{
	version=$1
	shift
	for tool; do
		command -v "$tool" >/dev/null || continue
		case $("$tool" --version | tr '\n' ' ') in
		*[!0-9.]"$version"[!0-9]*) return 0 ;;
		esac
	done
	echo "skipped: $tool of version $version is not installed"
	exit 77
}

# Each runs its tool on the units of $1/compile_commands.json.
run_gcc()
{
	jq -r --arg gcc "$tool" '.[] | "cd " + (.directory | @sh) + " && " +
		(.command | sub("^[^ ]+"; $gcc)) +
		" -fanalyzer -Wno-analyzer-malloc-leak -Werror -o /dev/null" |
		@sh' \
		"$1/compile_commands.json" | xargs -P "$jobs" -n 1 sh -c
}

run_tidy()
{
	# One unit a run: in the second one it takes va_start for no start.
	jq -r '.[].file | @sh' "$1/compile_commands.json" |
		xargs -P "$jobs" -n 1 "$tool" --quiet -p "$1" 2>"$tmp/err" &&
		return
	grep -v 'warnings* generated\.$' "$tmp/err"
	return 1
}

run_cppcheck()
{
	"$tool" --quiet -j "$jobs" --project="$1/compile_commands.json" \
		--std=c11 --library=posix --library=gnu \
		--enable=warning,style,performance,portability \
		--suppressions-list=tests/lint/cppcheck.supp \
		--template=gcc --error-exitcode=1 2>&1
}

# units BUILD TREE: the database cut down to TREE's own C sources.
units()
{
	jq --arg build "$1/" --arg tree "$2/" '[.[] | select(.file |
		endswith(".c") and startswith($tree) and
		(startswith($build) or startswith($tree + "tests/explore/") |
		not))] | unique_by(.file)' \
		"$1/compile_commands.json"
}

# seed CHECK CODE: a unit in which the tool is to name CHECK; "clean" is none.
seed()
{
	seeds="$seeds $1"
	printf '#include <%s.h>\n' stddef stdint stdlib string >"$tmp/src/$1.c"
	printf '#include "%s.h"\n%s\n' "$1" "$2" >>"$tmp/src/$1.c"
	printf 'int f(int n);\n' >"$tmp/src/$1.h"
	jq -n --arg dir "$tmp" --arg file "$tmp/src/$1.c" '{ directory: $dir,
		command: "cc -std=c11 -c \($file)", file: $file }' >>"$tmp/list"
}

seed_gcc()
{
	seed double-free 'int f(int n)
		{ char *p = malloc(4); free(p); if (n) free(p); return 0; }'
	seed use-after-free 'int f(int n)
		{ int *p = calloc(1, 4); if (!p) return 0; *p = n; free(p);
		return *p; }'
	seed null-dereference 'int f(int n)
		{ int *p = n ? &n : NULL; if (n < 0) n = 0; return *p; }'
}

seed_tidy()
{
	seed bugprone-suspicious-memset-usage 'int f(int n)
		{ memset(&n, 300, sizeof(n)); return n; }'
	seed cert-msc30-c 'int f(int n) { return n + rand(); }'
	seed clang-analyzer-unix.Malloc 'int f(int n)
		{ char *p = malloc(4); if (n) return 0; free(p); return 1; }'
	seed concurrency-mt-unsafe 'int f(int n)
		{ char *p = strtok(NULL, ""); return p ? *p : n; }'
	seed misc-redundant-expression 'int f(int n)
		{ return n > 1 || n > 1; }'
	seed readability-inconsistent-declaration-parameter-name 'int f(int m)
		{ return m; }'
	seed readability-misleading-indentation 'int f(int n)
{
	if (n)
		n++;
		n++;
	return n;
}'
	# In a header, beside one that is clean.
	seed bugprone-macro-parentheses 'int f(int n) { return n; }'
	echo '#define TWICE(a) (2 * a)' \
		>>"$tmp/src/bugprone-macro-parentheses.h"
}

seed_cppcheck()
{
	seed arrayIndexOutOfBounds 'int f(int n)
		{ int a[2] = { n, n }; return a[2]; }'
	seed nullPointer 'int f(int n)
		{ int *p = NULL; if (n) p = &n; *p = 1; return n; }'
	seed uninitvar 'int f(int n) { int m; if (n) return m; return 0; }'
	seed memsetZeroBytes 'int f(int n)
		{ memset(&n, sizeof(n), 0); return n; }'
	seed invalidPointerCast 'int f(int n)
		{ float x[1] = { 0 }; double *p = (double *)x;
		return n + (int)*p; }'
	seed unreadVariable 'int f(int n) { int m = n; m = 2; return n; }'
}

self_test()
{
	mkdir -p "$tmp/src"
	cp .clang-tidy "$tmp"
	seeds=
	missed=0
	"seed_$1"
	seed clean 'int f(int n) { return n + 1; }'
	jq -s . "$tmp/list" >"$tmp/compile_commands.json"
	"run_$1" "$tmp" >"$tmp/out" 2>&1 && die "$1 passes units with faults"
	for check in $seeds; do
		want=$check
		[ "$check" != clean ] || want=.
		found=$(grep -cE "/$check\.[ch]:.*\[.*$want" "$tmp/out") || true
		case $check:$found in
		clean:0) continue ;;
		clean:* | *:0) ;;
		*) continue ;;
		esac
		echo "seeded $check: told $found times"
		missed=1
	done
	[ $missed = 0 ] || {
		cat "$tmp/out"
		exit 1
	}
	echo "each seeded fault is told:$seeds"
}

[ $# = 2 ] || die "$# arguments: give gcc, tidy or cppcheck, and a build"
cd "$(dirname "$0")/../.."
case $1 in
gcc) tool_of 12 gcc-12 gcc ;;
tidy) tool_of 14 clang-tidy-14 clang-tidy ;;
cppcheck) tool_of 2.10 cppcheck ;;
*) die "$1: give gcc, tidy or cppcheck" ;;
esac
command -v jq >/dev/null || {
	echo "skipped: jq is not installed"
	exit 77
}
[ -r "$2/compile_commands.json" ] ||
	die "$2: no compile_commands.json; configure it by a preset"
build=$(cd "$2" && pwd)

jobs=$(nproc)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
self_test "$1"
units "$build" "$PWD" >"$tmp/compile_commands.json"
count=$(jq length "$tmp/compile_commands.json")
[ "$count" -gt 0 ] || die "$2: compiles no C source of this tree"
status=0
"run_$1" "$tmp" || status=1
echo "$count units"
exit $status
