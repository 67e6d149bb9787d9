#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Builds and tests the library by the presets of CMakePresets.json, each in
# build/PRESET, and on i386, in build/cross-i386. On Debian, installs what is
# missing.
set -eu

usage()
{
	cat <<'END'
usage: sh tests/run.sh [PRESET...]

Configures, builds and tests each PRESET: dev, asan, tsan, tsan-clang and
cross-i386 when none is given; release and coverage are there too. Packages that
are missing are installed by apt-get; cross-i386 is skipped when it lacks
something still. The last line is "N passed, N failed" over all; the status is 0
when none failed.
END
}

cd "$(dirname "$0")/.."
for preset; do
	case $preset in
	-h | --help) usage; exit 0 ;;
	dev | release | asan | tsan | tsan-clang | coverage | cross-i386) ;;
	*)
		echo "run.sh: $preset: give dev, release, asan, tsan," \
			"tsan-clang, coverage or cross-i386" >&2
		exit 2
		;;
	esac
done
[ $# -gt 0 ] || set -- dev asan tsan tsan-clang cross-i386

# shellcheck source=tests/support/install.sh
. tests/support/install.sh
start=$(date +%s)
install gcc g++ libc6-dev binutils cmake make ninja-build pkgconf \
	liburcu-dev libcmocka-dev libjansson-dev \
	clang clang-format clang-tidy cppcheck jq groff-base shellcheck \
	libdw-dev
times="packages: $(($(date +%s) - start)) s"

# The thread sanitizers of gcc 12 and clang 14 do not start where the kernel
# moves maps by more than 28 bits; without moving them they do.
fixed()
{
	bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28)
	if [ "${preset#tsan}" != "$preset" ] && [ "$bits" -gt 28 ] &&
		setarch -R true 2>/dev/null; then
		setarch -R "$@"
	else
		"$@"
	fi
}

build_and_test()
{
	case $preset in
	cross-*) sh tests/cross.sh "${preset#cross-}" ;;
	*) fixed cmake --workflow --preset "$preset" ;;
	esac
}

# How many lines of ctest's report match. A test that could not be started is
# "notrun" as one that said that it skips itself; the message tells them apart.
count()
{
	grep -cE "$1" "$report" || true
}

passed=0
skipped=0
failed=0
for preset; do
	report=build/$preset/tests.xml
	start=$(date +%s)
	rm -f "$report"
	status=0
	build_and_test || status=$?
	if [ "$status" = 77 ]; then
		skipped=$((skipped + 1))
		continue
	fi
	if [ -f "$report" ]; then
		skips=$(count '<skipped message="SKIP_')
		bad=$(count '<testcase .*status="(fail|notrun)"')
		bad=$((bad - skips))
		skipped=$((skipped + skips))
		passed=$((passed + $(count '<testcase .*status="run"')))
	else
		bad=0
	fi
	# What fails outside a test, such as the build, is a failure too.
	[ "$status" = 0 ] || [ "$bad" -gt 0 ] || bad=1
	failed=$((failed + bad))
	times="$times
$preset: $(($(date +%s) - start)) s"
done

echo "$times"
[ "$skipped" = 0 ] || echo "$skipped skipped, for want of what they need"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
