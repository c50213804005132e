/* SPDX-License-Identifier: MIT */
/*
 * The USDT markers of an object: its notes in .note.stapsdt (SystemTap, sys/sdt.h, version 3). A
 * note's description is
 *
 *	address of the marker's nop, of .stapsdt.base, of the semaphore (0 none); "provider" NUL
 *	  "name" NUL "arguments" NUL
 *
 * If prelink moved the object, .stapsdt.base is elsewhere than the note says, and the other two
 * addresses are off by as much. Strings stay in libelf's memory. A malformed note ends the reading;
 * those before it count.
 */
#include <elf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "target.h"

#define OWNER "stapsdt"
#define NT_STAPSDT 3

static bool is_text(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return true;
}

/* Takes one NUL-terminated string. */
static const char *take_string(const char **at, const char *end)
{
	const char *text = *at;
	size_t length = strnlen(text, (size_t)(end - text));

	if (length == (size_t)(end - text) || length > FAY_MARKER_MAX_STRING ||
	    !is_text(text, length))
		return NULL;
	*at = text + length + 1;
	return text;
}

static bool read_description(const char *at, size_t size, uint64_t base, struct fay_marker *marker)
{
	const char *end = at + size;
	uint64_t addresses[3];

	if (size < sizeof(addresses) + 3)
		return false;
	memcpy(addresses, at, sizeof(addresses));
	at += sizeof(addresses);
	marker->address = addresses[0] + (base ? base - addresses[1] : 0);
	marker->semaphore = addresses[2] ? addresses[2] + (base ? base - addresses[1] : 0) : 0;
	marker->provider = take_string(&at, end);
	marker->name = marker->provider ? take_string(&at, end) : NULL;
	marker->arguments = marker->name && at < end ? take_string(&at, end) : NULL;
	return marker->arguments && *marker->provider && *marker->name &&
	       !strchr(marker->provider, ':');
}

static bool append(struct fay_object *object, const struct fay_marker *marker)
{
	struct fay_marker *grown;

	if (object->marker_count == FAY_OBJECT_MAX_MARKERS)
		return false;
	if ((object->marker_count & (object->marker_count - 1)) == 0) { /* a power of two: full */
		size_t room = object->marker_count ? 2 * object->marker_count : 1;

		grown = realloc(object->markers, room * sizeof(*grown));
		if (!grown)
			return false;
		object->markers = grown;
	}
	object->markers[object->marker_count++] = *marker;
	return true;
}

static void read_notes(struct fay_object *object, Elf_Data *data, uint64_t base)
{
	size_t at = 0, name, description;
	GElf_Nhdr header;

	while (at < data->d_size) {
		const char *bytes = data->d_buf;
		struct fay_marker marker = { 0 };

		at = gelf_getnote(data, at, &header, &name, &description);
		if (!at)
			break;
		if (header.n_type != NT_STAPSDT || header.n_namesz != sizeof(OWNER) ||
		    memcmp(bytes + name, OWNER, sizeof(OWNER)))
			continue;
		if (!read_description(bytes + description, header.n_descsz, base, &marker) ||
		    !append(object, &marker))
			break;
	}
	object->markers_cut_short |= at < data->d_size;
}

void fay_object_read_markers(struct fay_object *object)
{
	Elf_Scn *section = NULL;
	uint64_t base = 0;
	size_t names;

	if (object->markers_read || elf_getshdrstrndx(object->elf, &names))
		return;
	object->markers_read = true;
	while ((section = elf_nextscn(object->elf, section))) {
		const Elf64_Shdr *header = elf64_getshdr(section);
		const char *name = header ? elf_strptr(object->elf, names, header->sh_name) : NULL;

		if (name && !strcmp(name, ".stapsdt.base"))
			base = header->sh_addr;
	}
	while ((section = elf_nextscn(object->elf, section))) {
		const Elf64_Shdr *header = elf64_getshdr(section);
		const char *name = header ? elf_strptr(object->elf, names, header->sh_name) : NULL;
		Elf_Data *data =
			name && header->sh_type == SHT_NOTE && !strcmp(name, ".note.stapsdt")
				? elf_getdata(section, NULL)
				: NULL;

		if (data && data->d_buf)
			read_notes(object, data, base);
	}
}
