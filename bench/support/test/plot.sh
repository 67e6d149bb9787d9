#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Goal: `dstref-bench plot` makes a whole SVG and a whole PNG of each table, or
# says in one line with status 2 why not and leaves nothing in part.
# Method: results made here, whose texts must be found in the SVG; a gnuplot
# that is not there, or breaks off; a disk that is full. Where gnuplot is not
# installed: status 77.
#
# usage: plot.sh PROGRAM
set -eu

program=${1:?give the path of dstref-bench}
command -v gnuplot >/dev/null || {
	echo "skipped: gnuplot is not installed"
	exit 77
}
# shellcheck source=bench/support/test/results.sh
. bench/support/test/results.sh

json=$work/results.json
dir=$work/dir

# plots: the file into a new folder.
plots()
{
	rm -rf "$dir"
	"$program" plot "$json" -o "$dir" >"$work/out" 2>"$work/err" &&
		[ ! -s "$work/out" ] && [ ! -s "$work/err" ]
}

# Whole pictures by these names, and nothing beside.
pictures()
{
	[ "$(find "$dir" -type f | wc -l)" -eq $((2 * $#)) ] || return 1
	for table; do
		is_svg "$dir/$table.svg" && is_png "$dir/$table.png" || return 1
	done
}

is_svg()
{
	head -n 3 "$1" | grep -q '<svg' && tail -n 2 "$1" | grep -q '</svg>'
}

# Its first bytes and its last: the signature, and the chunk that ends it.
is_png()
{
	[ "$(head -c 8 "$1" | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ] &&
		[ "$(tail -c 8 "$1" | head -c 4)" = IEND ]
}

# shows TABLE TEXT...: the SVG has the texts.
shows()
{
	svg=$dir/$1.svg
	shift
	for text; do
		grep -qF "$text" "$svg" || {
			echo "no $text" >"$work/err"
			return 1
		}
	done
}

# Few numbers of threads: a row for each variant. More: a line for each.
two_tables()
{
	results >"$json" <<-END
		exp/few/ours 1 ns 10 11 12
		exp/few/rival 1 ns 20 21 22
		exp/few/ours 2 ns 30 31 32
		exp/few/rival 2 ns 40 41 42
		exp/many/ours 1 Mops/s 1 2 3
		exp/many/ours 2 Mops/s 2 3 4
		exp/many/ours 4 Mops/s 3 4 5
	END
	plots && pictures exp-few exp-many &&
		shows exp-few "title of exp/few" ours rival "1 thread" \
			"2 threads" ">41<" "ns per operation" here &&
		shows exp-many "title of exp/many" ours "Mops/s" threads \
			"more threads than CPUs" &&
		! grep -q "more threads than CPUs" "$dir/exp-few.svg"
}

# Powers of ten on the axis, where the medians are far apart; else none.
logarithmic()
{
	results >"$json" <<-END
		exp/far/a 1 ns 1 1 1
		exp/far/b 1 ns 1000 1000 1000
		exp/near/a 1 ns 100 100 100
		exp/near/b 1 ns 300 300 300
	END
	plots && pictures exp-far exp-near && shows exp-far "> 10<" "> 1000<" &&
		! grep -q "> 10<" "$dir/exp-near.svg" &&
		shows exp-near "> 0<" "> 300<"
}

# One repetition, zeros, one row.
degenerate()
{
	results >"$json" <<-END
		exp/one/a 1 ns 7
		exp/zero/a 1 ns 0 0 0
		exp/zero/a 2 ns 0 0 0
		exp/zero/a 4 ns 0 0 0
	END
	plots && pictures exp-one exp-zero
}

# Texts are shown, whatever is in them, and names stay in the folder.
strange_texts()
{
	results >"$json" <<-'END'
		../../up/it's`touch${IFS}pwned`"$x@y_z\ 1 ns 1 2 3
		.hidden/50%d 1 ns 1 2 3
	END
	plots && [ ! -e pwned ] && pictures -.-..-up -hidden &&
		shows -.-..-up "it's\`touch" "@y_z" && shows -hidden "50%d<"
}

# Two runs of the same file draw the same.
over_again()
{
	echo "t/a 1 ns 1 2 3" | results >"$json"
	plots && cp "$dir/t.svg" "$work/before" &&
		"$program" plot "$json" -o "$dir" && pictures t &&
		cmp -s "$dir/t.svg" "$work/before"
}

# fails ARG WORD COMMAND...: refused, and the folder is as it was.
fails()
{
	echo "t/a 1 ns 1 2 3" | results >"$json"
	rm -rf "$dir"
	mkdir "$dir"
	echo before >"$dir/t.svg"
	refused "$@" && [ "$(ls -A "$dir")" = t.svg ] &&
		[ "$(cat "$dir/t.svg")" = before ]
}

# broken SCRIPT: a gnuplot that is this.
broken()
{
	mkdir -p "$work/bin"
	printf '#!/bin/sh\n%s\n' "$1" >"$work/bin/gnuplot"
	chmod 755 "$work/bin/gnuplot"
	fails gnuplot gnuplot-nox env PATH="$work/bin:$PATH" \
		"$program" plot "$json" -o "$dir"
}

# As root of a user namespace with its own mounts: a page is left of the disk.
full_disk()
{
	results >"$json" <<-END
		t/a 1 ns 1 2 3
		t/a 2 ns 1 2 3
		t/a 4 ns 1 2 3
	END
	status=0
	rm -rf "$dir"
	mkdir "$dir"
	# shellcheck disable=SC2016
	unshare -rm sh -c 'mount -t tmpfs -o size=8k none "$2" || exit 9
		head -c 4k /dev/zero >"$2/fill"
		status=0
		"$0" plot "$1" -o "$2" || status=$?
		ls -A "$2" >"$3"
		exit $status' "$program" "$json" "$dir" "$work/left" \
		>"$work/out" 2>"$work/err" || status=$?
	[ "$status" -eq 2 ] && [ "$(wc -l <"$work/err")" -eq 1 ] &&
		grep -q -- '-o.*room' "$work/err" &&
		[ "$(cat "$work/left")" = fill ]
}

check plot.two_tables two_tables
check plot.logarithmic logarithmic
check plot.degenerate degenerate
check plot.strange_texts strange_texts
check plot.over_again over_again

check plot.no_gnuplot fails gnuplot gnuplot-nox env PATH="$work/none" \
	"$program" plot "$json" -o "$dir"
check plot.gnuplot_breaks_off broken 'echo "<svg"; exit 1'
check plot.gnuplot_is_killed broken 'echo "<svg"; kill -9 $$'
check plot.gnuplot_is_silent broken 'exit 0'
if unshare -rm true 2>/dev/null; then
	check plot.full_disk full_disk
else
	echo "ok - plot.full_disk # SKIP this user may not unshare mounts"
fi
# shellcheck disable=SC2016
check plot.foreign refused "$work/text" "not JSON" sh -c \
	'echo text >"$2"; exec "$0" plot "$2" -o "$1"' \
	"$program" "$dir" "$work/text"
check plot.no_file refused "$work/no" "No such file" \
	"$program" plot "$work/no" -o "$dir"
check plot.no_folder fails "$json/x" "another folder" \
	"$program" plot "$json" -o "$json/x"
check plot.folder_is_file fails "$json" "" "$program" plot "$json" -o "$json"
check plot.no_arguments refused plot "a file" "$program" plot
check plot.no_option refused plot "-o DIR" "$program" plot "$json"
check plot.option_alone refused -o "a folder" "$program" plot "$json" -o
check plot.two_files refused b "leave it out" "$program" plot a b -o "$dir"
check plot.unknown_option refused --frobnicate help \
	"$program" plot --frobnicate
exit $failed
