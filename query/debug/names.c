/* SPDX-License-Identifier: MIT */
/*
 * Symbols of C++ functions that have none: what is static in its file, and inlined everywhere, has
 * only its bare name in the debug information. What is made here reads as the compiler's would,
 * with namespaces and arguments, and is compared with patterns only.
 */
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "places_private.h"

#define TYPES_MAX 16u /* one in the other: pointers, qualifiers, typedefs */

/* Builtin types by their names in C++ and their letters (Itanium C++ ABI, chapter 5.1.5.2) */
static const struct {
	const char *name, *letter;
} builtin[] = {
	{ "bool", "b" },          { "char", "c" },
	{ "signed char", "a" },   { "unsigned char", "h" },
	{ "short int", "s" },     { "short unsigned int", "t" },
	{ "int", "i" },           { "unsigned int", "j" },
	{ "long int", "l" },      { "long unsigned int", "m" },
	{ "long long int", "x" }, { "long long unsigned int", "y" },
	{ "float", "f" },         { "double", "d" },
	{ "long double", "e" },   { "wchar_t", "w" },
	{ "char16_t", "Ds" },     { "char32_t", "Di" },
};

static const char *letter_of(const char *name)
{
	for (size_t i = 0; name && i < sizeof(builtin) / sizeof(builtin[0]); i++)
		if (!strcmp(builtin[i].name, name))
			return builtin[i].letter;
	return "z"; /* of no name that is known: `...` */
}

static void put_name(FILE *out, const char *name)
{
	if (name)
		fprintf(out, "%zu%s", strlen(name), name);
	else
		fputs("12_GLOBAL__N_1", out); /* a namespace without a name */
}

/* The name, in all that it is declared in. */
static void put_path(FILE *out, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Die declared = *die, *scopes = NULL;
	if (dwarf_attr(die, DW_AT_specification, &attribute))
		dwarf_formref_die(&attribute, &declared);
	int count = dwarf_getscopes_die(&declared, &scopes);
	fputc('N', out);
	for (int i = count - 1; i > 0; i--)
		if (dwarf_tag(&scopes[i]) != DW_TAG_compile_unit &&
		    dwarf_tag(&scopes[i]) != DW_TAG_partial_unit)
			put_name(out, dwarf_diename(&scopes[i]));
	put_name(out, dwarf_diename(&declared) ?: "");
	fputc('E', out);
	free(scopes);
}

static void put_type(FILE *out, Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Die type = *die;
	for (unsigned depth = 0; depth < TYPES_MAX; depth++) {
		if (!dwarf_attr_integrate(&type, DW_AT_type, &attribute) ||
		    !dwarf_formref_die(&attribute, &type)) {
			fputc('v', out);
			return;
		}
		switch (dwarf_tag(&type)) {
		case DW_TAG_pointer_type: fputc('P', out); break;
		case DW_TAG_reference_type: fputc('R', out); break;
		case DW_TAG_rvalue_reference_type: fputc('O', out); break;
		case DW_TAG_const_type: fputc('K', out); break;
		case DW_TAG_volatile_type: fputc('V', out); break;
		case DW_TAG_restrict_type:
		case DW_TAG_typedef: break;
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_union_type:
		case DW_TAG_enumeration_type: put_path(out, &type); return;
		default: fputs(letter_of(dwarf_diename(&type)), out); return;
		}
	}
}

static bool is_cpp(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14: return true;
	default: return false;
	}
}

char *fay_debug_made_symbol(Dwarf_Die *unit, Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	Dwarf_Die origin = *function, child;
	char *text = NULL;
	size_t size = 0;
	bool any = false;
	if (!is_cpp(unit) || dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute) ||
	    !dwarf_diename(function))
		return NULL;
	if (dwarf_attr(function, DW_AT_abstract_origin, &attribute) &&
	    !dwarf_formref_die(&attribute, &origin))
		return NULL;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	fputs("_Z", out);
	put_path(out, &origin);
	for (int more = dwarf_child(&origin, &child); !more; more = dwarf_siblingof(&child, &child))
		if (dwarf_tag(&child) == DW_TAG_formal_parameter &&
		    !dwarf_hasattr(&child, DW_AT_artificial)) {
			put_type(out, &child);
			any = true;
		}
	fputs(any ? "" : "v", out);
	return fclose(out) ? (free(text), NULL) : text;
}
