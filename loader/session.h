/* SPDX-License-Identifier: MIT */
/* A session's parts, private to loader/: session.c (beginning), session_end.c, rendezvous.c and unload.c (modules that come and go), places.c, points.c, watch.c and walkers.c (what to patch), code.c and code_point.c (zones' bytes), install.c and install_memory.c (into the
 * target), cost.c, host.c (probes that run here). */
#ifndef FAY_LOADER_SESSION_H
#define FAY_LOADER_SESSION_H

#include "fay/loader.h"
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

/* One function entry and the probes that want it. */
struct fay_point {
	struct fay_function function;
	uint32_t *probes; /* indices into verdict->probes, in order */
	uint32_t probe_count;
	/* Found when planning; again for each attempt. */
	bool usable;
	uint64_t site;
	uint8_t before[FAY_DISPLACED_MAX];   /* bytes at the site as they were read */
	uint8_t program[FAY_DISPLACED_MAX];  /* the same without other sessions' jumps */
	unsigned before_size;
	bool linked; /* another session's jump is at the site */
	bool inside;     /* a place inside a function, `offset` bytes behind its start */
	uint64_t offset; /* function.address is then the place, function.size what follows it */
	unsigned back;   /* the jump is written that many bytes before the place (relocate.h, fay_patchable_before) */
	uint64_t copy;   /* where the instructions that are overwritten have their copy; `displaced` maps them */
	uint64_t lower;  /* linked: where the trampoline goes on */
	uint64_t lower_returns[FAY_WATCHING_SESSIONS]; /* and the return points of the sessions below, lower_return_count of them */
	unsigned lower_return_count;
	struct fay_marker_place *marker; /* what its trampoline needs; NULL: no marker */
	const char *untraced;  /* why a run-time system does not stand that its code is changed; NULL: it does */
	const char *unwatched; /* why a run-time system does not stand that its calls are watched; NULL: it does */
	bool careful; /* may be jumped to with flags and red zone in use: a part of a function, or known from the unwind table alone */
	uint32_t cost; /* index of its struct fay_place_cost in each slot */
	bool taken_out; /* its patch has been removed while the session goes on */
	bool unloaded; /* likewise, with the module that it was in: what lies there now is another's */
	bool go; /* a function of Go, which gets its arguments in Go's registers */
	const char *argless; /* why its arguments cannot be read; NULL: they can, or nobody reads them */
	bool watched; /* calls are watched until they return */
	bool shared;  /* shares its trampoline */
	enum fay_hook { FAY_HOOK_NONE, FAY_HOOK_FIND_OBJECT, FAY_HOOK_FIND_FDE, FAY_HOOK_LONGJMP, FAY_HOOK_MODULES } hook; /* what the runtime wants here itself */
	struct fay_displaced displaced;
	struct fay_zone_patch patch;
};

/* A jump back to the first instruction of a point's function, and its patch; `trampoline` is 0 until the point has its copy of the instructions. */
struct fay_point_back {
	size_t point;
	struct fay_zone_patch patch;
};

#define FAY_HELD_MAX 64u

/* Probes that many points of a zone have: these share one trampoline if there are enough of them. */
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
	size_t returns_at, return_count; /* struct fay_return_point[] in the code */
	size_t alias_count;              /* behind them: return points of other sessions for the same functions */
	struct fay_zone_header header;
	uint8_t *data;  /* header and patches, data_size bytes */
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
	int memory; /* /proc/PID/mem: bound to the address space that was patched, so reading fails after exit and after exec; -1 none */
	struct fay_attach_options options;
	uint64_t id;
	struct fay_point *points;
	size_t point_count, folded_count; /* the first so many are sorted, each place once; while they are looked for */
	struct fay_point_back *backs; /* sorted by point */
	size_t back_count, back_room;
	struct fay_rseqs rseqs; /* restartable sequences of the modules that have points */
	uint64_t held[FAY_HELD_MAX]; /* sites inside of which some stack had a signal frame, or a word that looks like one, in this attempt */
	size_t held_count;
	uint64_t given_up[FAY_HELD_MAX]; /* those that were so attempt after attempt */
	size_t given_up_count;
	struct fay_skipped_point *skipped;
	size_t skipped_count;
	uint64_t stamp_cycles; /* that an event with no probe appears to take; 0: not measured yet (cost.c) */
	bool reads_time; /* or measures costs: the time stamp counter's rate is known */
	struct fay_dispatch dispatch;
	struct fay_host *host; /* begin, end and timer probes; NULL: none */
	size_t shared_points; /* points that share a trampoline */
	uint32_t tids[FAY_TIDS_MAX]; /* the threads that are traced, as they know themselves; options.tid_count of them */
	int32_t tid_offset;
	bool jumps_followed; /* something in the process takes a jump at a function's first byte for the function's own */
	size_t unwatched_count;    /* functions that were taken out since somebody asked, for a run-time system that was loaded meanwhile */
	const char *unwatched_for; /* its name */
	uint64_t rendezvous; /* struct r_debug of the process's dynamic linker; 0: not known */
	struct fay_known *known; /* known_count of them */
	size_t known_count;
	bool too_many; /* its calls cannot be watched: the process has FAY_WATCHING_SESSIONS of others that are */
	size_t modules_refused; /* modules of later sessions that were refused for that; in the first session */
	char unhooked[FAY_REASON_MAX]; /* why the program does not wait when it loads modules; "": it does, or nobody asked for that */
	bool thread_pointer; /* fs:0 holds the fs base in every thread */
	uint64_t time_multiplier, time_offset;
	/* In the target. */
	bool no_room; /* the last attempt found no room there */
	uint64_t table_address, shm_address, calls_address;
	size_t calls_size;    /* 0: no call is watched */
	uint32_t unwind_step; /* struct fay_runtime_config */
	bool table_mapped, shm_mapped, calls_mapped; /* while installing */
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

/* places.c: where a probe is wanted, but for modules that other sessions of the process know. Threads' functions are in the C library, which is there from the beginning. */
int fay_places_find(struct fay_session *session, uint32_t probe, struct fay_function_list *list, struct fay_error *error);

/* Bytes for the stacks of watched calls. */
static inline size_t fay_calls_size(const struct fay_session *session)
{
	return (size_t)session->options.slot_max * FAY_CALLS_STRIDE + FAY_OTHERS_BYTES;
}

/* points.c */
int fay_points_resolve(struct fay_session *session, struct fay_error *error);
/* Reads and checks every point's bytes; what cannot be patched goes to the skipped ones. */
int fay_points_plan(struct fay_session *session, const struct fay_zones *present, int memory, struct fay_error *error);
/* A point for a probe (an index), or, if that is NULL, for a hook; a place that several want is one point. -1: there are too many, or memory is out. */
int fay_point_append(struct fay_session *session, size_t *capacity, const struct fay_function *function, const uint32_t *probe,
		     enum fay_hook hook);
/* Says why that failed. */
int fay_points_full(const struct fay_session *session, struct fay_error *error);
int fay_session_skip(struct fay_session *session, struct fay_point *point, const char *reason);
/* Reads up to `size` bytes as the program wrote them, without any trace's jumps. Returns how many there are. */
size_t fay_read_program(const struct fay_zones *present, int memory, uint64_t address, uint8_t *body, size_t size);
void fay_points_deinit(struct fay_session *session);

/*
 * known.c: marks the target's modules that the sessions beside this one know; adds those that are not marked to what a session knows; how many of these have points of a session; takes
 * off what is no longer mapped, and the module at `site` (0: none).
 */
void fay_known_mark(const struct fay_session *session);
void fay_known_remember(struct fay_session *session, const struct fay_target *target);
size_t fay_known_with_points(const struct fay_session *session);
void fay_known_forget(struct fay_session *session, const struct fay_maps *maps, uint64_t site);

/* cost.c: takes places out in one stop, by their numbers. *left: not all could be. */
int fay_session_remove_points(struct fay_session *session, const size_t *points, size_t count, bool *left, struct fay_error *error);

/* inbound.c: sets points aside whose overwritten bytes other functions jump into. */
int fay_inbound_search(struct fay_session *session, const struct fay_zones *present, int memory, struct fay_error *error);

/* rendezvous.c: adds the hook by which the program waits when it loads modules; sets `rendezvous`, or `unhooked`. */
int fay_rendezvous_resolve(struct fay_session *session, size_t *capacity, struct fay_error *error);
/* Whether it is hooked, according to the plan. */
bool fay_rendezvous_hooked(const struct fay_session *session);
/* Whether the point is in code that the dynamic linker may still have to change. */
bool fay_rendezvous_unsettled(const struct fay_session *session, const struct fay_point *point, char reason[FAY_REASON_MAX]);
/* Nobody waits there any longer. The other one: for a session of a fay that is gone. */
void fay_rendezvous_release(struct fay_session *session);
void fay_rendezvous_release_other(pid_t pid, uint64_t id);

/* walkers.c: sets `untraced`, `unwatched`, `go`, `argless` and jumps_followed. The other one: for a session beside others: takes out of these what a run-time system that has been loaded since does not stand. */
void fay_walkers_judge(struct fay_session *session);
int fay_walkers_came(struct fay_session *session, struct fay_error *error);

/* watch.c: adds the points of hooks; whether a module that is not known has an unwinder that sessions of before do not serve; whether a module has a function of this name; whether a function's
 * calls cannot be watched, by its name. */
int fay_watch_hooks(struct fay_session *session, size_t *capacity, struct fay_error *error);
bool fay_unwinder_came(const struct fay_target *target);
bool fay_module_defines(const struct fay_target *target, struct fay_module *module, const char *name);
/* Likewise whether a function cannot be patched at all. */
bool fay_unpatchable(const char *name, char reason[FAY_REASON_MAX]);
bool fay_unwatchable(const char *name, char reason[FAY_REASON_MAX]);

/* code.c: chooses addresses (reserving them in `maps`) and writes all zones' bytes. */
int fay_zones_build(struct fay_session *session, struct fay_maps *maps, struct fay_error *error);
void fay_zone_plans_deinit(struct fay_session *session);
int fay_maps_reserve(struct fay_maps *maps, uint64_t start, uint64_t size);

/* code_point.c: which sets of probes share a trampoline, the set of a point (NULL: it has a trampoline of its own), their bodies, and one point's
 * trampoline, at zone->code_size; false: it does not fit, or `reason` says why the point cannot be done. `link_slot` is where its patch's link will be. */
void fay_zone_count_sets(const struct fay_session *session, struct fay_zone_plan *zone);
const struct fay_shared_set *fay_zone_set_of(const struct fay_zone_plan *zone, const struct fay_point *point);
bool fay_zone_write_shared(struct fay_session *session, struct fay_zone_plan *zone);
bool fay_zone_write_point(struct fay_session *session, struct fay_zone_plan *zone, struct fay_point *point, uint64_t link_slot,
			  char reason[FAY_REASON_MAX]);

/* host.c. *host is NULL if the image has no probe that runs here. */
int fay_host_create(struct fay_session *session, struct fay_host **host, struct fay_error *error);
void fay_host_destroy(struct fay_host *host);

/* session.c: all that planning has made. */
void fay_session_forget_plan(struct fay_session *session);

/* install_memory.c: maps what the session needs in the stopped target, and checks that the image there is the verified one; unmaps what was mapped. */
int fay_install_memory(struct fay_session *session, struct fay_stop *stop, struct fay_error *error);
bool fay_install_undo(struct fay_session *session, struct fay_stop *stop); /* false: something stays mapped */

/* install.c: what can be done before the target is stopped. */
int fay_session_prepare(struct fay_session *session, struct fay_error *error);
/* Some probe reads this field of its event. */
bool fay_session_reads(const struct fay_session *session, uint32_t field);
/* With the target stopped. -1: something changed since the plan was made; plan again. */
int fay_session_install(struct fay_session *session, struct fay_stop *stop, struct fay_error *error);

/* clock.c: event.time = (tsc * multiplier >> 32) + offset. */
void fay_clock_calibrate(uint64_t *multiplier, uint64_t *offset);

#endif
