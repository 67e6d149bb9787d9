/* SPDX-License-Identifier: MIT */
/*
 * dwarf - the structs of an object file, as its debug information has them
 *
 * Goal: what a debugger, or pahole, is told is what the lists of fields say.
 * Method: prints table.c's lines from the other end: for each struct whose
 * name begins with dstref_, each member with its offset and size, those of
 * nested structs without a name under their path. The marks of groups are
 * members of size zero, and are printed too. dwarf.sh compares. libdwfl reads
 * the file, for an object's debug information is not relocated yet.
 */
#include <dwarf.h>
#include <elfutils/libdwfl.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what)
{
	fprintf(stderr, "dwarf: %s: %s, %s\n", what, dwfl_errmsg(-1),
		dwarf_errmsg(-1));
	exit(2);
}

/* The type of a member, without what only qualifies it. */
static void type_of(Dwarf_Die *member, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;
	Dwarf_Die die;

	if (!dwarf_attr_integrate(member, DW_AT_type, &attribute) ||
	    !dwarf_formref_die(&attribute, &die) ||
	    dwarf_peel_type(&die, type) != 0)
		fail("a member without a type");
}

/*
 * An array of no elements has no last index, or, as g++ writes it, the last
 * index -1 in 32 bits.
 */
static Dwarf_Word size_of(Dwarf_Die *type)
{
	Dwarf_Word size;

	if (dwarf_aggregate_size(type, &size) != 0 || size > UINT32_MAX)
		return 0;
	return size;
}

static Dwarf_Word offset_of(Dwarf_Die *member)
{
	Dwarf_Attribute attribute;
	Dwarf_Word offset;

	if (!dwarf_attr(member, DW_AT_data_member_location, &attribute))
		return 0;
	if (dwarf_formudata(&attribute, &offset) != 0)
		fail("a member whose offset is no constant");
	return offset;
}

static void print_members(Dwarf_Die *parent, const char *path, Dwarf_Word base)
{
	Dwarf_Die member, type;
	char name[256];

	if (dwarf_child(parent, &member) != 0)
		return;
	do {
		if (dwarf_tag(&member) != DW_TAG_member)
			continue;
		type_of(&member, &type);
		Dwarf_Word offset = base + offset_of(&member);

		snprintf(name, sizeof(name), "%s.%s", path,
			 dwarf_diename(&member));
		if (dwarf_tag(&type) == DW_TAG_structure_type &&
		    !dwarf_diename(&type))
			print_members(&type, name, offset);
		else
			printf("struct %s %llu %llu\n", name,
			       (unsigned long long)offset,
			       (unsigned long long)size_of(&type));
	} while (dwarf_siblingof(&member, &member) == 0);
}

static void print_unit(Dwarf_Die *unit)
{
	Dwarf_Die die;

	if (dwarf_child(unit, &die) != 0)
		return;
	do {
		const char *name = dwarf_diename(&die);

		if (dwarf_tag(&die) == DW_TAG_structure_type && name &&
		    strncmp(name, "dstref_", 7) == 0)
			print_members(&die, name, 0);
	} while (dwarf_siblingof(&die, &die) == 0);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: dwarf OBJECT\n", stderr);
		return 2;
	}
	static const Dwfl_Callbacks callbacks = {
		.section_address = dwfl_offline_section_address,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);
	Dwarf_Die *unit = NULL;
	Dwarf_Addr bias;

	if (!dwfl || !dwfl_report_offline(dwfl, argv[1], argv[1], -1) ||
	    dwfl_report_end(dwfl, NULL, NULL) != 0)
		fail(argv[1]);
	while ((unit = dwfl_nextcu(dwfl, unit, &bias)))
		print_unit(unit);
	dwfl_end(dwfl);
	return 0;
}
