/* SPDX-License-Identifier: MIT */
/* Which sequences of one agent were merged: all up to a number, and some beyond it. */
#ifndef FAY_CLUSTER_LEDGER_H
#define FAY_CLUSTER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

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
