/* SPDX-License-Identifier: MIT */
/* A session's parts, private to loader/: session.c (beginning), session_end.c, rendezvous.c and
 * unload.c (modules that come and go), places.c, points.c, exits.c, sites.c and runtimes.c (what to
 * patch), code.c, code_point.c and code_window.c (zones' bytes), install.c and install_memory.c
 * (into the target), cost.c, host.c (probes that run here). */
#ifndef FAY_LOADER_SESSION_H
#define FAY_LOADER_SESSION_H

#include "fay/loader.h"
#include "flow.h"
#include "maps.h"
#include "markers.h"
#include "relocate.h"
#include "rseq.h"
#include "runtime.h"
#include "stop.h"
#include "text.h"
#include "trampoline.h"
#include "zone.h"

#define FAY_POINTS_MAX (1u << 18)

/* `to` is a power of two. */
static inline uint64_t fay_round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

/* One function, or a place inside one, and the probes that want it. */
struct fay_point {
	struct fay_function function;
	uint32_t *probes; /* indices into verdict->probes, in order */
	uint32_t probe_count;
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
	/* why its exits are not patched, although they should be; NULL: they can be */
	char *no_exits;
	uint32_t cost; /* index of its struct fay_place_cost in each slot */
	/* Found when planning; again for each attempt. */
	bool usable;
	bool exits; /* they are patched */
	size_t first_site, site_count;
	bool shared; /* shares its trampoline */
	/* Later. */
	bool taken_out; /* its patches have been removed while the session goes on */
	/* likewise, with the module that it was in: what lies there now is another's */
	bool unloaded;
};

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
	uint64_t site;
	size_t point;
	uint8_t kind; /* enum fay_site_kind */
	bool usable;
	bool linked; /* another session's jump is there */
	bool leads;  /* some jump in it leads to a block's copy */
	bool ends;   /* the flow does not go on behind its last instruction */
	/* bytes from the site to a marker that is patched before its place (relocate.h,
	 * fay_patchable_before), or to a window's only exit */
	uint8_t back;
	uint8_t length; /* bytes of whole instructions that have their copy; 0 of a redirect */
	uint8_t size;   /* bytes below that are known */
	uint32_t first_exit, exit_count; /* of the point's flow: in this window */
	/* of a redirect: its number, or FAY_FLOW_ENTRY; of a block: its own; of a hole: the number
	 * of the point's site that it is for */
	uint32_t block;
	uint64_t hole;                   /* a short jump leads there; 0: it has room itself */
	uint8_t reach;                   /* bytes from the site that nobody else may patch */
	uint8_t before[FAY_SITE_BYTES];  /* bytes at the site as they were read */
	uint8_t program[FAY_SITE_BYTES]; /* the same without other sessions' jumps */
	uint64_t lower;                  /* linked: where the trampoline goes on */
	/* likewise the part in front of the exit of a function that is whole in this window */
	uint64_t lower_part;
	uint8_t boundary_count; /* instructions that begin within fay_site_closed(), */
	struct {
		uint8_t from;
		uint64_t to; /* and where threads that stand there go on */
	} boundaries[2 * FAY_JUMP_BYTES];
	struct fay_zone_patch patch;
};

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

#define FAY_HELD_MAX 64u

/* Probes that many points of a zone have: these share one trampoline if there are enough of them.
 * */
#define FAY_SHARED_SETS 16u
struct fay_shared_set {
	const struct fay_point *model; /* one of the points */
	size_t points;
	bool chosen;
	struct fay_shared body;
};

/* A zone being built. */
struct fay_zone_plan {
	size_t first, last; /* points [first, last) */
	uint64_t low, high; /* every overwritten byte lies in [low, high) */
	uint64_t address;
	uint8_t *code;
	size_t code_size, capacity;
	uint64_t image; /* address of the layout's bytes */
	struct fay_shared_set sets[FAY_SHARED_SETS];
	size_t set_count;
	size_t watched_at, watched_count; /* struct fay_watched[] in the code */
	struct fay_zone_header header;
	uint8_t *data;            /* header and patches, data_size bytes */
	bool mapped, data_mapped; /* in the target */
};

/* Where code of a module that was looked at begins. */
struct fay_known {
	uint64_t start, device, inode;
};

struct fay_session {
	struct fay_target *target;
	const struct fay_verdict *verdict; /* during attach only */
	pid_t pid;
	uint64_t pid_start;
	uint64_t attach_ticks; /* when attaching began, as fay_process_start() counts */
	/* /proc/PID/mem: bound to the address space that was patched, so reading fails after exit
	 * and after exec; -1 none */
	int memory;
	struct fay_attach_options options;
	uint64_t id;
	struct fay_point *points;
	/* the first so many are sorted, each place once; while they are looked for */
	size_t point_count, folded_count;
	struct fay_site *sites; /* each point's together */
	size_t site_count, site_room;
	uint32_t *order; /* of the usable ones that are patched, by address; order_count of them */
	size_t order_count;
	struct fay_rseqs rseqs; /* restartable sequences of the modules that have points */
	/* sites inside of which some stack had a signal frame, or a word that looks like one, in
	 * this attempt */
	uint64_t held[FAY_HELD_MAX];
	size_t held_count;
	uint64_t given_up[FAY_HELD_MAX]; /* those that were so attempt after attempt */
	size_t given_up_count;
	struct fay_skipped_point *skipped;
	size_t skipped_count;
	/* that an event with no probe appears to take; 0: not measured yet (cost.c) */
	uint64_t stamp_cycles;
	bool reads_time; /* or measures costs: the time stamp counter's rate is known */
	struct fay_dispatch dispatch;
	struct fay_host *host; /* begin, end and timer probes; NULL: none */
	size_t shared_points;  /* points that share a trampoline */
	/* the threads that are traced, as they know themselves; options.tid_count of them */
	uint32_t tids[FAY_TIDS_MAX];
	int32_t tid_offset;
	/* something in the process takes a jump at a function's first byte for the function's own
	 * */
	bool jumps_followed;
	uint64_t rendezvous;     /* struct r_debug of the process's dynamic linker; 0: not known */
	struct fay_known *known; /* known_count of them */
	size_t known_count;
	/* why the program does not wait when it loads modules; "": it does, or nobody asked for
	 * that */
	char unhooked[FAY_REASON_MAX];
	bool thread_pointer; /* fs:0 holds the fs base in every thread */
	uint64_t time_multiplier, time_offset;
	/* In the target. */
	bool no_room; /* the last attempt found no room there */
	uint64_t table_address, shm_address, records_address;
	/* calls have records: what probes want of their ends is not known at an exit alone */
	bool records;
	bool some_records;                             /* or those of some points */
	size_t records_size;                           /* 0: there are none */
	bool table_mapped, shm_mapped, records_mapped; /* while installing */
	struct fay_zone_plan *zones;
	size_t zone_count;
	struct fay_text text; /* the pages with sites, while attaching */
	/* Here. */
	struct fay_shm_control *shm; /* mapped by fay_owner_map() */
	bool owner_locked;
	size_t shm_size;
	struct fay_shm_control geometry; /* what the control page starts as */
	uint64_t longest_pause;
	bool attached, left_mapped;
};

/* places.c: where a probe is wanted, but for modules that other sessions of the process know.
 * Threads' functions are in the C library, which is there from the beginning. */
int fay_places_find(struct fay_session *session, uint32_t probe, struct fay_function_list *list,
		    struct fay_error *error);

/* Bytes for the records of calls. */
static inline bool fay_point_records(const struct fay_session *session,
				     const struct fay_point *point)
{
	return (session->records && (point->leaves || point->helper)) || point->unsure;
}
static inline size_t fay_records_size(const struct fay_session *session)
{
	return session->some_records ? (size_t)session->options.slot_max * FAY_RECORDS_STRIDE : 0;
}

/* points.c */
int fay_points_resolve(struct fay_session *session, struct fay_error *error);
/* Sorts them; those of one place become one. */
int fay_points_fold(struct fay_session *session);
/* The point for a function's entry; NULL: there is none. They are folded. */
struct fay_point *fay_points_at(const struct fay_session *session, uint64_t address);
/* Whether some probe runs when calls begin, or at a place inside. */
bool fay_point_enters(const struct fay_session *session, const struct fay_point *point);
/* A point for a probe (an index), or, if that is NULL, for a hook; a place that several want is one
 * point. -1: there are too many, or memory is out. */
int fay_point_append(struct fay_session *session, size_t *capacity,
		     const struct fay_function *function, const uint32_t *probe,
		     enum fay_hook hook);
/* Says why that failed. */
int fay_points_full(const struct fay_session *session, struct fay_error *error);
/* Sets a point aside, or says of one that stays what of it is set aside. -1: out of memory. */
int fay_session_skip(struct fay_session *session, struct fay_point *point, const char *reason);
int fay_session_note(struct fay_session *session, const struct fay_point *point,
		     const char *reason);

/*
 * exits.c: reads how functions are left whose calls' ends are wanted; decides whether calls need
 * records; adds the points of functions that calls go on in, or that leave calls.
 */
int fay_exits_resolve(struct fay_session *session, size_t *capacity, struct fay_error *error);
/* program_text.c: a process's code, while it is looked at. The first two are the caller's. */
struct fay_program_text {
	const struct fay_zones *present;
	int memory; /* /proc/PID/mem */
	uint8_t *kept;
	uint64_t at;
	size_t size;
};
void fay_program_text_deinit(struct fay_program_text *text);
/* Reads up to `size` bytes as they are, or as the program wrote them, without any trace's jumps.
 * Returns how many there are. */
size_t fay_text_now(struct fay_program_text *text, uint64_t address, void *to, size_t size);
size_t fay_text_program(struct fay_program_text *text, uint64_t address, void *to, size_t size);
/* Whether the exit leads to what a word of the process holds (a stub of the procedure linkage
 * table), and where that lies. */
bool fay_exit_by_word(struct fay_program_text *text, uint64_t target, uint64_t *word);

/*
 * sites.c: reads and checks every point's bytes; what cannot be patched goes to the skipped ones.
 */
int fay_sites_plan(struct fay_session *session, const struct fay_zones *present, int memory,
		   struct fay_error *error);
/* Whether any usable site lies in [low, high). */
bool fay_site_between(const struct fay_session *session, uint64_t low, uint64_t high);
/* The usable site that has the address behind its first byte and within `reach` of it; NULL: there
 * is none. */
struct fay_site *fay_site_around(const struct fay_session *session, uint64_t address);
/* It cannot be patched: sets the point aside, or its exits alone, then it has no usable sites until
 * it is planned again. */
int fay_site_refuse(struct fay_session *session, struct fay_site *site, const char *reason);
void fay_point_deinit(struct fay_point *point);
void fay_points_deinit(struct fay_session *session);

/*
 * known.c: marks the target's modules that the sessions beside this one know; adds those that are
 * not marked to what a session knows; takes off what is no longer mapped, and the module at `site`
 * (0: none).
 */
void fay_known_mark(const struct fay_session *session);
void fay_known_remember(struct fay_session *session, const struct fay_target *target);
void fay_known_forget(struct fay_session *session, const struct fay_maps *maps, uint64_t site);

/* cost.c: takes places out in one stop, by their numbers. *left: not all could be. */
int fay_session_remove_points(struct fay_session *session, const size_t *points, size_t count,
			      bool *left, struct fay_error *error);

/* inbound.c: refuses sites whose overwritten bytes other functions jump into. */
int fay_inbound_search(struct fay_session *session, struct fay_program_text *text,
		       struct fay_error *error);

/* rendezvous.c: adds the hook by which the program waits when it loads modules; sets `rendezvous`,
 * or `unhooked`. */
int fay_rendezvous_resolve(struct fay_session *session, size_t *capacity, struct fay_error *error);
/* Whether it is hooked, according to the plan. */
bool fay_rendezvous_hooked(const struct fay_session *session);
/* Whether the point is in code that the dynamic linker may still have to change. */
bool fay_rendezvous_unsettled(const struct fay_session *session, const struct fay_point *point,
			      char reason[FAY_REASON_MAX]);
/* Nobody waits there any longer. The other one: for a session of a fay that is gone. */
void fay_rendezvous_release(struct fay_session *session);
void fay_rendezvous_release_other(pid_t pid, uint64_t id);

/* runtimes.c: sets `untraced`, `go`, `stack_moves`, `argless` and jumps_followed. */
void fay_runtimes_judge(struct fay_session *session);
/* Whether a module has a function of this name; whether a function cannot be patched at all, by its
 * name. */
bool fay_module_defines(const struct fay_target *target, struct fay_module *module,
			const char *name);
bool fay_unpatchable(const char *name, char reason[FAY_REASON_MAX]);

/* code.c: chooses addresses (reserving them in `maps`) and writes all zones' bytes. */
int fay_zones_build(struct fay_session *session, struct fay_maps *maps, struct fay_error *error);
void fay_zone_plans_deinit(struct fay_session *session);
int fay_maps_reserve(struct fay_maps *maps, uint64_t start, uint64_t size);

/*
 * code_point.c: which sets of probes share trampolines, the set of a point (NULL: it has
 * trampolines of its own), their bodies, and one point's trampolines and patches, at
 * zone->code_size; false: `reason` says why the point cannot be done, or is empty: out of memory.
 */
void fay_zone_count_sets(const struct fay_session *session, struct fay_zone_plan *zone);
const struct fay_shared_set *fay_zone_set_of(const struct fay_zone_plan *zone,
					     const struct fay_point *point);
bool fay_zone_write_shared(struct fay_session *session, struct fay_zone_plan *zone);
/* Bytes that a point's trampolines take at most. */
uint64_t fay_zone_point_room(const struct fay_session *session, const struct fay_zone_plan *zone,
			     const struct fay_point *point);
uint64_t fay_zone_set_room(const struct fay_session *session, const struct fay_shared_set *set);
bool fay_zone_write_point(struct fay_session *session, struct fay_zone_plan *zone,
			  struct fay_point *point, char reason[FAY_REASON_MAX]);

/* One point's trampolines being written. code_window.c: what is copied, with the parts in front of
 * exits. */
struct fay_writer {
	struct fay_session *session;
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

/* host.c. *host is NULL if the image has no probe that runs here. */
int fay_host_create(struct fay_session *session, struct fay_host **host, struct fay_error *error);
void fay_host_destroy(struct fay_host *host);

/* session.c: all that planning has made. */
void fay_session_forget_plan(struct fay_session *session);

/* install_memory.c: maps what the session needs in the stopped target, and checks that the image
 * there is the verified one; unmaps what was mapped. */
int fay_install_memory(struct fay_session *session, struct fay_stop *stop, struct fay_error *error);
/* false: something stays mapped */
bool fay_install_undo(struct fay_session *session, struct fay_stop *stop);

/* install.c: what can be done before the target is stopped. */
int fay_session_prepare(struct fay_session *session, struct fay_error *error);
/* Some probe reads this field of its event. */
bool fay_session_reads(const struct fay_session *session, uint32_t field);
/* With the target stopped. -1: something changed since the plan was made; plan again. */
int fay_session_install(struct fay_session *session, struct fay_stop *stop,
			struct fay_error *error);

/* clock.c: event.time = (tsc * multiplier >> 32) + offset. */
void fay_clock_calibrate(uint64_t *multiplier, uint64_t *offset);

#endif
