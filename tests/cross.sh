#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds the library and its tests for another machine and runs them on this
# one. Compilers and qemu are ordinary packages. The libraries are those that
# Debian has for the other machine, unpacked in build/cross/ARCH by an apt with
# a state of its own: this machine's dpkg never hears of a foreign architecture.
set -eu

usage()
{
	cat <<'END'
usage: sh tests/cross.sh [--prepare] ARCH

Builds and tests the library in build/cross-ARCH, for an ARCH of
    i386   32 bits, run by the processor of a PC
    arm64  under qemu, which on a PC does not show the weaker memory order
    s390x  under qemu: big endian, lines of 256 bytes
    musl   this machine with another C library: floors 0 to 2

The first run fetches what is missing, or --prepare does, and no more than that.
Where the tests cannot run one line says why, and the status is 77. Stress tests
take half their time: DSTREF_STRESS_SECONDS, in tests/support/stress.h, is 1.
END
}

die()
{
	echo "cross.sh: $*" >&2
	exit 2
}

skip()
{
	echo "cross.sh: skipped: $*" >&2
	exit 77
}

prepare=
[ "${1:-}" != --prepare ] || { prepare=1; shift; }
[ $# = 1 ] || die "$# arguments: give one of i386, arm64, s390x, musl"
arch=$1
machine=$(uname -m)
emulator=
line=64
case $arch in
-h | --help) usage; exit 0 ;;
i386)
	case $machine in
	x86_64 | i?86) ;;
	*) emulator=qemu-i386 ;;
	esac
	machine=i686
	;;
arm64 | aarch64) arch=arm64 machine=aarch64 emulator=qemu-aarch64 ;;
s390x) machine=s390x emulator=qemu-s390x line=256 ;;
musl) ;;
*) die "$arch: give i386, arm64, s390x or musl" ;;
esac
triplet=$machine-linux-gnu

cd "$(dirname "$0")/.."
cross=$PWD/build/cross/$arch
root=$cross/root
build=$PWD/build/cross-$arch
mkdir -p "$cross"
rm -f "$build/tests.xml"

# shellcheck source=tests/support/install.sh
. tests/support/install.sh

# need PACKAGE...: as install, but without them there is nothing to test.
need()
{
	command -v apt-get >/dev/null || skip "no apt-get to fetch $arch with"
	(install "$@") >"$cross/install.log" 2>&1 ||
		skip "$(tail -n 1 "$cross/install.log")"
}

# The machine's own sources and keys, but another architecture, nothing
# installed, nothing to run after an update, and all files in one folder.
write_apt_conf()
{
	cat <<END
APT::Architecture "$arch";
#clear APT::Architectures;
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Sandbox::User "";
Dir::State "$cross/apt";
Dir::State::status "$cross/apt/status";
Dir::Cache "$cross/apt/cache";
END
}

# The libraries and what they need but for the C library, which is with the
# compiler. The folder has its name when it is complete.
fetch()
{
	rm -rf "$cross/apt" "$root.new"
	mkdir -p "$cross/apt/lists/partial" "$cross/apt/cache/archives/partial"
	: >"$cross/apt/status"
	write_apt_conf >"$cross/apt/conf"
	(
		cd "$cross/apt"
		# An index that is stale in part may have what is wanted.
		apt-get -c conf update || true
		set -- liburcu-dev libcmocka-dev
		# shellcheck disable=SC2046
		apt-get -c conf download "$@" $(apt-cache -c conf depends "$@" |
			sed -n 's/^ *Depends: //p')
	) >"$cross/apt.log" 2>&1 ||
		skip "apt-get cannot fetch $arch packages: see $cross/apt.log"
	for package in "$cross"/apt/*.deb; do
		dpkg-deb -x "$package" "$root.new"
	done
	mv "$root.new" "$root"
	rm -rf "$cross/apt"
}

# Whether the other machine's programs run here.
try()
{
	echo 'int main(void) { return 0; }' >"$cross/try.c"
	"$triplet-gcc" -static -o "$cross/try" "$cross/try.c"
	$emulator "$cross/try" 2>"$cross/try.log" ||
		skip "no $arch program runs here: see $cross/try.log"
}

# qemu is told where the other C library is. Without qemu the programs are.
write_toolchain()
{
	libc=/usr/$triplet
	cat <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $machine)
set(CMAKE_C_COMPILER $triplet-gcc)
set(CMAKE_CXX_COMPILER $triplet-g++)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "$root")
set(ENV{PKG_CONFIG_LIBDIR} "$(echo "$root"/usr/lib/*/pkgconfig)")
END
	if [ "$emulator" ]; then
		echo "set(CMAKE_CROSSCOMPILING_EMULATOR $emulator -L $libc)"
	else
		echo 'set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath'",$libc/lib" \
			"-Wl,--dynamic-linker,$libc/lib/ld-linux.so.2\")"
	fi
}

prepare_musl()
{
	need musl-tools gcc libc6-dev liburcu-dev cmake ninja-build pkgconf
}

configure_musl()
{
	cmake -G Ninja -S tests/musl -B "$build" -DCMAKE_BUILD_TYPE=Debug \
		-DCMAKE_C_COMPILER=musl-gcc -DCMAKE_COMPILE_WARNING_AS_ERROR=ON
}

prepare_machine()
{
	need "g++-$machine-linux-gnu" cmake ninja-build pkgconf \
		${emulator:+qemu-user}
	[ -d "$root" ] || fetch
	try
}

# As the dev preset has it.
configure_machine()
{
	write_toolchain >"$cross/toolchain.cmake"
	cmake --preset dev -B "$build" --toolchain "$cross/toolchain.cmake" \
		-DDSTREF_LINE_SIZE=$line -DDSTREF_SHARED=OFF \
		-DDSTREF_BUILD_MAN=OFF -DDSTREF_BUILD_BENCH=OFF
}

kind=machine
[ "$arch" != musl ] || kind=musl
prepare_$kind
[ ! "$prepare" ] || exit 0
configure_$kind
cmake --build "$build"
export DSTREF_STRESS_SECONDS="${DSTREF_STRESS_SECONDS:-1}"
exec ctest --test-dir "$build" -R '^(unit|stress)[.]' -j "$(nproc)" \
	--no-tests=error --output-on-failure --output-junit tests.xml
