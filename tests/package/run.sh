#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh BUILD: what a user of the package meets. BUILD, a build of this tree
# with both libraries, is installed; minimal.c is built against it by
# pkg-config and by CMake, in C and in C++, shared and static, there and after
# the installation has moved. Then the library alone, configured where nothing
# but liburcu can be found, with a space in each path, another libdir and
# DESTDIR; last, as a part of another project. Takes CC, CXX, CFLAGS and
# CXXFLAGS; those of BUILD, when it has sanitizers.
set -eu

tree=$(cd "$(dirname "$0")/../.." && pwd)
[ -f "${1-}/CMakeCache.txt" ] || {
	echo "run.sh: ${1:-nothing}: give a build directory" >&2
	exit 2
}
build=$(cd "$1" && pwd)
: "${CC:=cc}" "${CXX:=c++}" "${CFLAGS=}" "${CXXFLAGS=}"
export CC CXX CFLAGS CXXFLAGS
# Make, so that not only the generator of the presets is tried, where it is.
if ! command -v make >/dev/null; then
	CMAKE_GENERATOR=$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' \
		"$build/CMakeCache.txt")
	export CMAKE_GENERATOR
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
minimal=$tree/tests/package/minimal.c
strict="-Wall -Wextra -Wpedantic -Werror"

step()
{
	echo "== $*"
}

# quiet COMMAND...: its output is shown only when it fails.
quiet()
{
	"$@" >"$tmp/log" 2>&1 || {
		status=$?
		cat "$tmp/log"
		echo "failed ($status): $*"
		exit 1
	}
}

# runs PROGRAM...: each prints what minimal.c prints.
runs()
{
	for program; do
		words=$("$program") || {
			echo "$program failed with $?"
			exit 1
		}
		[ "$words" = "the route by eth0 is gone" ] || {
			echo "$program printed: $words"
			exit 1
		}
	done
}

# by_pkg_config PREFIX: dstref.pc of PREFIX says all that a compiler needs.
by_pkg_config()
{
	pc=$(find "$1" -name dstref.pc)
	PKG_CONFIG_PATH=$(dirname "$pc")
	export PKG_CONFIG_PATH
	flags=$(pkg-config --cflags dstref liburcu-qsbr)
	libs=$(pkg-config --libs dstref liburcu-qsbr)
	libdir=$(pkg-config --variable=libdir dstref)
	for name in libdir includedir; do
		dir=$(cd "$(pkg-config --variable=$name dstref)" && pwd -P)
		case $dir in
		"$(cd "$1" && pwd -P)"/*) ;;
		*) echo "$name of dstref.pc is $dir, not in $1"; exit 1 ;;
		esac
	done
	archive=$(echo "$libs" | sed "s|-ldstref|$libdir/libdstref.a|")
	rpath=-Wl,-rpath,$libdir
	# The variables are lists of words.
	# shellcheck disable=SC2086
	for kind in shared static; do
		[ $kind = static ] && libs=$archive && rpath=
		quiet "$CC" -std=c11 $strict $CFLAGS $flags "$minimal" $libs \
			$rpath -o "$tmp/c-$kind"
		quiet "$CXX" -std=c++11 $strict $CXXFLAGS $flags -x c++ \
			"$minimal" -x none $libs $rpath -o "$tmp/cc-$kind"
		runs "$tmp/c-$kind" "$tmp/cc-$kind"
	done
	readelf -d "$tmp/c-shared" | grep -q 'NEEDED.*libdstref\.so\.0\]' || {
		echo "the shared program does not need libdstref.so.0"
		exit 1
	}
	if readelf -d "$tmp/c-static" | grep -q 'NEEDED.*dstref'; then
		echo "the static program needs a shared libdstref"
		exit 1
	fi
}

# cmake_project FIND TARGET...: a project that finds the library by the lines
# FIND and builds minimal.c with each TARGET, in C and in C++.
cmake_project()
{
	project="$tmp/a project"
	rm -rf "$project"
	mkdir "$project"
	cp "$minimal" "$project/minimal.c"
	cp "$minimal" "$project/minimal.cc"
	{
		cat <<-END
		cmake_minimum_required(VERSION 3.25)
		project(minimal LANGUAGES C CXX)
		set(CMAKE_CXX_STANDARD 11)
		$1
		find_package(PkgConfig REQUIRED)
		pkg_check_modules(URCU REQUIRED IMPORTED_TARGET liburcu-qsbr)
		END
		shift
		for target; do
			for unit in c cc; do
				name=minimal-$unit-${target#dstref::}
				echo "add_executable($name minimal.$unit)"
				echo "target_link_libraries($name PRIVATE" \
					"$target PkgConfig::URCU)"
			done
		done
	} >"$project/CMakeLists.txt"
}

# by_cmake [ARGUMENT...]: the project configures, builds and runs.
by_cmake()
{
	quiet cmake -S "$project" -B "$project/build" "$@"
	quiet cmake --build "$project/build"
	runs "$project"/build/minimal-*
}

if [ -f "$tree/README.md" ]; then
	step README
	# The block of C that begins as minimal.c does is minimal.c.
	awk '/^```c$/ { inside = 1; text = ""; next }
	/^```$/ { if (inside && text ~ /int main/) printf "%s", text
		inside = 0; next }
	inside { text = text $0 "\n" }' "$tree/README.md" >"$tmp/readme.c"
	diff -u "$minimal" "$tmp/readme.c" || {
		echo "README.md does not show tests/package/minimal.c as it is"
		exit 1
	}
fi
[ "$(wc -l <"$minimal")" -le 30 ] || {
	echo "minimal.c has more than 30 lines"
	exit 1
}

step "install, pkg-config"
quiet cmake --install "$build" --prefix "$tmp/first"
by_pkg_config "$tmp/first"
mv "$tmp/first" "$tmp/moved"
step "moved, pkg-config"
by_pkg_config "$tmp/moved"

step "moved, CMake"
cmake_project "find_package(dstref 0.1 CONFIG REQUIRED)" \
	dstref::dstref dstref::static
by_cmake -DCMAKE_PREFIX_PATH="$tmp/moved"

step "the library alone, static, spaces, lib/triplet, DESTDIR"
alone="$tmp/a tree"
mkdir -p "$alone" "$tmp/only liburcu"
cp -R "$tree/CMakeLists.txt" "$tree/include" "$tree/src" "$alone"
cp "$(pkg-config --variable=pcfiledir liburcu)/liburcu.pc" "$tmp/only liburcu"
PKG_CONFIG_LIBDIR="$tmp/only liburcu" PKG_CONFIG_PATH='' quiet \
	cmake -S "$alone" -B "$alone/build" -DDSTREF_SHARED=OFF \
	-DDSTREF_BUILD_TESTS=OFF -DDSTREF_BUILD_BENCH=OFF \
	-DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR=lib/triplet
quiet cmake --build "$alone/build"
DESTDIR="$tmp/a root" quiet cmake --install "$alone/build"
cmake_project "find_package(dstref 0.1 CONFIG REQUIRED)" dstref::dstref \
	dstref::static
by_cmake -Ddstref_DIR="$tmp/a root/usr/lib/triplet/cmake/dstref"
PKG_CONFIG_PATH="$tmp/a root/usr/lib/triplet/pkgconfig"
export PKG_CONFIG_PATH
# pkg-config escapes the spaces for a shell to read.
eval "quiet \"$CC\" $CFLAGS $(pkg-config --cflags dstref) \"$minimal\" \
	$(pkg-config --libs dstref liburcu-qsbr) -o \"$tmp/spaces\""
runs "$tmp/spaces"

step "as a part of a project"
cmake_project "add_subdirectory(\"$tree\" dstref EXCLUDE_FROM_ALL)" \
	dstref::dstref dstref::static
by_cmake
if [ -d "$project/build/dstref/tests" ]; then
	echo "a project that includes the library builds its tests"
	exit 1
fi
echo ok
