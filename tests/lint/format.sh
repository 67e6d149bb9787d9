#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every C source is as clang-format 14 writes it; other versions differ in
# places, so with another one, or none, there is nothing to say.
set -eu

cd "$(dirname "$0")/../.."
format=$(command -v clang-format-14 || command -v clang-format) || {
	echo "skipped: clang-format is not installed"
	exit 77
}
case $("$format" --version) in
*"version 14."*) ;;
*) echo "skipped: $("$format" --version) is not version 14"; exit 77 ;;
esac
find include src tests bench -name '*.[ch]' ! -name manual_lists.h -exec \
	"$format" --dry-run -Werror {} +
