/* SPDX-License-Identifier: MIT */
/* What a CTF trace's events are: an event class for each function of each saved source, and the
 * description of all of them (TSDL). */
#ifndef FAY_CLI_CTF_CLASSES_H
#define FAY_CLI_CTF_CLASSES_H

#include <stdio.h>

#include "fay/error.h"
#include "fay/saved.h"

#define FAY_CTF_CLASSES_MAX 65536u
#define FAY_CTF_NAME_MAX 512u                                 /* bytes of a function's name */
#define FAY_CTF_STRING_MAX (FAY_TEXT_MAX + FAY_TEXT_CUT_MARK) /* bytes of a string */
/* Bytes of an event: each column may be a string, what is in it a function's name. */
#define FAY_CTF_HEADER_MAX 64u
#define FAY_CTF_EVENT_MAX                                                                          \
	(FAY_CTF_HEADER_MAX + FAY_SAVED_COLUMNS * (FAY_CTF_STRING_MAX + 1) + 2 * FAY_SAVED_ROW)

/* How a column is written. */
struct fay_ctf_part {
	enum fay_ctf_form {
		FAY_CTF_WORDS,
		FAY_CTF_STRING,
		FAY_CTF_NAME,
		FAY_CTF_FLAG,
		FAY_CTF_FRAMES,
		FAY_CTF_CALLER
	} form;
	uint32_t offset, size;         /* in the row */
	char name[FAY_SAVED_NAME + 8]; /* as CTF has it */
	bool context;                  /* whose event it is: pid tid cpu comm */
	uint32_t type;
};

/* A stream of a saved trace. */
struct fay_ctf_source {
	const char *kind; /* "call" ... */
	char pattern[FAY_SAVED_PATTERN];
	uint32_t time_offset, function_offset;        /* function_offset: UINT32_MAX for none */
	struct fay_ctf_part parts[FAY_SAVED_COLUMNS]; /* the context's first */
	uint32_t part_count;
};

struct fay_ctf_class {
	uint32_t source;
	uint64_t function; /* hash */
	char *name;
};

/* All-zero bytes: there are none. */
struct fay_ctf_classes {
	uint8_t uuid[16];
	struct fay_ctf_source *sources;
	uint32_t source_count;
	struct fay_ctf_class *classes; /* by number */
	uint32_t class_count, class_room;
	uint32_t *table, table_size; /* open addressing: number + 1 */
	uint32_t last;               /* that was found last, + 1 */
};

int fay_ctf_source_add(struct fay_ctf_classes *classes, const struct fay_saved *saved,
		       uint32_t stream, const char *name, struct fay_error *error);
/* The number of the class of a row of that source; false: out of memory, or there are too many. */
bool fay_ctf_class(struct fay_ctf_classes *classes, uint32_t source, const struct fay_saved *saved,
		   const uint8_t *row, uint32_t *number);
/* The description. */
void fay_ctf_classes_print(const struct fay_ctf_classes *classes, uint64_t events_lost, FILE *out);
void fay_ctf_classes_deinit(struct fay_ctf_classes *classes);

#endif
