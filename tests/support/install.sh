# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# install PACKAGE...: sees to it that Debian packages are there. Those that
# are missing are installed, with sudo when not root. Where neither is possible
# it names them and ends the script with status 2.
#
# To be read by a script: . tests/support/install.sh

# The packages among the arguments that are not installed.
install_missing()
{
	for package; do
		case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) in
		*' installed') ;;
		*) printf ' %s' "$package" ;;
		esac
	done
}

install()
{
	if ! command -v dpkg-query >/dev/null; then
		echo "not Debian: taking for granted what it calls $*" >&2
		return 0
	fi
	missing=$(install_missing "$@")
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" = 0 ]; then
		sudo=
	elif command -v sudo >/dev/null; then
		sudo=sudo
	else
		echo "missing:$missing: install them, or run this as root" >&2
		exit 2
	fi
	echo "installing$missing"
	# An index that is stale in part may still have what is wanted.
	$sudo apt-get -qq update || true
	# shellcheck disable=SC2086
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
		--no-install-recommends $missing >/dev/null || {
		echo "missing:$missing: apt-get could not install them" >&2
		exit 2
	}
}
