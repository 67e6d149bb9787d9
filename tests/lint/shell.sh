#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every shell script is clean to shellcheck, but for what it cannot see:
# functions that are called by a name in a variable (SC2317).
set -eu

cd "$(dirname "$0")/../.."
command -v shellcheck >/dev/null || {
	echo "skipped: shellcheck is not installed"
	exit 77
}
find tests bench .ci \( -name '*.sh' -o -path '.ci/*' \) -type f -exec \
	shellcheck -x -P . -e SC2317 {} +
