/* SPDX-License-Identifier: MIT */
/*
 * What an image's probes would change in a process, worked out while the process runs: patterns
 * become points (points.c, places.c), each function is judged (exits.c, runtimes.c, sites.c,
 * inbound.c), and the bytes of the code zones are written for addresses that are free there
 * (code.c, code_point.c, code_window.c). Nothing is written to the process.
 */
#ifndef FAY_LOADER_PLAN_H
#define FAY_LOADER_PLAN_H

#include "dispatcher/runtime/runtime.h"
#include "dispatcher/user/trampoline.h"
#include "fay/loader.h"
#include "loader/flow/flow.h"
#include "loader/flow/relocate.h"
#include "loader/names/target.h"
#include "loader/process/process.h"
#include "loader/zones/zone.h"

#define FAY_POINTS_MAX (1u << 18)

/* `to` is a power of two. */
static inline uint64_t fay_round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

#define FAY_RSEQ_MAX 16384u /* sections of a process that are looked at */

/* A section [start, end), or an abort handler (start == end). */
struct fay_rseq {
	uint64_t start, end;
	uint64_t reach; /* the largest end of this one and those before it */
};
struct fay_rseqs {
	struct fay_rseq *items; /* sorted by start */
	size_t count;
};

/* One function, or a place inside one, and the probes that want it. */
struct fay_point {
	struct fay_function function;
	/* indices into verdict->probes, in order: fay_point_probe(). Most points have one. */
	uint32_t probe_count, probe, *probes;
	bool inside;     /* a place inside a function, `offset` bytes behind its start */
	uint64_t offset; /* function.address is then the place, function.size what follows it */
	struct fay_marker_place *marker; /* what its trampoline needs; NULL: no marker */
	/* why a run-time system does not stand that its code is changed; NULL: it does */
	const char *untraced;
	/* may be jumped to with flags and red zone in use: a part of a function, or known from the
	 * unwind table alone */
	bool careful;
	bool go; /* a function of Go, which gets its arguments in Go's registers */
	/* why its arguments cannot be read; NULL: they can, or nobody reads them */
	const char *argless;
	/* what the runtime wants here itself */
	enum fay_hook { FAY_HOOK_NONE, FAY_HOOK_MODULES } hook;
	/* likewise; a goroutine's stack may end soon below, and is moved when it does */
	bool stack_moves;
	bool leaves; /* some probe is about the end of its calls */
	bool helper; /* no probe wants it: calls that are watched go on in it, or are left by it */
	enum fay_sweep sweeps;
	/* nobody wants its exit, but that is within what is overwritten at the entry: another
	 * session may come that does */
	bool whole;
	bool flow_read, no_whole;
	bool faults_known;
	bool keeps_faults;     /* what may fault is not moved: a stack is unwound from there */
	struct fay_flow *flow; /* how it is left; read once (exits.c) */
	/* at some exit another call may return: its calls have records in any case */
	bool unsure;
	bool others_end; /* other functions run into it: their calls end there, too */
	/* why its exits are not patched, although they should be; NULL: they can be */
	char *no_exits;
	uint32_t cost; /* index of its struct fay_place_cost in each slot */
	/* Found when planning; again for each attempt. */
	bool usable;
	size_t skipped; /* of one that is not: its number among the skipped ones, plus one; 0 */
	bool exits;     /* they are patched */
	size_t first_site, site_count;
	bool shared;      /* shares its trampoline */
	uint64_t watched; /* address of its struct fay_watched in the target; 0: none */
	/* Later. */
	bool taken_out; /* its patches have been removed while the session goes on */
	/* likewise, with the module that it was in: what lies there now is another's */
	bool unloaded;
};

static inline uint32_t fay_point_probe(const struct fay_point *point, uint32_t index)
{
	return point->probe_count == 1 ? point->probe : point->probes[index];
}

/* A place whose first FAY_JUMP_BYTES become a jump. */
enum fay_site_kind {
	FAY_SITE_PLACE, /* the function's entry, or the place inside it */
	FAY_SITE_EXIT,  /* a window (flow.h) */
	/* a jump that is led to the copy of a block, or of what is overwritten at the entry */
	FAY_SITE_REDIRECT,
	FAY_SITE_HOLE,  /* padding that a short jump at an exit without room leads to */
	FAY_SITE_BLOCK, /* such a block: nothing is written there. The last ones of a point */
};
#define FAY_SITE_BYTES 64u
struct fay_site {
	/* first what is looked at for each process, or moved */
	uint64_t site;
	uint64_t hole; /* a short jump leads there; 0: it has room itself */
	size_t point;
	size_t bytes; /* where the plan has its bytes: fay_site_before() */
	/* linked: the part in front of the exit of a function that is whole in this window, of the
	 * session that has its jump there */
	uint64_t lower_part;
	struct fay_zone_patch patch;
	uint8_t kind; /* enum fay_site_kind */
	bool usable;
	uint8_t size; /* bytes below that are known */
	bool linked;  /* another session's jump is there */
	bool leads;   /* some jump in it leads to a block's copy */
	bool ends;    /* the flow does not go on behind its last instruction */
	/* bytes from the site to a marker that is patched before its place (struct
	 * fay_place), or to a window's only exit */
	uint8_t back;
	uint8_t length; /* bytes of whole instructions that have their copy; 0 of a redirect */
	uint8_t reach;  /* bytes from the site that nobody else may patch */
	uint32_t first_exit, exit_count; /* of the point's flow: in this window */
	/* of a redirect: its number, or FAY_FLOW_ENTRY; of a block: its own; of a hole: the number
	 * of the point's site that it is for */
	uint32_t block;
	uint64_t lower; /* linked: where the trampoline goes on */
	/* instructions that begin within fay_site_closed(), and where threads that stand there go
	 * on: bytes from the site */
	uint8_t boundary_count, boundary_from[2 * FAY_JUMP_BYTES];
	int32_t boundary_to[2 * FAY_JUMP_BYTES];
};

static inline void fay_site_add_boundary(struct fay_site *site, uint8_t from, uint64_t to)
{
	site->boundary_from[site->boundary_count] = from;
	site->boundary_to[site->boundary_count++] = (int32_t)(to - site->site);
}

/* Whether the function is whole within what is overwritten at its entry: one window, one exit. */
static inline bool fay_site_whole(const struct fay_site *site)
{
	return site->kind == FAY_SITE_PLACE && site->exit_count == 1 && site->ends && !site->hole;
}

/* Bytes that are overwritten there. */
static inline uint8_t fay_site_overwritten(const struct fay_site *site)
{
	return site->hole ? FAY_HOP_BYTES : FAY_JUMP_BYTES;
}

/* Bytes in which instructions of the program are overwritten: its own, and those of a hole that
 * lies behind them in the same window. */
static inline uint8_t fay_site_closed(const struct fay_site *site)
{
	return site->reach < site->length ? site->reach + FAY_JUMP_BYTES
					  : fay_site_overwritten(site);
}

/* Bytes from the site to which nothing may jump, but for the first: the jump; up to a marker, or an
 * exit, whose instructions before it are run elsewhere. */
static inline uint64_t fay_site_entered(const struct fay_site *site)
{
	uint8_t overwritten = fay_site_overwritten(site);

	if (site->kind == FAY_SITE_EXIT)
		return site->length > overwritten ? site->length : overwritten;
	return site->back + 1u > overwritten && site->kind == FAY_SITE_PLACE ? site->back + 1u
									     : overwritten;
}

#define FAY_HELD_MAX 64u
#define FAY_MADE_OF_MAX 64u

/* What one of the kept plans has become part of a process's. */
struct fay_plan_part {
	uint64_t number;         /* of the kept plan */
	const char *name, *path; /* of the process's module */
	uint64_t bias;
	size_t points, sites; /* the part ends before these */
};

/* Probes that many points of a zone have: these share one trampoline if there are enough of
 * them. */
#define FAY_SHARED_SETS 16u
struct fay_shared_set {
	const struct fay_point *model; /* one of the points */
	size_t points;
	bool chosen;
	struct fay_shared body;
};

/* An address in a zone's code that is not relative, and not of the configuration. */
struct fay_zone_address {
	size_t at;   /* of its 8 bytes, or of the instructions that push it */
	bool pushed; /* as put_push_address() has it (loader/flow/relocate.c) */
};

/* A zone being built. */
struct fay_zone_plan {
	size_t first, last; /* points [first, last) */
	uint64_t low, high; /* every overwritten byte lies in [low, high) */
	uint64_t address;
	uint8_t *code; /* NULL once it is installed */
	size_t code_size, capacity;
	uint64_t image; /* address of the layout's bytes */
	struct fay_shared_set sets[FAY_SHARED_SETS];
	size_t set_count;
	size_t watched_at, watched_count;   /* struct fay_watched[] in the code */
	struct fay_zone_address *addresses; /* address_count of them */
	size_t address_count;
	bool unnoted; /* not all of them are there */
	struct fay_zone_header header;
	uint8_t *data;            /* header and patches */
	bool mapped, data_mapped; /* in the target */
};
struct fay_plan {
	struct fay_target *target;
	const struct fay_verdict *verdict; /* during attach only */
	pid_t pid;
	struct fay_attach_options options;
	uint64_t id;
	/* code is read from the modules' files, whatever the process has there (kept.c) */
	bool of_files;
	/* the points and sites are those that were kept, and are not planned anew */
	bool assembled;
	/* of which of the kept plans; too many: more than there is room for */
	struct fay_plan_part parts[FAY_MADE_OF_MAX];
	size_t part_count;
	size_t assembled_usable, assembled_skipped; /* points, then */
	/* ready.c: whose points, sites and zones these are, now (lent), or were: fay_ready_own().
	 * NULL: they are its own */
	struct fay_ready *lender;
	bool lent, not_lent; /* the last: what is ready does not fit */
	size_t had_points;   /* fay_plan_point_count(), when they went */
	bool ready;          /* the zones are those */
	struct fay_point *points;
	/* the first so many are sorted, each place once; while they are looked for */
	size_t point_count, folded_count;
	struct fay_site *sites; /* each point's together */
	size_t site_count, site_room;
	uint8_t *bytes; /* of all sites: byte_count of them */
	size_t byte_count, byte_room;
	uint32_t *order; /* of the usable ones that are patched, by address; order_count of them */
	size_t order_count;
	struct fay_rseqs rseqs; /* restartable sequences of the modules that have points */
	/* sites inside of which some stack held a signal frame, or what looks like one, attempt
	 * after attempt */
	uint64_t given_up[FAY_HELD_MAX];
	size_t given_up_count;
	struct fay_skipped_point *skipped;
	size_t skipped_count;
	struct fay_trap *traps; /* where the kernel may trap instead */
	size_t trap_count;
	struct fay_dispatch dispatch;
	size_t shared_points; /* points that share a trampoline */
	/* the threads that are traced, as they know themselves; options.tid_count of them */
	uint32_t tids[FAY_TIDS_MAX];
	int32_t tid_offset;  /* of the thread's id behind fs; -1: it is not there */
	bool thread_pointer; /* fs:0 holds the fs base in every thread */
	/* something in the process takes a jump at a function's first byte for the function's
	 * own */
	bool jumps_followed;
	uint64_t rendezvous; /* struct r_debug of the process's dynamic linker; 0: not known */
	/* why the program does not wait when it loads modules; "": it does, or nobody asked for
	 * that */
	char unhooked[FAY_REASON_MAX];
	uint64_t time_multiplier, time_offset;
	struct fay_shm_control geometry; /* what the control page starts as */
	size_t shm_size;
	/* In the target. */
	uint64_t table_address, shm_address, records_address;
	/* calls have records: what probes want of their ends is not known at an exit alone */
	bool records;
	bool some_records;   /* or those of some points */
	bool wide_records;   /* which keep what probes of calls' ends read of their beginning */
	size_t records_size; /* 0: there are none */
	struct fay_zone_plan *zones;
	size_t zone_count;
};

/* How many bytes a plan has for the site, twice. */
static inline size_t fay_site_room(const struct fay_site *site)
{
	return site->size > FAY_JUMP_BYTES ? site->size : FAY_JUMP_BYTES;
}

/* The bytes at the site, site->size of them and zeros up to FAY_JUMP_BYTES, as they were read.
 * Valid until another site is added. */
static inline uint8_t *fay_site_before(const struct fay_plan *plan, const struct fay_site *site)
{
	return plan->bytes + site->bytes;
}

/* The same without other sessions' jumps. */
static inline uint8_t *fay_site_program(const struct fay_plan *plan, const struct fay_site *site)
{
	return plan->bytes + site->bytes + fay_site_room(site);
}

/* Bytes for the records of calls. */
static inline bool fay_point_records(const struct fay_plan *plan, const struct fay_point *point)
{
	return (plan->records && (point->leaves || point->helper)) || point->unsure;
}
/* Index of the struct fay_place_cost in which is what is done for its calls' records, too: behind
 * those of all points. */
static inline uint64_t fay_point_record_cost(const struct fay_plan *plan,
					     const struct fay_point *point)
{
	return plan->point_count + point->cost;
}
static inline unsigned fay_plan_record_bits(const struct fay_plan *plan)
{
	return plan->wide_records ? FAY_WIDE_RECORD_BITS : FAY_RECORD_BITS;
}
static inline size_t fay_records_size(const struct fay_plan *plan)
{
	return plan->some_records
		       ? plan->options.slot_max * fay_records_stride(fay_plan_record_bits(plan))
		       : 0;
}

/* points.c: which functions and places the probes want; first of all. */
int fay_points_resolve(struct fay_plan *plan, struct fay_error *error);
/* A point for a probe (an index), or, if that is NULL, for a hook; a place that several want is one
 * point. -1: there are too many, or memory is out; fay_points_full() says which. */
int fay_point_append(struct fay_plan *plan, size_t *capacity, const struct fay_function *function,
		     const uint32_t *probe, enum fay_hook hook);
int fay_points_full(const struct fay_plan *plan, struct fay_error *error);
void fay_point_deinit(struct fay_point *point);
void fay_point_forget_flow(struct fay_point *point);
void fay_points_deinit(struct fay_plan *plan);

/* plan.c: judges the points as the process is now, and writes the zones' bytes. A point that is
 * wanted and cannot be patched is skipped; that none can is an error. Made anew for each
 * attempt. */
int fay_plan_make(struct fay_plan *plan, struct fay_error *error);
/* Whoever attaches does not want it any more (fay_attach_options.given_up). */
static inline bool fay_plan_abandoned(const struct fay_plan *plan)
{
	return plan->options.given_up && *plan->options.given_up;
}
void fay_plan_forget(struct fay_plan *plan);
/* Nothing can be patched, but the kernel may trap: nothing is to be installed. */
bool fay_plan_only_traps(const struct fay_plan *plan);
/* Points that probes have and that are patched. */
size_t fay_plan_point_count(const struct fay_plan *plan);
bool fay_plan_any_point(const struct fay_plan *plan);
/* Some probe reads this field of its event. */
bool fay_plan_reads(const struct fay_plan *plan, uint32_t field);

/* sites.c: reads and checks every point's bytes; what cannot be patched goes to the skipped ones.
 */
int fay_sites_plan(struct fay_plan *plan, const struct fay_zones *present,
		   const struct fay_maps *maps, int memory, struct fay_error *error);
/* site_order.c: whether there are sites in a mapping that the program may write. */
bool fay_sites_writable(const struct fay_plan *plan, const struct fay_map *map);
/* The usable site that has the address behind its first byte and within `reach` of it; NULL: there
 * is none. */
struct fay_site *fay_site_around(const struct fay_plan *plan, uint64_t address);

/* Usable points that only help others. */
size_t fay_plan_helper_count(const struct fay_plan *plan);
/* Points that are patched come first, as fay_session_point() has them; then those that help. Nobody
 * needs their flows any more, unless the plan is all that is wanted. */
void fay_plan_settle(struct fay_plan *plan);

/*
 * ready.c. What was lent goes back: the plan has no points, sites and bytes of zones any more,
 * until it gets its own. `whole`: with the points' flows, and the zones' code, which nobody must
 * have had since. False: out of memory.
 */
void fay_ready_return(struct fay_plan *plan);
bool fay_ready_own(struct fay_plan *plan, bool whole);

/* rendezvous.c: whether the program waits when it loads modules. */
bool fay_rendezvous_hooked(const struct fay_plan *plan);

/*
 * kept.c: the points and sites of a process from what was planned of its files, once for all
 * processes that have them. *done false: that cannot be; nothing is changed then.
 */
void fay_plan_assemble(struct fay_plan *plan, bool *done);

/* code_shared.c: which probes are copied into the trampolines, and whether threads are marked as
 * busy. */
void fay_dispatch_choose(const struct fay_verdict *verdict, struct fay_dispatch *dispatch);

#endif
