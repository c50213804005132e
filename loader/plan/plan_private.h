/* SPDX-License-Identifier: MIT */
/* What the steps of planning owe each other. */
#ifndef FAY_LOADER_PLAN_PRIVATE_H
#define FAY_LOADER_PLAN_PRIVATE_H

#include "plan.h"

/* places.c: where a probe is wanted, but for modules that other sessions of the process know.
 * Threads' functions are in the C library, which is there from the beginning. */
int fay_places_find(struct fay_plan *plan, uint32_t probe, struct fay_function_list *list,
		    struct fay_error *error);

/* points.c: sorts them; those of one place become one. */
int fay_points_fold(struct fay_plan *plan);
/* The point for a function's entry; NULL: there is none. They are folded. */
struct fay_point *fay_points_at(const struct fay_plan *plan, uint64_t address);
/* Whether some probe runs when calls begin, or at a place inside. */
bool fay_point_enters(const struct fay_plan *plan, const struct fay_point *point);
/* Whether an address is in the point's function, or in a part of it that was found. */
bool fay_point_has(const struct fay_point *point, uint64_t address);
/* Sets a point aside, or says of one that stays what of it is set aside. -1: out of memory. */
int fay_plan_skip(struct fay_plan *plan, struct fay_point *point, const char *reason);
int fay_plan_note(struct fay_plan *plan, const struct fay_point *point, const char *reason);

/*
 * exits.c: reads how functions are left whose calls' ends are wanted; decides whether calls need
 * records; adds the points of functions that calls go on in, or that leave calls.
 */
int fay_exits_resolve(struct fay_plan *plan, size_t *capacity, struct fay_error *error);

/* program_text.c: a process's code, while it is looked at. The first three are the caller's. */
struct fay_program_text {
	const struct fay_zones *present;
	int memory; /* /proc/PID/mem */
	const struct fay_target
		*target; /* its files are read instead of that; NULL: they are not */
	uint8_t *kept;
	uint64_t at;
	size_t size;
};
void fay_program_text_deinit(struct fay_program_text *text);
/* Reads up to `size` bytes as they are, or as the program wrote them, without any trace's jumps.
 * Returns how many there are. */
size_t fay_text_now(struct fay_program_text *text, uint64_t address, void *to, size_t size);
size_t fay_text_program(struct fay_program_text *text, uint64_t address, void *to, size_t size);
/* The latter for struct fay_flow_program; `text` is a struct fay_program_text. */
size_t fay_text_reader(void *text, uint64_t address, void *to, size_t size);

/* While sites are planned. */
struct fay_planner {
	struct fay_plan *plan;
	struct fay_program_text text;
};
/* site_add.c: a new site of the point being planned, its bytes read and compared. NULL: `reason`
 * says why not; "": out of memory. */
struct fay_site *fay_site_add(struct fay_planner *planner, size_t point, const struct fay_site *as,
			      char reason[FAY_REASON_MAX]);
/* sites.c: plans one point. -1: out of memory. */
int fay_site_plan_point(struct fay_planner *planner, size_t index);
/* What was planned of a point is nothing any more; or of its exits, for this reason. */
void fay_sites_drop(struct fay_plan *plan, struct fay_point *point);
int fay_site_refuse_exits(struct fay_plan *plan, struct fay_point *point, const char *reason);

/* site_order.c: makes plan->order. False: out of memory. */
bool fay_sites_order(struct fay_plan *plan);
/* Whether any usable site lies in [low, high). */
bool fay_site_between(const struct fay_plan *plan, uint64_t low, uint64_t high);
/* Whether any byte of [low, high) is to be overwritten, or moved, for a usable one. */
bool fay_site_over(const struct fay_plan *plan, uint64_t low, uint64_t high);
/* It cannot be patched: sets the point aside, or its exits alone, then it has no usable sites until
 * it is planned again. */
int fay_site_refuse(struct fay_plan *plan, struct fay_site *site, const char *reason);

/* inbound.c: refuses sites whose overwritten bytes other functions jump into. */
int fay_inbound_search(struct fay_plan *plan, struct fay_program_text *text,
		       struct fay_error *error);
/*
 * inbound_base.c: refuses a function's points if distances are added to its address, which the lea
 * at `source`, perhaps behind a prefix, sets. -1: out of memory.
 */
int fay_inbound_refuse_base(struct fay_plan *plan, struct fay_program_text *program,
			    const char *module, uint64_t bias, uint64_t source, uint64_t start);
/* A caller that uses flags behind the call gets them from the function: no compiler makes that, but
 * assembly does. Three bytes are read `behind` the call. */
void fay_inbound_note_flags(const struct fay_plan *plan, const uint8_t *behind, uint64_t to);

/* traps.c: makes plan->traps, for those that were set aside. -1: out of memory. */
int fay_traps_find(struct fay_plan *plan, const struct fay_zones *present,
		   const struct fay_maps *maps, int memory);

/* unled.c: whether what nothing known leads to, up to exits of a function, is no data. */
bool fay_unled_is_code(const struct fay_plan *plan, struct fay_program_text *text,
		       const struct fay_flow *flow);

/* rendezvous.c: the function by whose hook the program waits when it loads modules; sets
 * `rendezvous`, or `unhooked`. False: there is none. */
bool fay_rendezvous_find(struct fay_plan *plan, struct fay_function *function);
/* Adds that hook. */
int fay_rendezvous_resolve(struct fay_plan *plan, size_t *capacity, struct fay_error *error);
/* Whether the point is in code that the dynamic linker may still have to change. */
bool fay_rendezvous_unsettled(const struct fay_plan *plan, const struct fay_point *point,
			      char reason[FAY_REASON_MAX]);

/* rseq.c */
/*
 * The sections that the target's opened modules list, as `memory` (/proc/PID/mem) has them. What is
 * no valid section is passed over. FAY_E_LIMIT: more than FAY_RSEQ_MAX, or out of memory; *rseqs is
 * empty then.
 */
int fay_rseqs_read(const struct fay_target *target, int memory, struct fay_rseqs *rseqs,
		   struct fay_error *error);
/*
 * Whether instructions at [address, address + length) cannot run elsewhere: some are in a section,
 * an abort handler begins amidst them, or a section begins right behind them, whose last step
 * before it (naming the section) would be followed by a jump that is outside of it.
 */
bool fay_rseqs_touch(const struct fay_rseqs *rseqs, uint64_t address, uint64_t length);
void fay_rseqs_deinit(struct fay_rseqs *rseqs);

/* runtimes.c: sets `untraced`, `go`, `stack_moves`, `argless` and jumps_followed. */
void fay_runtimes_judge(struct fay_plan *plan);
/* Whether something in the process follows jumps at functions' first bytes. */
bool fay_runtimes_follow_jumps(const struct fay_target *target);
/* Whether a function cannot be patched at all, by its name. */
bool fay_unpatchable(const char *name, char reason[FAY_REASON_MAX]);

/*
 * ready.c. fay_ready_lend(): the points and sites that were made for another process of the same
 * parts, at this one's addresses. fay_ready_use(): its zones, likewise, at the places that are free
 * here (which are reserved in `maps`), with what is this process's own. False: nothing is, or it
 * does not fit; the plan has no zones then. fay_ready_keep() keeps what was built;
 * fay_ready_leave() is the end of a plan that has, or had, anything lent.
 */
bool fay_ready_lend(struct fay_plan *plan);
bool fay_ready_use(struct fay_plan *plan, struct fay_maps *maps);
void fay_ready_keep(const struct fay_plan *plan);
void fay_ready_leave(struct fay_plan *plan);
void fay_ready_destroy(struct fay_ready_list *ready);

/* Between ready.c and ready_copy.c. */
#define FAY_READY_MAX 8u
struct fay_ready {
	size_t users; /* plans that have, or had, it lent; and the list, while it is there */
	bool lent;
	bool broken; /* not all of it could be moved: it is not lent again */
	/* what it is for: all of this, and the parts' numbers */
	const struct fay_verdict *verdict;
	int32_t tid_offset;
	bool thread_pointer;
	uint8_t time_shift;
	uint32_t shared_from;
	bool some; /* some pattern may have matched nothing */
	/* and what it is: points, sites and zones at the addresses of the parts */
	struct fay_plan plan;
	struct fay_ready_reach {
		uint64_t low, high; /* of its points and sites, from the bias */
		uint64_t flows;     /* the bias of its points' flows */
	} reach[FAY_MADE_OF_MAX];
	struct fay_flow **flows; /* of each point */
	bool traps_ends;         /* some point that is not usable has one */
	uint64_t *zone_biases;   /* of the zones' first parts, when their bytes were moved */
};
struct fay_ready_list {
	struct fay_ready *items[FAY_READY_MAX];
	size_t count, oldest;
};
void fay_ready_release(struct fay_ready *ready);
/* Whether the zones have no addresses but those that are noted, and are worth keeping. */
bool fay_ready_can_be(const struct fay_plan *plan);
/* The part that has the point. */
size_t fay_part_of(const struct fay_plan *plan, size_t point);
/* The points and sites of all parts, from where they are to where these others are; a zone's
 * records. */
void fay_ready_move_points(struct fay_plan *plan, const struct fay_plan_part *to);
void fay_ready_move_records(uint8_t *data, uint32_t count, uint64_t by);
/* kept.c: another process's flow, `by` bytes higher; NULL if there is none. */
bool fay_flow_copy(const struct fay_flow *from, uint64_t by, struct fay_flow **to);

/* code.c: no hole of `maps` is there any longer. -1: out of memory. */
int fay_zone_reserve(struct fay_maps *maps, uint64_t start, uint64_t size);
/* What of a zone's bytes is not the same wherever it lies in whatever process: the configuration,
 * the image's helper slots, and the header, without patches. */
void fay_zone_write_own(struct fay_plan *plan, struct fay_zone_plan *zone, uint64_t data_size);
/* An address that is not relative has been written at an offset of the zone's code. */
void fay_zone_note_address(struct fay_zone_plan *zone, size_t at, bool pushed);
/* code.c: chooses addresses (reserving them in `maps`) and writes all zones' bytes. */
int fay_zones_build(struct fay_plan *plan, struct fay_maps *maps, struct fay_error *error);
void fay_zone_plans_deinit(struct fay_plan *plan);

/*
 * code_shared.c: which sets of probes share trampolines, the set of a point (NULL: it has
 * trampolines of its own), their bodies; code_point.c: one point's trampolines and patches, at
 * zone->code_size. False: `reason` says why the point cannot be done, or is empty: out of memory.
 */
struct fay_trampoline_spec fay_point_spec(const struct fay_plan *plan,
					  const struct fay_zone_plan *zone,
					  const struct fay_point *point,
					  struct fay_trampoline_probe *probes);
const struct fay_shared_set *fay_zone_set_of(const struct fay_zone_plan *zone,
					     const struct fay_point *point);
void fay_zone_count_sets(const struct fay_plan *plan, struct fay_zone_plan *zone);
bool fay_zone_write_shared(struct fay_plan *plan, struct fay_zone_plan *zone);
/* Bytes that a point's trampolines take at most. */
uint64_t fay_zone_point_room(const struct fay_plan *plan, const struct fay_zone_plan *zone,
			     const struct fay_point *point);
uint64_t fay_zone_set_room(const struct fay_plan *plan, const struct fay_shared_set *set);
bool fay_zone_write_point(struct fay_plan *plan, struct fay_zone_plan *zone,
			  struct fay_point *point, char reason[FAY_REASON_MAX]);

/* One point's trampolines being written. code_window.c: what is copied, with the parts in front of
 * exits. */
struct fay_writer {
	struct fay_plan *plan;
	struct fay_zone_plan *zone;
	struct fay_point *point;
	const struct fay_shared_set *set; /* NULL: own trampolines */
	struct fay_trampoline_spec spec;  /* of the point */
	struct fay_zone_patch part;       /* of a function that is whole in its entry's window */
	uint64_t entry_copy;   /* of what is overwritten at the entry; 0: it is not patched */
	struct fay_written {   /* of each block, and of the window that was written last */
		uint64_t copy; /* its first instruction */
		/* where the part in front of its only exit begins; 0: it has several, or none */
		uint64_t inner;
		uint64_t last; /* and the copy of the exit */
	} *blocks;
	char *reason;
};
/* At zone->code_size: a window, or a block. link_slot: the word that leads to another session's
 * part in front of the same exit; 0: there is none. */
bool fay_window_write(struct fay_writer *writer, struct fay_site *window, uint64_t link_slot,
		      struct fay_written *written);
/* Whether some jump of a window leads to what has its copy, or to the window's begin. */
bool fay_window_branches(const struct fay_writer *writer, const struct fay_site *window);
/* Bytes that a window's copy takes at most, without the parts in front of its exits. */
#define FAY_WINDOW_ROOM 512u
#define FAY_EXIT_ROOM 32u /* the exit itself, and the link in front of it */
static inline uint8_t *fay_writer_code(const struct fay_writer *writer)
{
	return writer->zone->code + writer->zone->code_size;
}
static inline uint64_t fay_writer_at(const struct fay_writer *writer)
{
	return writer->zone->address + writer->zone->code_size;
}
/* Of what is written next. */
static inline void fay_writer_note_pushed(struct fay_writer *writer,
					  const struct fay_displaced *displaced)
{
	if (displaced->pushed)
		fay_zone_note_address(writer->zone, writer->zone->code_size + displaced->pushed - 1,
				      true);
}

#endif
