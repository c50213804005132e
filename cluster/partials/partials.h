/* SPDX-License-Identifier: MIT */
/* Partial results on their way up: how they are put into messages, and which of them came. */
#ifndef FAY_CLUSTER_PARTIALS_H
#define FAY_CLUSTER_PARTIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/wire/wire.h"

/* Rows and names gathered for PARTIAL messages. */

struct fay_parts {
	struct fay_writer_buffer blocks, names;
	uint16_t block_count, name_count;
	uint16_t state; /* of the block that is open */
	uint32_t rows;  /* in it; 0: none is open */
	size_t rows_at; /* where its number of rows stands */
};

void fay_parts_row(struct fay_parts *parts, uint16_t state, const uint8_t *row, uint32_t row_size);
void fay_parts_name(struct fay_parts *parts, uint64_t hash, const char *name, size_t size);
/* Bytes of the message so far, without its members. */
size_t fay_parts_size(const struct fay_parts *parts);
/* The body of a PARTIAL, and then empties `parts`. fay_wire_begin() was called, fay_wire_end()
 * follows. */
void fay_parts_finish(struct fay_parts *parts, bool combined, const struct fay_wire_member *members,
		      uint16_t count, const uint64_t losses[FAY_WIRE_LOSSES],
		      struct fay_writer_buffer *out);
void fay_parts_deinit(struct fay_parts *parts);

/* A set of hashes, to tell each name once; 0 is never in it. */
#define FAY_NAMES_MAX 65536u
struct fay_names {
	struct fay_name {
		uint64_t hash;
		char *text; /* NULL: only known to be there */
	} *items;
	size_t count, size; /* a power of two */
};
/* true: it was not there, and is now. false: it is, or there is no room. */
bool fay_names_add(struct fay_names *names, uint64_t hash, struct fay_text text);
const char *fay_names_find(const struct fay_names *names, uint64_t hash);
void fay_names_deinit(struct fay_names *names);

/* Calls `each` for all function names that a row's columns hold the hashes of. */
void fay_row_functions(const struct fay_schema *schema, uint16_t state, const uint8_t *row,
		       void (*each)(void *context, uint64_t hash), void *context);
bool fay_schema_has_functions(const struct fay_schema *schema);

/* Which sequences of one agent were merged: all up to a number, and some beyond it. */

#define FAY_LEDGER_AHEAD 1024u

struct fay_ledger {
	uint64_t upto; /* all of 1..upto */
	/* of upto+1 .. upto+FAY_LEDGER_AHEAD, by sequence modulo FAY_LEDGER_AHEAD */
	uint64_t ahead[FAY_LEDGER_AHEAD / 64];
};

enum fay_ledger_state {
	FAY_LEDGER_NEW,   /* none of them is entered, all can be */
	FAY_LEDGER_OLD,   /* all are */
	FAY_LEDGER_MIXED, /* some are */
	FAY_LEDGER_FAR,   /* too far ahead; they will come again */
};
/* 1 <= first <= last. */
enum fay_ledger_state fay_ledger_look(const struct fay_ledger *ledger, uint64_t first,
				      uint64_t last);
/* All must be new. */
void fay_ledger_enter(struct fay_ledger *ledger, uint64_t first, uint64_t last);

#endif
