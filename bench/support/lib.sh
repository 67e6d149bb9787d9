# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# What run.sh and figures.sh have in common: the build, two cores, and one
# value of the gateway's summary. To be read by a script at the repository's
# root: . bench/support/lib.sh

# shellcheck source=tests/support/install.sh
. tests/support/install.sh

release=build/release
# shellcheck disable=SC2034
gateway=$release/bench/dstref-gateway
# shellcheck disable=SC2034
bench=$release/bench/dstref-bench

# What dstref_count is compared with. A rival whose package cannot be had is
# listed by dstref-bench as not built.
install_rivals()
{
	(install libck-dev libglib2.0-dev libboost-dev libdpdk-dev) || true
}

# Installs what is missing and builds gateway and benchmark as they are shipped.
build_release()
{
	install gcc g++ libc6-dev binutils cmake ninja-build pkgconf \
		liburcu-dev libcmocka-dev libjansson-dev libhwloc-dev \
		util-linux
	mkdir -p build
	if ! { cmake --preset release &&
		cmake --build --preset release --target dstref-gateway \
			dstref-bench; } \
		>build/release.log 2>&1; then
		cat build/release.log >&2
		echo "the release preset does not build" >&2
		exit 2
	fi
}

# The first two cores that this shell may run on, as "taskset -c CPUS"; nothing
# where there are no more than two.
two_cores()
{
	[ "$(nproc)" -gt 2 ] || return 0
	sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status |
		tr , '\n' | awk -F - '
		{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) cpu[n++] = i }
		END { print "taskset -c " cpu[0] "," cpu[1] }'
}

# get KEY FILE: the first value of a key in a summary.
get()
{
	sed -n "s/^ *\"$1\": \"*\([^\",]*\)\"*,*$/\1/p" "$2" | head -n 1
}
