# SPDX-License-Identifier: MIT
#
# Writes the manual from the comments of the headers: a page dstref_NOUN.3 for
# each, and for each call that it describes a page that is a link to it.
#
#	awk -f manual.awk dir=DIR version=VERSION LISTS HEADER...
#
# LISTS is src/manual_lists.h, preprocessed. Of a header it reads
#	the block "DOC: noun - purpose"		NAME, DESCRIPTION
#	a block "call - purpose"		a section of its own
#	the code after it, to its ; or {	SYNOPSIS, or a struct in full
#	#include <dstref/...>			SEE ALSO
# In a block of a call, "@arg:", "Context:", "Ordering:", "Return:" and the
# like begin an item, that ends at the next or at an empty line. Lines that
# are indented by a tab are shown as they are.

# Text as roff: nothing of it is a request or an escape; names get a face.
function roff(s)
{
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	gsub(/@[a-z_]+/, "\\fI&\\fP", s)
	gsub(/\\fI@/, "\\fI", s)
	gsub(/dstref_[a-z_]+\(\)/, "\\fB&\\fP", s)
	return s ~ /^[.']/ ? "\\&" s : s
}

# One line of a comment.
function line(s,    tag, face)
{
	if (verbatim && s !~ /^\t/) {
		body = body ".fi\n.RE\n"
		verbatim = 0
	}
	if (s == "") {
		body = body ".PP\n"
	} else if (s ~ /^\t/) {
		if (!verbatim)
			body = body ".RS\n.nf\n"
		verbatim = 1
		sub(/^\t/, "", s)
		body = body roff(s) "\n"
	} else if (title && match(s, /^(@[a-z_]+|[A-Z][a-z]+):/)) {
		tag = substr(s, 1, RLENGTH - 1)
		face = sub(/^@/, "", tag) ? ".I " : ".B "
		body = body ".TP\n" face tag "\n"
		body = body roff(substr(s, RLENGTH + 2)) "\n"
	} else {
		sub(/^ +/, "", s)
		body = body roff(s) "\n"
	}
}

# The first line of a block: the page's, or a section's.
function open_block(s,    name)
{
	name = s
	sub(/^DOC: /, "", name)
	sub(/ - .*/, "", name)
	sub(/^.* - /, "", s)
	body = verbatim = ""
	if (!noun) {
		noun = name
		purpose = s
	} else {
		title = name
		body = ".SS " name "\n" roff(s) "\n.PP\n"
	}
}

function close_block()
{
	line("")
	sub(/(\.PP\n)+$/, "", body)
	if (title) {
		code = 1
		text = ""
	} else {
		description = body
	}
}

# The code that a block describes: kept until it is whole.
function declaration(s)
{
	if (title ~ /^struct /) {
		text = text s "\n"
		if (s ~ /^};/)
			close_declaration()
		return
	}
	sub(/^#.*/, "", s)
	gsub(/DSTREF_(NODISCARD|EXPORT|COLD) ?|static inline ?/, "", s)
	gsub(/^[ \t]+/, text == "" ? "" : " ", s)
	text = text (text ~ /[a-z]$/ && s ~ /^[a-z]/ ? " " : "") s
	if (s == "{" || s ~ /;$/)
		close_declaration()
}

function close_declaration()
{
	code = 0
	if (title ~ /^struct /) {
		body = body ".PP\n.RS\n.nf\n" literal(text) ".fi\n.RE\n"
	} else {
		sub(/ *{$/, ";", text)
		synopsis = synopsis ".HP\n.B \"" roff(text) "\"\n"
		links[++linked] = title
	}
	calls = calls body
	title = ""
}

function literal(s,    n, i, all, lines)
{
	n = split(s, lines, "\n")
	for (i = 1; i < n; i++)
		all = all roff(lines[i]) "\n"
	return all
}

# Ends the page of the header before.
function page(    file, i)
{
	if (!noun)
		return
	file = dir "/dstref_" noun ".3"
	printf ".TH DSTREF_%s 3 \"\" \"libdstref %s\" \"libdstref\"\n", \
		toupper(noun), version > file
	printf ".SH NAME\ndstref_%s \\- %s\n", noun, roff(purpose) > file
	printf ".SH SYNOPSIS\n.B #include <dstref/%s.h>\n%s", noun, \
		synopsis > file
	printf ".SH DESCRIPTION\n%s", description > file
	if (calls)
		printf ".SH CALLS\n%s", calls > file
	if (noun == "report")
		printf ".SH KINDS\n%s", kinds > file
	if (fields[noun])
		printf ".SH FIELDS\n.nf\n%s.fi\n", fields[noun] > file
	if (see)
		printf ".SH SEE ALSO\n%s\n", see > file
	close(file)
	for (i = 1; i <= linked; i++)
		if (links[i] != "dstref_" noun) {
			file = dir "/" links[i] ".3"
			printf ".so man3/dstref_%s.3\n", noun > file
			close(file)
		}
}

FNR == 1 {
	page()
	noun = title = synopsis = description = calls = see = ""
	code = block = linked = 0
}

/^KIND / || / KIND "/ {
	gsub(/" +"/, "")
	n = split($0, row, / *KIND "/)
	for (i = 2; i <= n; i++) {
		split(row[i], part, /" CAUSE "/)
		sub(/" *$/, "", part[2])
		kinds = kinds ".TP\n.B " roff(part[1]) "\n" roff(part[2]) "\n"
	}
	next
}

# A row of the table of fields; what its last columns say is in line.h.
function field(type, member, group, receive, transmit, completion, control,
	of, format)
{
	of = type
	sub(/.*dstref_/, "", of)
	format = "%-12s %-10s %-10s %-10s %-10s %s\n"
	if (!fields[of])
		fields[of] = sprintf(format, "field", "group", "receive",
			"transmit", "completion", "control")
	fields[of] = fields[of] sprintf(format, member, group, done[receive],
		done[transmit], done[completion], done[control])
}

BEGIN {
	done["N"] = "\\-"
	done["R"] = "read"
	done["W"] = "written"
	done["H"] = "if counted"
	done["E"] = "at its end"
}

/^FIELD struct / || / FIELD struct / {
	n = split($0, row, / *FIELD struct /)
	for (i = 2; i <= n; i++) {
		split(row[i], part, " ")
		field(part[1], part[2], part[3], part[4], part[5], part[6],
			part[7])
	}
	next
}

block && /^ \*\// {
	block = 0
	close_block()
	next
}
block {
	sub(/^ \* ?/, "")
	if (block++ == 1)
		open_block($0)
	else
		line($0)
	next
}
/^\/\*\*$/ {
	block = 1
	next
}
/^#include <dstref\// {
	sub(/.*\//, "")
	sub(/\.h.*/, "")
	see = see (see ? ",\n" : "") ".BR dstref_" $0 " (3)"
	next
}
code {
	declaration($0)
}

END {
	page()
}
