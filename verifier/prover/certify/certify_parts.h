/* SPDX-License-Identifier: MIT */
/*
 * What the files share that write certificates: list.c (a join's list), guess.c (what it may say),
 * stop.c (where ranges end), prove.c (putting it to the proof), tied.c (forms), relate.c (facts),
 * loop.c (heads of loops), node.c (nodes), part.c (where these end), unfold.c (several places of
 * one node), turn.c (their order), search.c (which nodes need several).
 */
#ifndef FAY_VERIFIER_CERTIFY_PARTS_H
#define FAY_VERIFIER_CERTIFY_PARTS_H

#include <stdlib.h>

#include "certify.h"
#include "verifier/checker/walk.h"

struct waiting {
	struct waiting *next;
	uint32_t from;
	struct state *s;
	uint32_t defs; /* of the node that it comes from */
	struct def def[DEFS];
};

/* How a join's list has a location. */
enum rep_kind { REP_FORGET, REP_NUMBER, REP_FORM, REP_RANGE, REP_KEEP };

struct rep {
	uint64_t location;
	uint8_t kind, bits;
	uint8_t bytes;                 /* that count as written */
	bool no_form, no_sum, no_mult; /* was tried */
	uint8_t widened;
	wide lo, hi; /* of the variable: what is there is mult times it, plus off */
	int64_t mult, off;
	uint64_t base; /* FORM: the location of its variable */
	int64_t k, c;
	uint32_t size; /* FORM: 1 + the region whose size is added; 0 none */
	bool also;     /* FORM: k2 times the variable at base2 is added */
	uint64_t base2;
	int64_t k2;
};

/* lo <= ka * a + kb * b <= hi; mostly how far b is ahead of a: -1 and 1. */
struct relation {
	uint64_t a, b;
	int64_t ka, kb;
	wide lo, hi;
	wide gain; /* how much more it says than the two ranges do */
	unsigned rounds;
};

/* All bytes of the stack from `fixed` to k times what is at `location`, plus c, were written. */
struct guessed_fill {
	uint64_t location;
	int64_t k, c;
	int32_t fixed;
	bool down;
};

struct place {
	struct guessed_fill fills[2];
	uint32_t fill_count;
	int32_t filled_low, filled_high; /* bytes that the first round wrote */
	struct relation facts[FACTS];
	uint32_t fact_count;
	uint32_t node;        /* of the graph */
	uint32_t skip, count; /* instructions of its block: left out, and those that it has */
	bool parted;          /* ends within its block */
	bool one_case;        /* begins where one case of a condition is */
	uint16_t fresh;       /* registers that become numbers of their own where it begins */
	uint8_t condition;    /* 0, or 1 + that by which its ways part within the block */
	uint32_t end;         /* of a loop */
	bool head;
	uint32_t to[2]; /* places, but for a table's */
	struct waiting *in, *back;
	bool plain; /* without the prover's hints, which may be of another time around */
	bool join;
	struct rep *reps;
	uint32_t rep_count;
	uint32_t undefined;
	uint32_t vector[16];
	uint8_t *unwritten; /* per byte of the stack; NULL: nothing */
	uint32_t measure;
	bool narrowed;    /* a head whose ranges begin anew, with facts that end them */
	bool parted_form; /* what was a form of another number is none: it has no facts yet */
	struct fay_bytes list, body; /* body: of the list that is being written */
	uint32_t entries;            /* of it */
	uint32_t *table;             /* places, by entry */
	uint32_t table_count;
	struct turn *turn;                  /* turn.c */
	bool open;                          /* a head whose loop is being looked at */
	uint32_t outer;                     /* of an open head: the one around it that is open */
	uint32_t first_inside, done_before; /* of a head: places and places run before its loop's */
};

/* A number that a node of the graph compares something with. */
struct compared {
	wide n;
	uint32_t node;
	uint64_t location; /* of the number, if that is a register's */
};
#define COMPARED_MOST 4096u

#define COMMON_STOPS 9u /* the first: -1, 0, 1 and the ends of words */

/* How relations between values are looked for: where something lacks; from the start; and as what
 * holds where a loop is entered, until it does not hold at an edge back. */
enum effort { EFFORT_NEEDED, EFFORT_RELATED, EFFORT_HOPEFUL };

struct certify {
	struct fay_certify *c;
	struct walk *w;
	struct fay_order order;
	struct place *places;
	uint32_t count;
	enum effort effort;
	uint64_t runs, most;      /* of nodes: so far, and at most */
	uint32_t at;              /* the place that was looked at last */
	struct unfolding *unfold; /* unfold.c; NULL: one place for each node of the graph */
	int64_t *depth;           /* of the stack, per node of the graph; -1: not known yet */
	wide *stops;
	uint32_t stop_count;
	struct compared *compared;
	uint32_t compared_count;
};

/* States are copied, and dropped with what waits. */
void certify_assign(struct state *to, const struct state *s); /* what its counts say is there */
struct state *certify_copy(const struct state *s);
/* The machine looks at `s`, until what it had, which is returned, is put back. */
struct state *certify_enter(struct certify *k, const struct state *s);
void certify_leave(struct certify *k, struct state *save);
bool certify_fail(struct certify *k, enum fay_rule rule, uint64_t at, const char *what);
void certify_drop(struct waiting **list);
/* The state in hand waits at place `to`. */
void certify_deliver(struct certify *k, uint32_t from, uint32_t to);
struct rep *certify_rep_of(const struct place *p, uint64_t location);
struct rep *certify_rep_add(struct place *p, uint64_t location);
/* Makes the number at r a form, if in all states it is one of other numbers. */
void certify_find_tied(struct certify *k, const struct place *p, struct rep *r,
		       struct state **states, uint32_t n);
/* Whether the form is of the variable at the location. */
bool certify_names(const struct rep *r, uint64_t location);
uint32_t certify_number_of(const struct place *p, uint64_t location);
/* Where the list of `at` names the variable number `which` with this pin. */
uint64_t certify_pinned_at(uint32_t at, uint32_t pin, uint64_t which);
/* The place's list in bytes. */
void certify_write_list(struct place *p);
uint64_t certify_location_of(const struct slot *slot);
/* How many slots are the stack's; those of the event follow. */
unsigned certify_slots(const struct state *s);
bool certify_numeric(const struct value *v);
/* A number of its own for the location, that covers what the states have there. */
void certify_make_number(struct certify *k, struct rep *r, struct state **states, uint32_t n);
/* Byte -1 - b of the stack does not count as written. */
void certify_mark_unwritten(struct place *p, int32_t b);
/* What the first state has, weaker, so that it says no more than each. */
void certify_find_list(struct certify *k, struct place *p, struct state **states, uint32_t n);
/* The machine has a state that waits at the place, and the definitions that came with it. */
void certify_take(struct certify *k, uint32_t at, const struct state *s);
/* The node's state from `s`, in w->t. */
bool certify_make(struct certify *k, uint32_t at, struct state *s, struct meaning *x, uint32_t *n);
/* Whether state `s` is included in the node's (w->t, with n variables). What is not is made
 * weaker: *changed. False: it cannot be. */
bool certify_check_one(struct certify *k, uint32_t at, struct state *s, struct state *first,
		       struct meaning *x, uint32_t n, bool *changed);
/* The range of what the relation bounds, in w->m, for the list of `at`. False: that is no form. */
bool certify_related(struct certify *k, uint32_t at, const struct relation *f, struct range *r);
uint32_t certify_gather(struct waiting *list, struct state ***states);
/* A list for what the node is entered with; w->t has the state. */
bool certify_settle(struct certify *k, uint32_t at, struct state **states, uint32_t n,
		    struct meaning *x, uint32_t *vars);
bool certify_run_node(struct certify *k, uint32_t at);
/* To `skip` instructions behind where the node begins. */
bool certify_edge_into(struct certify *k, uint32_t from, uint32_t node, uint32_t skip,
		       uint32_t *to);
/* Runs a place that is no head from what waits there. */
bool certify_process_place(struct certify *k, uint32_t at);
/* Runs the node from the state in w->t. */
bool certify_run_from(struct certify *k, uint32_t at);
/* Runs the places in [begin, end) in order, loops until they settle. */
bool certify_process(struct certify *k, uint32_t begin, uint32_t end);
bool certify_process_loop(struct certify *k, uint32_t at);
/* Appends the probe's part of a certificate; `partly`: also what there is if it gives up, which is
 * false. */
bool certify_attempt(struct fay_certify *c, enum effort effort, bool partly, struct fay_bytes *out);

/* How the places of a node of the graph are made. */
enum {
	TREAT_WRITTEN_OUT = 1, /* of a head: each round of its loop has places of its own */
	TREAT_CONSTANTS = 2,   /* ways meet only where they have the same constants */
	TREAT_APART = 4,       /* ways never meet */
	TREAT_CASES = 8,       /* ways part where an instruction asks the flags */
	TREAT_REJOIN = 16,     /* and meet again before the next that sets them */
	TREAT_ORDER = 32,      /* numbers that differ are two cases: less, and greater */
	TREAT_THREE = 64,      /* a sum of two variables that is compared with a third is one */
	TREAT_FACTS = 128,     /* what two facts say together is written down */
};
/* The same with several places for a node; `treat`: per node of the graph. *failed: the node where
 * it gave up. *runs: of nodes, at most; what is left of them. */
bool certify_unfold(struct fay_certify *c, enum effort effort, const uint8_t *treat, uint64_t *runs,
		    uint32_t *failed, struct fay_bytes *out);
/* The same; it finds by trying what has to be told apart. */
bool certify_search(struct fay_certify *c, enum effort effort, struct fay_bytes *out);
/* Whether the checker accepts what stands in *out from `begin` on; if not, it goes. */
bool certify_holds(struct fay_certify *c, size_t begin, struct fay_bytes *out);

/* ---- unfold.c, turn.c ---- */

/* For each loop around a node, the outermost first, where its head is in the order of the graph,
 * and the round; last where the node is, and how many of its instructions are left out. */
struct turn {
	uint32_t size, at[2 * NEST_MOST + 2];
};
/* Of a place of the node behind one at turn *from. False: too many loops within each other. */
bool certify_turn_find(const struct certify *k, const struct turn *from, uint32_t node,
		       uint32_t skip, struct turn *t);
int certify_turn_compare(const struct turn *a, const struct turn *b);
/* Whether place `at` lies in the loop of the head, or is the head. */
bool certify_turn_inside(const struct certify *k, uint32_t at, uint32_t head);

/* Where an edge from place `from` to a node of the graph leads, `skip` instructions behind its
 * beginning; FAY_NONE: that is too much. */
uint32_t certify_unfold_edge(struct certify *k, uint32_t from, uint32_t node, uint32_t skip);
/* How the place's node is treated. */
uint8_t certify_treat(const struct certify *k, const struct place *p);
/* Runs what waits within the loop of `head`. */
bool certify_unfold_loop(struct certify *k, uint32_t head);
/* The loop of `head` begins, or begins once more: nothing of it was run. */
void certify_unfold_begin(struct certify *k, uint32_t head);
void certify_unfold_rewind(struct certify *k, uint32_t head);
void certify_unfold_end(struct certify *k, uint32_t head);

/* ---- part.c ---- */

/* Ends the place before the instruction, `done` behind where it begins, if it had better: then what
 * comes of it waits. */
bool certify_part(struct certify *k, uint32_t at, uint32_t done, const struct fay_insn *insn);
/* Registers that had better be numbers of their own where a place begins: words that were read as
 * unsigned and have their highest bit. */
unsigned certify_part_words(const struct certify *k, uint32_t at, const struct state *s);
/* And sums that the place's first instruction compares with a third variable. */
unsigned certify_part_first(struct certify *k, uint32_t at, const struct state *s);
/* Whether the place has a list although one way leads there: it writes down what two facts say
 * together, before what they have in common is overwritten, and what quotients are of. */
bool certify_part_facts(const struct certify *k, uint32_t at, const struct state *s);
/* Whether the place is a head whose sums of two variables had better be numbers of their own: its
 * loop may move what is compared with them, which is a third. */
bool certify_part_heads(const struct certify *k, const struct place *p);

/* ---- certify.c and others ---- */

/* With room for so many places; w->m has the state at the entry. */
void certify_begin(struct certify *k, uint32_t places, struct fay_probe_facts *facts);
/* Of the node's instruction number `skip`, from the start of .text. */
uint32_t certify_address(const struct certify *k, uint32_t node, uint32_t skip);
/* Place `at` is one of a node of the graph. */
void certify_make_place(struct certify *k, uint32_t at, uint32_t node, uint32_t skip);
/* Frees what the place has. */
void certify_release_place(struct place *p);
void certify_end(struct certify *k);
/* Appends the places as nodes. */
void certify_put(struct certify *k, struct fay_bytes *out);
void certify_hint_range(struct certify *k, uint32_t at, struct rep *r);
/* Where the range of `r`, which reaches `at`, may end: at numbers that the code compares with, and
 * next to what the state has elsewhere. */
wide certify_stop(struct certify *k, const struct place *p, const struct rep *r, wide at, bool up);
/* The ranges of a list, which has facts, end where these end them. False: they do already. */
bool certify_tighten(struct certify *k, struct place *p);
/* Drops what came from places in [begin, end). */
void certify_drop_from(struct waiting **list, uint32_t begin, uint32_t end);
/* Differences between values that say more than their ranges: facts of the list. False: none. */
bool certify_relate(struct certify *k, uint32_t at, struct state **states, uint32_t n,
		    struct meaning *x, uint32_t vars);

#endif
