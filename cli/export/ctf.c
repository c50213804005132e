/* SPDX-License-Identifier: MIT */
/*
 * Events into CTF's data streams. Within a stream times must not go back, and saved rows lie in the
 * order in which they were drained; so the events of some 64 MiB are sorted by time and become a
 * stream, a file, of their own. Readers merge streams by time.
 */
#include "ctf_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctf_classes_private.h"

#define CHUNK (64u << 20)
#define PACKET (1u << 20)
#define CTF_MAGIC 0xc1fc1fc1u

/* As ctf_classes.c declares them; packed, little-endian. */
struct packet_header {
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream;
	uint64_t begin, end, content_bits, packet_bits;
} __attribute__((packed));

struct event_header {
	uint32_t class;
	uint64_t time;
} __attribute__((packed));

/* An encoded event in the chunk. */
struct entry {
	uint64_t time;
	uint32_t offset, size; /* bytes */
};

struct fay_ctf {
	int directory;
	bool made, finished; /* made: by us */
	char path[4096];
	struct fay_ctf_classes classes;
	uint8_t *bytes; /* of the chunk */
	size_t used;
	struct entry *entries;
	size_t entry_count, entry_room;
	uint32_t files;
	uint64_t events, events_lost;
};

/* --- the directory --- */

static bool is_empty(int directory)
{
	int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = copy < 0 ? NULL : fdopendir(copy);
	bool empty = list != NULL;
	for (const struct dirent *entry; empty && (entry = readdir(list));)
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	if (list)
		closedir(list);
	else if (copy >= 0)
		close(copy);
	return empty;
}

int fay_ctf_create(const char *directory, struct fay_ctf **result, struct fay_error *error)
{
	struct fay_ctf *ctf = calloc(1, sizeof(*ctf));
	if (ctf) {
		ctf->directory = -1;
		ctf->bytes = malloc(CHUNK);
	}
	if (!ctf || !ctf->bytes) {
		fay_ctf_destroy(ctf);
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	snprintf(ctf->path, sizeof(ctf->path), "%s", directory);
	ctf->made = !mkdir(directory, 0700);
	ctf->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ctf->directory < 0)
		fay_error_set(error, FAY_E_USAGE, "cannot make the directory '%s': %s", directory,
			      strerror(errno));
	else if (!is_empty(ctf->directory))
		fay_error_set(error, FAY_E_USAGE, "the directory '%s' is not empty", directory);
	else {
		*result = ctf;
		return FAY_OK;
	}
	ctf->finished = true; /* nothing of ours is in it */
	fay_ctf_destroy(ctf);
	return error->code;
}

static FILE *create(struct fay_ctf *ctf, const char *name, struct fay_error *error)
{
	int file = openat(ctf->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *stream = file < 0 ? NULL : fdopen(file, "w");
	if (!stream) {
		fay_error_set(error, FAY_E_INTERNAL, "cannot write '%s/%s': %s", ctf->path, name,
			      strerror(errno));
		if (file >= 0)
			close(file);
	}
	return stream;
}

static int finish_file(struct fay_ctf *ctf, FILE *file, const char *name, struct fay_error *error)
{
	bool failed = ferror(file) != 0;
	int why = errno;
	if (fclose(file) && !failed) {
		failed = true;
		why = errno;
	}
	return failed ? fay_error_set(error, FAY_E_INTERNAL, "cannot write '%s/%s': %s", ctf->path,
				      name, strerror(why))
		      : FAY_OK;
}

static void name_of_file(uint32_t number, char name[32])
{
	snprintf(name, 32, "events_%u", number);
}

void fay_ctf_destroy(struct fay_ctf *ctf)
{
	char name[32];
	if (!ctf)
		return;
	for (uint32_t i = 0; i < ctf->files && !ctf->finished; i++) {
		name_of_file(i, name);
		unlinkat(ctf->directory, name, 0);
	}
	if (!ctf->finished && ctf->directory >= 0)
		unlinkat(ctf->directory, "metadata", 0);
	if (ctf->made && !ctf->finished)
		rmdir(ctf->path);
	if (ctf->directory >= 0)
		close(ctf->directory);
	fay_ctf_classes_deinit(&ctf->classes);
	free(ctf->bytes);
	free(ctf->entries);
	free(ctf);
}

/* --- packets --- */

static int by_time(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;
	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Entries from `first` on that make one packet; returns the number of the first that does not. */
static size_t put_packet(struct fay_ctf *ctf, FILE *file, size_t first)
{
	struct packet_header header = { .magic = CTF_MAGIC, .begin = ctf->entries[first].time };
	uint64_t size = sizeof(header);
	size_t end = first;
	while (end < ctf->entry_count && (end == first || size + ctf->entries[end].size <= PACKET))
		size += ctf->entries[end++].size;
	header.end = ctf->entries[end - 1].time;
	header.content_bits = header.packet_bits = 8 * size;
	memcpy(header.uuid, ctf->classes.uuid, sizeof(header.uuid));
	fwrite(&header, sizeof(header), 1, file);
	for (size_t i = first; i < end; i++)
		fwrite(ctf->bytes + ctf->entries[i].offset, ctf->entries[i].size, 1, file);
	return end;
}

/* What the chunk holds, as a file. */
static int put_chunk(struct fay_ctf *ctf, struct fay_error *error)
{
	char name[32];
	name_of_file(ctf->files, name);
	FILE *file = ctf->entry_count ? create(ctf, name, error) : NULL;
	if (!file)
		return ctf->entry_count ? error->code : FAY_OK;
	ctf->files++;
	qsort(ctf->entries, ctf->entry_count, sizeof(*ctf->entries), by_time);
	for (size_t next = 0; next < ctf->entry_count && !ferror(file);)
		next = put_packet(ctf, file, next);
	ctf->events += ctf->entry_count;
	ctf->used = ctf->entry_count = 0;
	return finish_file(ctf, file, name, error);
}

/* --- events --- */

static bool make_entry(struct fay_ctf *ctf)
{
	if (ctf->entry_count < ctf->entry_room)
		return true;
	size_t room = ctf->entry_room ? 2 * ctf->entry_room : 4096;
	struct entry *larger = realloc(ctf->entries, room * sizeof(*larger));
	if (!larger)
		return false;
	ctf->entries = larger;
	ctf->entry_room = room;
	return true;
}

/* A string as CTF has it: up to its NUL, which is part of it. */
static size_t put_string(uint8_t *to, const char *text, size_t most)
{
	size_t length = strnlen(text, most);
	memcpy(to, text, length);
	to[length] = 0;
	return length + 1;
}

/* Names of addresses; behind the outermost frame there are empty strings. */
static size_t put_frames(const struct fay_saved *saved, const struct fay_ctf_part *part,
			 const uint8_t *from, uint8_t *to)
{
	size_t size = 0;
	for (uint32_t at = 0; at < part->size; at += 8) {
		uint64_t address;
		char number[32];
		memcpy(&address, from + at, sizeof(address));
		snprintf(number, sizeof(number), "0x%" PRIx64, address);
		const char *name = fay_saved_name(
			saved, fay_saved_address(address, !at && part->form == FAY_CTF_FRAMES));
		size += put_string(to + size, !address ? "" : name ?: number, FAY_CTF_NAME_MAX);
	}
	return size;
}

/* The row's columns behind the event's header; no more bytes than FAY_CTF_EVENT_MAX. */
static size_t encode(const struct fay_ctf_source *source, const struct fay_saved *saved,
		     const uint8_t *row, uint8_t *to)
{
	size_t size = 0;
	for (uint32_t i = 0; i < source->part_count; i++) {
		const struct fay_ctf_part *part = &source->parts[i];
		const uint8_t *from = row + part->offset;
		uint64_t hash;
		switch (part->form) {
		case FAY_CTF_STRING: {
			struct fay_text_bytes text = fay_saved_text(saved, from);
			size += put_string(to + size, text.bytes,
					   text.length + (text.cut ? FAY_TEXT_CUT_MARK : 0));
			break;
		}
		case FAY_CTF_NAME:
			memcpy(&hash, from, sizeof(hash));
			size += put_string(to + size, fay_saved_name(saved, hash) ?: "",
					   FAY_CTF_NAME_MAX);
			break;
		case FAY_CTF_FLAG: to[size++] = *from != 0; break;
		case FAY_CTF_FRAMES:
		case FAY_CTF_CALLER: size += put_frames(saved, part, from, to + size); break;
		case FAY_CTF_WORDS:
			memcpy(to + size, from, part->size);
			size += part->size;
			break;
		}
	}
	return size;
}

static int add_event(struct fay_ctf *ctf, uint32_t first_source, const struct fay_saved *saved,
		     const uint8_t *row, struct fay_error *error)
{
	uint32_t index = first_source + fay_saved_row_stream(saved);
	const struct fay_ctf_source *source = &ctf->classes.sources[index];
	uint32_t class;
	if (ctf->used > CHUNK - FAY_CTF_EVENT_MAX && put_chunk(ctf, error))
		return error->code;
	if (!make_entry(ctf) || !fay_ctf_class(&ctf->classes, index, saved, row, &class))
		return fay_error_set(error, FAY_E_LIMIT,
				     "out of memory for %zu events, or more than %u functions, or "
				     "invalid functions",
				     ctf->entry_count, FAY_CTF_CLASSES_MAX);
	struct event_header header = { .class = class };
	memcpy(&header.time, row + source->time_offset, sizeof(header.time));
	memcpy(ctf->bytes + ctf->used, &header, sizeof(header));
	size_t size = sizeof(header) +
		      encode(source, saved, row, ctf->bytes + ctf->used + sizeof(header));
	ctf->entries[ctf->entry_count++] =
		(struct entry){ header.time, (uint32_t)ctf->used, (uint32_t)size };
	ctf->used += size;
	return FAY_OK;
}

int fay_ctf_add(struct fay_ctf *ctf, struct fay_saved *saved, const char *name,
		struct fay_error *error)
{
	uint32_t first = ctf->classes.source_count;
	for (uint32_t i = 0; i < fay_saved_header(saved)->stream_count; i++)
		if (fay_ctf_source_add(&ctf->classes, saved, i, name, error))
			return error->code;
	ctf->events_lost += fay_saved_header(saved)->events_lost;
	for (const uint8_t *row; (row = fay_saved_next(saved, error));)
		if (add_event(ctf, first, saved, row, error))
			return error->code;
	return error->code;
}

int fay_ctf_finish(struct fay_ctf *ctf, uint64_t *events, struct fay_error *error)
{
	if (put_chunk(ctf, error))
		return error->code;
	FILE *file = create(ctf, "metadata", error);
	if (!file)
		return error->code;
	fay_ctf_classes_print(&ctf->classes, ctf->events_lost, file);
	if (finish_file(ctf, file, "metadata", error))
		return error->code;
	ctf->finished = true;
	*events = ctf->events;
	return FAY_OK;
}
