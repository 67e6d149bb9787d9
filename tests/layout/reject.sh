#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What the layout asserts must reject, they reject, and say why. Goal: no
# assert of line.h, and none beside a public struct, can go missing unseen.
# Method: each row of the tables below breaks one thing. The unbroken twin
# must compile without a warning, the broken one must not, the text of the row
# must be in what the compiler says, and with all asserts taken out the broken
# one must compile: then it was the assert.
set -eu

cd "$(dirname "$0")/../.."
# shellcheck source=tests/layout/compilers.sh
. tests/layout/compilers.sh

# file | word sizes | what breaks it | text
files='
asserts|32 64|-DBREAK_OFFSET|offset.second is not at 4: move or pad
asserts|32 64|-DBREAK_SIZE|sizeof(struct size) is not 4: a member grew
asserts|32 64|-DBREAK_STRIDE|struct stride share a line: put DSTREF_LINE_START
asserts|32 64|-DBREAK_LINES|struct lines does not take 1 lines: a group has
asserts|32 64|-DBREAK_LINE_START|line_start.second does not start a line: put
asserts|32 64|-DBREAK_SAME_LINE|same_line.first and .second belong together
asserts|32 64|-DBREAK_SAME_LINE_WHOLE|same_line_whole.second and .first belong
asserts|32 64|-DBREAK_OTHER_LINE|other_line.count shares a line with .output
asserts|32 64|-DBREAK_OTHER_LINE_END|other_line_end.output shares a line
asserts|32 64|-DBREAK_OWN_LINE_BEFORE|own_line.count has no line of its own
asserts|32 64|-DBREAK_OWN_LINE_AFTER|own_line.count has no line of its own
asserts|32 64|-DBREAK_FITS|fits.first to .last do not fit in 1 lines: make
asserts|32 64|-DBREAK_GROUP_LINE|group hot of struct group does not start
asserts|32 64|-DBREAK_GROUP_SIZE|group hot of struct group_size is larger
asserts|32 64|-DBREAK_GROUP_LINES|group hot of struct group touches more than 1
asserts|32 64|-DBREAK_GROUP_HAS|group_has.second left group hot: move it back
asserts|32 64|-DBREAK_PATH|a borrower touches more than 2 lines: a member
asserts|32 64|-DBREAK_PATH_SPAN|a borrower touches more than 2 lines: a member
asserts|32 64|-DBREAK_PATH_CHARGE|a charge touches more than 1 lines: a member
asserts|32 64|-DBREAK_PATH_CHARGE|a completion touches more than 1 lines: a
models|32|-DROUTE=route_2008_before|count is not at 0x80: move or pad
models|64|-DROUTE=route_2008_before|count is not at 0xc0: move or pad
models|32 64|-DROUTE=route_2008_before|count does not start a line: put
models|32 64|-DROUTE=route_2008_before|count shares a line with .metrics
models|32|-DROUTE=route_2008_before|count and .next belong together
models|32|-DROUTE=route_2008_before -DNO_OPTIONS|count is not at 0x80: move
models|64|-DROUTE=route_2008_before -DNO_OPTIONS|count is not at 0xc0: move
models|32 64|-DROUTE=route_2008_before -DNO_OPTIONS|count does not start a line
models|32 64|-DALONE=route_2012_before|count has no line of its own: put
models|32 64|-DALONE=route_2008_padded|count has no line of its own: put
models|32 64|-DROW=row_2022_crowded|tw_refcount shares a line with .hashinfo
umbrella|32 64|-fpack-struct|build without -fpack-struct
umbrella|32 64|-DPACKED|include outside #pragma pack
'

# header | member that moves | behind which one | text. The member's line, and
# with it what it says, goes elsewhere in a copy of the header.
moves='
dst|struct dstref_count count;|output;|dst.count shares a line with .output
dst|struct dstref_count count;|output;|dst.count left group written: move
dst|struct dstref_count count;|state;|dst.count is not at DSTREF_LINE_SIZE
dst|uint32_t mtu;|state;|dst.mtu left group read: move it back
dst|uint32_t mtu;|state;|a packet that borrows a dst touches more than 1
dst|DSTREF_GROUP_LINE(written);|struct dstref_count count;|dst.count left group
net|void *hashinfo;|struct dstref_count tw_refs;|net.tw_refs has no line of
net|void *hashinfo;|struct dstref_count tw_refs;|net.hashinfo left group
sock|struct dstref_wmem wmem;|sndbuf;|sock.wmem is not at DSTREF_LINE_SIZE
sock|struct dstref_wmem rmem;|struct dstref_wmem wmem;|wmem has no line of its
sock|sndbuf;|struct dstref_count count;|sock.sndbuf left group read
'

# header | edit of a copy, by sed | text. Where an edit puts in MORE, a member
# of a whole line is put in.
edits='
dst|s/void [*]dev;/& MORE/|struct dstref_dst does not take 2 lines
dst|s/void [*]dev;/& MORE/|read of struct dstref_dst touches more than 1
dst|s/struct dstref_dst [*]going;/& MORE/|written of struct dstref_dst touches
dst|s/GROUP_LINE(read);/GROUP_LINE(before); char a; DSTREF_GROUP(read);/|read of
dst|s/DSTREF_GROUP_LINE(/DSTREF_GROUP(/|written of struct dstref_dst does not
dst|s/DSTREF_GROUP_LINE(/DSTREF_GROUP(/|array of struct dstref_dst share
dst|s/ATOMIC(uint32_t) lastuse;/ALIGNED(256) DSTREF_&/|that holds a dst touches
net|s/uint32_t tw_limit;/& MORE/|struct dstref_net does not take 3 lines
net|s/uint32_t tw_limit;/& MORE/|lookup of struct dstref_net touches more than 1
net|s/void [*]user;/& MORE/|read of struct dstref_net touches more than 1
net|s/void [*]user;/& MORE/|net.tw_refs is not at DSTREF_LINE_SIZE
net|s/void [*]user;/& MORE/|net.hashinfo is not at 2 * DSTREF_LINE_SIZE
net|s/DSTREF_GROUP_LINE(/DSTREF_GROUP(/|array of struct dstref_net share a line
sock|s/void [*]user;/& MORE/|struct dstref_sock does not take 4 lines
sock|s/void [*]user;/& MORE/|read of struct dstref_sock touches more than 1
sock|s/void [*]user;/& MORE/|sock.rmem is not at 2 * DSTREF_LINE_SIZE
sock|s/void [*]user;/& MORE/|sock.count is not at 3 * DSTREF_LINE_SIZE
sock|s/DSTREF_GROUP_LINE(read);/& MORE/|sock.net is not at 0
sock|s/ATOMIC(uint32_t) events;/& MORE/|receive of struct dstref_sock touches
sock|s/net_entry entry;/& MORE/|identity of struct dstref_sock touches more than
sock|s/DSTREF_GROUP_LINE(/DSTREF_GROUP(/|array of struct dstref_sock share
sock|s/closed, read, R, R, N, W/closed, read, R, W, N, W/|a charge touches more
sock|s/sndbuf, read, N, R, R, W/sndbuf, read, N, R, W, W/|a completion touches
skb|s/uint32_t charge;/& MORE/|sizeof(struct dstref_skb) is not 2 * sizeof
count|s/ATOMIC(uint32_t) word;/& MORE/|struct dstref_count must be 4 bytes
wmem|s/ATOMIC(uint64_t) word;/& MORE/|struct dstref_wmem must be 8 bytes
'

bad=0
# fault WHAT: said with what the compiler said.
fault()
{
	echo "$cc: $1" >&2
	echo "$said" | grep -E 'error|warning' | cut -c 1-400 | head -n 3 >&2
	bad=$((bad + 1))
}

# compile SOURCE FLAGS...: what the compiler says, on stdout.
compile()
{
	source=$1
	shift
	# shellcheck disable=SC2086
	$cc -x "$language" "-std=${language}11" -Wall -Wextra -Wpedantic \
		"$@" -fsyntax-only "$source" 2>&1
}

# twin SOURCE FLAGS...: compiles without a warning.
twin()
{
	said=$(compile "$@" -Werror) ||
		fault "$*: the unbroken twin does not compile:"
}

# refused TEXT SOURCE FLAGS...: is rejected with TEXT.
refused()
{
	text=$1
	shift
	cases=$((cases + 1))
	if said=$(compile "$@"); then
		fault "$*: compiles, and must not: \"$text\""
		return
	fi
	case $said in
	*"$text"*) ;;
	*) fault "$*: is not rejected by \"$text\" but by:" ;;
	esac
}

# broken TEXT SOURCE FLAGS...: is refused, and by an assert only.
broken()
{
	refused "$@"
	shift
	said=$(compile "$@" -include tests/layout/reject/no_asserts.h) ||
		fault "$*: does not compile without asserts either:"
}

reject_files()
{
	for twin in asserts models umbrella; do
		twin "tests/layout/reject/$twin.c" -I include
	done
	echo "$files" >"$tmp/rows"
	while IFS='|' read -r file words flags text; do
		case " $words " in *" $machine "*) ;; *) continue ;; esac
		# shellcheck disable=SC2086
		broken "$text" "tests/layout/reject/$file.c" -I include $flags
	done <"$tmp/rows"
	refused "DSTREF_LINE_SIZE must be 64, 128 or 256" \
		tests/layout/reject/umbrella.c -I include -DDSTREF_LINE_SIZE=32
}

# move HEADER MEMBER BEHIND: in the copy of the headers.
move()
{
	awk -v member="$2" -v behind="$3" '
	function has(line, what)
	{
		return line ~ /^\t/ && index(line, what)
	}
	NR == FNR {
		if (has($0, member) && !moved)
			moved = $0
		next
	}
	has($0, member) && !gone {
		gone = 1
		next
	}
	{
		print
	}
	has($0, behind) && !done {
		print moved
		done = 1
	}' "include/dstref/$1.h" "include/dstref/$1.h" \
		>"$tmp/include/dstref/$1.h"
}

# edit HEADER SED: in the copy of the headers.
edit()
{
	echo "$2" | sed 's/MORE/char more[DSTREF_LINE_SIZE];/' >"$tmp/edit"
	sed -f "$tmp/edit" "include/dstref/$1.h" >"$tmp/include/dstref/$1.h"
}

# reject_headers TEXT HOW HEADER ARGS...: HOW is move or edit.
reject_headers()
{
	text=$1
	shift
	rm -rf "$tmp/include"
	cp -r include "$tmp/include"
	"$@"
	if cmp -s "include/dstref/$2.h" "$tmp/include/dstref/$2.h"; then
		said=
		fault "$*: changes nothing"
		return
	fi
	for line in 64 256; do
		broken "$text" tests/layout/reject/umbrella.c \
			-I "$tmp/include" "-DDSTREF_LINE_SIZE=$line"
	done
}

reject_structs()
{
	echo "$moves" | sed '/^$/d' >"$tmp/rows"
	while IFS='|' read -r header member behind text; do
		reject_headers "$text" move "$header" "$member" "$behind"
	done <"$tmp/rows"
	echo "$edits" | sed '/^$/d' >"$tmp/rows"
	while IFS='|' read -r header sed text; do
		reject_headers "$text" edit "$header" "$sed"
	done <"$tmp/rows"
}

cases=0
for compiler in $compilers; do
	language=$(language "$compiler")
	for machine in 32 64; do
		pick "$compiler" "$machine" || {
			echo "not here: $compiler for $machine bits"
			continue
		}
		reject_files
		reject_structs
	done
done
echo "$cases rejected, $bad faults"
[ "$bad" = 0 ]
