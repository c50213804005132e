/* SPDX-License-Identifier: MIT */
/* What the files share that walk through a certificate's nodes. */
#ifndef FAY_CHECKER_WALK_H
#define FAY_CHECKER_WALK_H

#include "checker.h"
#include "verifier/checker/machine/machine.h"

struct reader {
	const uint8_t *bytes;
	uint32_t at, size;
	bool bad;
};
uint64_t read_number(struct reader *r);
int64_t read_signed(struct reader *r);
int64_t as_signed(uint64_t n);

/* A variable that a join introduces, and what it is in the state that comes. */
struct meaning {
	uint32_t id, location;
	uint8_t bits;
	bool exact;
	int64_t k, c; /* what is there is k times the variable, plus c; 1, 0: it */
	uint8_t low;
	struct form raw;   /* congruent to it modulo 2^low */
	struct form whole; /* if exact: it */
};

/* beside NODE_JOIN and NODE_HEAD: how a head's measure moves */
enum {
	NODE_UP = 4,
	NODE_DOWN = 8,
	NODE_HALVES = 16,
	NODE_BITS = 32,
	NODE_WAYS = NODE_UP | NODE_DOWN | NODE_HALVES | NODE_BITS,
};

#define NODE_IN_HAND UINT32_MAX /* its state is w->m's, and the node is run next */

struct node {
	uint32_t address; /* from the start of .text */
	uint32_t end;     /* in the certificate: its targets */
	uint32_t list;    /* in the certificate: a join's */
	uint32_t first;   /* of a join: the id of its first variable */
	uint32_t state;   /* in the store, plus 1; 0: not reached; or NODE_IN_HAND */
	uint32_t body;    /* of a head: nodes of its loop, itself first; else 0 */
	uint32_t head;    /* 1 + the head of the innermost loop that it lies in, not as its head */
	uint32_t left;    /* 1 + the head of a loop that was left to here */
	uint32_t count;
	uint16_t targets;
	uint16_t measure; /* of a head: 1 + variable + JOIN_MOST * (0, or 1 + one to take away) */
	uint16_t variables;
	uint8_t flags, kind, condition;
	bool leaves;    /* of a head: an edge leaves its loop and the one around it at once */
	uint64_t cost;  /* instructions at most from the head of its loop, or the entry, to here */
	uint64_t round; /* of a head: of one round */
	uint64_t bound; /* of a head: rounds at most */
};

/* The states that wait at nodes. */
struct store {
	uint8_t *bytes;
	uint32_t used, size, free;
};

struct walk {
	struct machine m, t; /* in hand; of the node that it comes to */
	bool stays;          /* the edge in hand is its node's last, and leads to the next node */
	struct meaning meanings[JOIN_MOST];
	const struct check_subject *subject;
	const struct fay_policy *policy;
	struct reader certificate, ends; /* lists and nodes; how the node in hand ends */
	struct node *nodes;
	uint32_t node_count;
	uint8_t *starts, *insides; /* bit per byte of .text */
	struct store store;
	uint8_t *memory;          /* aligned: nodes, then the store, then what tables lead to */
	struct check_jump *jumps; /* the last found comes first */
	uint32_t jump_count;
	uint64_t denied[(OP_COUNT + 63) / 64];
	struct shared shared;
	uint64_t instructions, work;
};

bool walk_refuse(struct walk *w, enum fay_rule rule, uint64_t place, const char *what);
/* The node's state becomes that in hand, or what its join's list makes of it; if there is one, that
 * in hand must be included in it. `back`: along an edge back to the head of a loop. */
bool walk_enter(struct walk *w, uint32_t to, bool back);
/* Stores the state of a node; takes it back; drops it. */
bool walk_keep(struct walk *w, uint32_t node, struct state *s);
void walk_fetch(const struct walk *w, uint32_t node, struct state *s);
void walk_drop(struct walk *w, uint32_t node);
/* A join's variable as what the state in hand has there; its range must be that of `v`. */
bool walk_meaning(struct walk *w, struct meaning *x, const struct var *v);
/* Whether `have`, of the state in hand, is what `want` of w->t says. */
bool walk_same(struct walk *w, const struct meaning *meanings, uint32_t count, uint64_t location,
	       const struct value *have, const struct value *want);
/* Whether the state in hand is included in w->t's. */
bool walk_includes(struct walk *w, struct meaning *x, uint32_t n);
/* How a head's measure moved along an edge back, from w->t to the state in hand. */
bool walk_count(struct walk *w, struct node *head, const struct meaning *x, uint32_t n);
/* w->t's state becomes that in hand, weaker, as the node's list says. */
bool walk_make(struct walk *w, uint32_t to, struct meaning *x, uint32_t *n);
/* Always false. */
bool walk_bad(struct walk *w, const char *what);
/* Reads the probe's nodes; *behind: where they end. */
bool walk_parse(struct walk *w, uint32_t *behind);
/* The node's state is that in hand. */
void walk_load(struct walk *w, uint32_t node);
bool walk_numeric(const struct value *v); /* a number or a pointer, and not NULL */
/* What a location of a certificate names; NULL: nothing. */
struct value *walk_locate(struct state *s, uint64_t location);
/* The number there for the list of a node, or NULL; *own is it if no place holds it. */
const struct value *walk_number_at(struct state *s, uint32_t node, uint64_t location,
				   struct value *own);
/* An entry of a list, with its numbers as they are written. */
struct entry {
	uint64_t kind, location, n[9];
};
void walk_entry(struct reader *r, struct entry *e);
/* One walk through a probe: a part of the certificate. */
bool walk_probe(struct walk *w, uint64_t entry, struct fay_probe_facts *facts);
/* What the walks found against the policy. */
bool walk_limits(struct walk *w, struct fay_probe_facts *facts);

#endif
