# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# What the layout scripts share: a compiler for each language and machine,
# without any package but the compilers themselves. Offsets need no libc: what
# the public headers include is the compiler's own in C. In C++ it is
# libstdc++, whose headers for this machine serve another one well enough.
#
# To be read by a script, in the folder of the repository:
#	. tests/layout/compilers.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

mkdir "$tmp/gnu"
: >"$tmp/gnu/stubs-32.h"
cat >"$tmp/probe.c" <<'END'
#ifdef __cplusplus
#include <atomic>
#include <cstdint>
#else
#include <stdatomic.h>
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
struct need_word_size { char bytes[sizeof(void *) == WORD / 8 ? 1 : -1]; };
END

# Those of the compilers that are here; the others are said on stderr.
# COMPILERS, in the environment, asks for some of them only, C before C++.
compilers=
for name in ${COMPILERS:-gcc clang g++ clang++}; do
	if command -v "$name" >/dev/null; then
		compilers="${compilers:+$compilers }$name"
	else
		echo "not here: $name" >&2
	fi
done
[ -n "$compilers" ] || {
	echo "skipped: no compiler is installed"
	exit 77
}

# folder_of HEADER COMMAND...: where it finds a header, or nothing.
folder_of()
{
	wanted=$1
	shift
	echo "#include <$wanted>" | "$@" -M - 2>/dev/null | tr ' ' '\n' |
		sed -n "s,/$wanted\$,,p"
}

# Headers of this machine for another one: libc's, and libstdc++'s.
libc="-idirafter $(folder_of bits/wordsize.h "${compilers##* }" -x c |
	sed 's,$, -idirafter,') "
libc="$libc$(folder_of features.h "${compilers##* }" -x c) -idirafter $tmp"
libcxx=
case $compilers in
*++*)
	libcxx="-isystem $(folder_of atomic "${compilers##* }" -x c++)"
	libcxx="$libcxx -isystem $(folder_of bits/c++config.h \
		"${compilers##* }" -x c++)"
	;;
esac

language()
{
	case $1 in
	*++) echo c++ ;;
	*) echo c ;;
	esac
}

# word MACHINE: its word size. "32" and "64" are this machine's own.
word()
{
	case $1 in
	32 | arm* | mips | powerpc) echo 32 ;;
	*) echo 64 ;;
	esac
}

# pick COMPILER MACHINE: sets $cc to a command that compiles for it, or fails.
pick()
{
	case $2 in
	32 | 64) targets="none -m$2" ;;
	*) targets="--target=$2-linux-gnu" ;;
	esac
	for target in $targets; do
		[ "$target" != none ] || target=
		for more in '' "-ffreestanding $libc" \
			"-ffreestanding $libcxx $libc"; do
			cc="$1 $target $more"
			# shellcheck disable=SC2086
			if $cc "-DWORD=$(word "$2")" -x "$(language "$1")" \
				-fsyntax-only "$tmp/probe.c" 2>/dev/null; then
				return 0
			fi
		done
	done
	return 1
}
