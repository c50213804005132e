/* SPDX-License-Identifier: MIT */
/* The room of traces: what `fay trace` and libfay_trace do, file by file. trace.c has a trace's
 * life. */
#ifndef FAY_TRACE_SESSION_H
#define FAY_TRACE_SESSION_H

#include "trace.h"

/* trace.c */
/* All but what is given is zero. */
void fay_trace_init(struct trace *trace, const struct trace_output *output, FILE *messages);
void fay_trace_deinit(struct trace *trace);
/* From a query or an image to what can be attached; a command is started, stopped. */
int fay_trace_prepare(struct trace *trace, struct fay_error *error);
/* Attaches, here. */
int fay_trace_begin(struct trace *trace, struct fay_error *error);
/* Detaches; the last picture. `result`: of what went on until now. */
int fay_trace_end(struct trace *trace, int result, struct fay_error *error);
/* The time by which events are stamped, ns since the epoch: the system's clock as it was set when
 * the trace began. It goes on evenly when that clock is set, and while the machine sleeps. On a
 * cluster, and of functions of the kernel through fay.ko, it is the system's clock as it is set
 * now, as of the events there. */
uint64_t fay_trace_now(const struct trace *trace);
/* What is to be added to times of the system's clock, if that was set since; else 0. */
int64_t fay_trace_clock_set(const struct trace *trace);
void fay_trace_stage(struct trace *trace, const char *name, uint64_t since);
/* Starts the command, stopped: in the kernel it is seen from its first instruction on, else once
 * its libraries are there. It is one of `pids` then. */
int fay_trace_spawn(struct trace *trace, struct fay_error *error);

/* processes.c */
/* "2%" or "none", of which the share is 0; FAY_E_USAGE: it is neither. */
int fay_trace_read_budget(const char *text, double *share);
int fay_trace_set_budget(struct trace *trace, const char *text);
/* The process that the query names. */
int fay_trace_add_process(struct trace *trace, const struct fay_query_process *process,
			  struct fay_error *error);
/* Whether this machine is one that the query names, or other machines are asked. */
int fay_trace_check_machine(const struct trace *trace, const char *machine,
			    struct fay_error *error);
/* Processes by name; that there are any, if the query needs some. */
int fay_trace_find_processes(struct trace *trace, struct fay_error *error);

/* image.c: query or file to an accepted image, and its views. */
int fay_trace_image(struct trace *trace, struct fay_error *error);
/* The accepted image of a `native_side`, now that its processes are known. */
int fay_trace_side_image(struct trace *trace, struct fay_error *error);

/* targets.c */
/* Whether the process is in our PID namespace, whose numbers the kernel's events have. */
bool fay_trace_has_our_numbers(pid_t pid);
/* That all processes that are asked for are there. */
int fay_trace_check_processes(const struct trace *trace, struct fay_error *error);
/* Whether the process is among those that are asked for. */
bool fay_trace_names(const struct trace *trace, pid_t pid);
/* Whether children that the process forks count as it does: with --follow, and of a process that is
 * traced for its name. */
bool fay_trace_counts_children(const struct trace *trace, pid_t pid);
/* Whether processes are asked for by what they are called, or by what else they have. */
static inline bool fay_trace_is_by_name(const struct trace *trace)
{
	return trace->comm_count || fay_selection_is_given(&trace->select);
}
/* Those that are called so now; how many there are. */
size_t fay_trace_find_named(const struct trace *trace, pid_t *pids, size_t max);
/* --cmdline, --user, --cgroup: which processes they mean. */
int fay_trace_select(struct trace *trace, struct fay_error *error);
int fay_trace_attach(struct trace *trace, struct fay_error *error);
/* Of what began, or loaded a module, after the others: what is not there is no error, what was
 * attached is said. */
enum trace_attach {
	TRACE_ATTACH_FIRST,
	TRACE_ATTACH_LATER,
	TRACE_ATTACH_EXECUTED /* a followed process that has just executed its program */
};
int fay_trace_attach_one(struct trace *trace, pid_t pid, enum trace_attach when,
			 struct fay_error *error);
void fay_trace_report_points(const struct trace *trace);
/* How each probe is run: inlined or called, how many functions share a trampoline. */
void fay_trace_report_dispatch(const struct trace *trace);
const char *fay_trace_function_name(void *context, uint64_t hash);
/* By which functions are ordered: as people read it, in whatever format it is shown; rows.c. */
const char *fay_trace_order_name(void *context, uint64_t hash);
void fay_trace_address_name(void *context, uint64_t address, unsigned form, char *text,
			    size_t size);

/* stacks.c */
/* Whether the query's stacks, and --folded, go with the other options. */
int fay_trace_stacks_check(const struct trace *trace, struct fay_error *error);
/* What probes walk stacks by in the target, as `options->global`; NULL: they walk none. To be
 * freed. */
int fay_trace_stacks_make(struct trace *trace, struct fay_target *target,
			  struct fay_attach_options *options, struct fay_stack_tables **tables,
			  struct fay_error *error);
/* The process has loaded modules. */
void fay_trace_stacks_update(struct trace *trace, pid_t pid);
void fay_trace_stacks_deinit(struct trace *trace);

/* bpf.c */
static inline bool fay_trace_is_kernel(const struct trace *trace)
{
	return trace->plan && trace->plan->domain == DOMAIN_KERNEL && !trace->native;
}
/* Whether programs of the query's run in the kernel beside probes in processes. */
static inline bool fay_trace_is_mixed(const struct trace *trace)
{
	return trace->plan && trace->plan->domain == DOMAIN_USER && trace->plan->kernel_sides;
}
int fay_trace_bpf_prepare(struct trace *trace, struct fay_error *error);
/* The query's programs into trace->bpf. */
int fay_trace_bpf_generate(struct trace *trace, struct fay_error *error);
int fay_trace_bpf_attach(struct trace *trace, struct fay_error *error);
int fay_trace_bpf_poll(struct trace *trace, struct fay_error *error);
/* Whether a process that was asked for, if any was, or one that is followed still runs. */
bool fay_trace_bpf_goes_on(struct trace *trace);
void fay_trace_bpf_detach(struct trace *trace);
void fay_trace_bpf_deinit(struct trace *trace);
/* Of an event's function, by its hash; NULL. */
const char *fay_trace_bpf_name(const struct trace *trace, uint64_t hash);

/* Traps. Whether they may be set in the process, to be known before it is attached to. */
bool fay_trace_traps_may(const struct trace *trace, pid_t pid);
/* Whether nothing is installed of the last session: then it is not one of `sessions` any more. */
bool fay_trace_traps_keep(struct trace *trace);
/* fay_attach_options.planned, of the only process that is attached to: their programs are made
 * before its jumps count. */
void fay_trace_traps_foresee(void *trace, const struct fay_session *session);
/* Once all are attached to: sets them, or says why not. An error: nothing is traced. */
int fay_trace_traps_attach(struct trace *trace, struct fay_error *error);
/* Says, once, that what comes later is not given so many. */
void fay_trace_traps_too_many(struct trace *trace);
/* Children wait for their parent's traps from now on, if there are such that they can have. */
void fay_trace_hold_forked(struct trace *trace);
/* What comes later, while it waits: the same for the session, the last one of those that are kept,
 * or of `sessions`. An error: nothing is traced there, and it is forgotten. */
int fay_trace_traps_later(struct trace *trace, const struct fay_session *session, pid_t pid,
			  struct fay_error *error);
/* Gives up traps that take too much. */
void fay_trace_traps_tick(struct trace *trace);
/* What comes from now on does not count. */
void fay_trace_traps_stop(struct trace *trace);
/* Whether the program still runs of any process that is traced by traps alone. */
bool fay_trace_traps_alive(const struct trace *trace);
void fay_trace_traps_deinit(struct trace *trace);

/* native.c */
/* Whether verified code of the trace's would run in the kernel: sets `native` or `native_side`, and
 * refuses what means nothing there. */
int fay_trace_native_prepare(struct trace *trace, struct fay_error *error);
int fay_trace_native_attach(struct trace *trace, struct fay_error *error);
/* What images for the kernel are held to; of who is not root, by the policy for users, too, unless
 * there is one of their own (fay.ko refuses in any case). */
void fay_trace_native_policy(const struct trace *trace, struct fay_policy *policy);
/* Of a `native_side`: before the processes are attached to. */
int fay_trace_native_side_attach(struct trace *trace, struct fay_error *error);
/* Runs timer probes; says so if the kernel's functions, by fay.ko or BPF, have been switched off
 * meanwhile. */
void fay_trace_native_tick(struct trace *trace);
int fay_trace_native_detach(struct trace *trace, struct fay_error *error);

/* follow.c */
/* From now on the process is looked at for modules other than it has now. Beyond TRACE_WATCHED_MAX
 * none is. */
void fay_trace_watch(struct trace *trace, pid_t pid);
/* Whether any process that is watched still runs. */
bool fay_trace_watches(const struct trace *trace);
/* By a session of ours that still has it. */
bool fay_trace_is_traced(const struct trace *trace, pid_t pid);
/* Whether children that have been forked with a session's code, and are counted, still run. */
bool fay_trace_children_run(struct trace *trace);
int fay_trace_follow_tick(struct trace *trace, struct fay_error *error);
#define FAY_CALM_LOOK 16u /* so much longer a calm trace takes a look to have been */
/* ns until the next look at something, of one that took `used` ns: `least` at least. `calm`: the
 * last looks found nothing to do. */
uint64_t fay_trace_pause(uint64_t used, uint64_t least, bool calm);
/* Makes room for one more session, if need be by letting go of some whose process is gone. False:
 * there is none. */
bool fay_trace_make_room(struct trace *trace, struct fay_error *error);

/* A program that waits until what it has loaded is attached to; the session by which it does is
 * gone if the program is. */
struct trace_waiting {
	struct fay_session *session;
	uint32_t number;
};
/* A process has other modules than before: what went is forgotten, what is new is attached to.
 * NULL: it does not wait. */
void fay_trace_attach_modules(struct trace *trace, pid_t pid, const struct trace_waiting *waiting);
/* A session that is detached and whose results were taken up. */
void fay_trace_forget_session(struct trace *trace, size_t index);

/* modules.c: programs that wait while they load and unload modules. */
/* Serves those that wait. */
void fay_trace_modules_tick(struct trace *trace);
void fay_trace_modules_answer(const struct trace *trace, const struct trace_waiting *waiting);
/* Functions of modules that are gone are forgotten; sessions that have no others end, but not while
 * children that are followed call theirs. */
void fay_trace_drop_unloaded(struct trace *trace, pid_t pid);
void fay_trace_retire_empty(struct trace *trace, pid_t pid);
/* The process, which has nothing of what is asked for yet, is to wait from now on. Takes the target
 * if it does. */
bool fay_trace_modules_wait(struct trace *trace, pid_t pid, struct fay_target *target);
/* The live sessions of one process, with that by which it does so, last; FAY_TARGETS_MAX + 1 at
 * most. */
size_t fay_trace_sessions_of(const struct trace *trace, pid_t pid, struct fay_session **list);
/* Ends that. */
void fay_trace_modules_leave(struct trace *trace, struct trace_watched *watched);
/* How often a program went on before what it had loaded was attached to. */
uint64_t fay_trace_modules_late(const struct trace *trace);

/* run.c */
void fay_trace_run_begin(struct trace *trace);
/* Waits for so long at most, and takes up what has come; end_reason is there once it is over. */
int fay_trace_step(struct trace *trace, int wait_ms, struct fay_error *error);
/* After it has begun: pictures are made with little work, and often only if that suffices (`calm`).
 */
void fay_trace_be_calm(struct trace *trace);
/* How long a calm trace's step may wait. Programs that want something end that. */
int fay_trace_calm_ms(const struct trace *trace);
/* Until it is over. */
int fay_trace_run(struct trace *trace, struct fay_error *error);
/* Whether it is time for one, each `every` ns, or one is asked for. */
bool fay_trace_picture_due(struct trace *trace, uint64_t every);
int fay_trace_draw(struct trace *trace, bool final, struct fay_result *last,
		   struct fay_error *error);
static inline int fay_trace_check_output(const struct trace *trace, struct fay_error *error)
{
	return trace->output.check(trace->output.context, error);
}
static inline void fay_trace_write_row(const struct trace *trace, const struct fay_view *view,
				       const uint8_t *row, bool revised)
{
	trace->output.row(trace->output.context, view, row, revised);
}

/* executed.c: processes that execute another program, which is not traced, without --follow. */
/* From now on; the process has just been attached to. */
void fay_trace_executed_watch(struct trace *trace, pid_t pid);
/* Again and again while a command runs. */
void fay_trace_executed_tick(struct trace *trace);
/* Waits for the command if it has ended: whether it has. */
bool fay_trace_reap(struct trace *trace);
/* The first that did, or NULL. Not `sure`: a command of which only its name says so, which programs
 * may change. */
const struct trace_executed *fay_trace_executed(const struct trace *trace, bool *sure);
/* A command's children did, and it did not itself. */
bool fay_trace_children_executed(const struct trace *trace);
void fay_trace_executed_deinit(struct trace *trace);

/* rows.c */
void fay_trace_row(void *context, uint32_t state, const uint8_t *row);
/* How a query is planned as to them, and a key of their hashes. */
int fay_trace_texts_plan(const struct trace *trace, struct fay_query_options *options,
			 struct fay_error *error);
int fay_trace_texts_start(struct trace *trace, struct fay_error *error);
/* Of a snapshot's losses, those that are of texts alone are taken out. */
int fay_trace_texts_account(struct trace *trace, struct fay_result *result,
			    struct fay_error *error);
/* How many rows' strings are not known, at the end. */
void fay_trace_texts_print_end(const struct trace *trace);
/* The query asked for so many rows, and they were shown. */
bool fay_trace_has_all_rows(const struct trace *trace);
/* FAY_E_LIMIT if rows could not be kept. */
int fay_trace_rows_error(const struct trace *trace, struct fay_error *error);

/* join.c: a query with several sources. Rows that the aggregator takes are joined, and the
 * pairs fill an aggregator of their own, whose rows are shown. */
int fay_trace_join_start(struct trace *trace, struct fay_error *error);
void fay_trace_join_deinit(struct trace *trace);
/* All rows of events before `time` (ns since the epoch) are here, but for what a thread that was
 * not running has not handed on yet. */
void fay_trace_join_advance(struct trace *trace, uint64_t time);
/* All rows are here. */
void fay_trace_join_end(struct trace *trace);
int fay_trace_join_error(const struct trace *trace, struct fay_error *error);
/* rows.c: windows of so many events, put in order, counted, and shown as they are full. */
int fay_trace_counted_start(struct trace *trace, struct fay_error *error);
void fay_trace_counted_deinit(struct trace *trace);
/* As fay_trace_join_advance(). */
void fay_trace_counted_advance(struct trace *trace, uint64_t time);
int fay_trace_counted_error(const struct trace *trace, struct fay_error *error);
/* Shows the last window as far as it went; what was lost goes to *last. */
int fay_trace_counted_end(struct trace *trace, struct fay_result *last, struct fay_error *error);
void fay_trace_counted_print_end(const struct trace *trace);
/* analyze.c: --analyze. Each poll and the last picture are measured always. */
void fay_trace_analyze_start(struct trace *trace);
int64_t fay_trace_poll(struct trace *trace, struct fay_error *error);
/* `last`: the merged rows. */
void fay_trace_analyze_print(struct trace *trace, const struct fay_result *last, bool final);
/* The figures so far, where they are due (`analyze_due`) or were asked for by a signal. */
int fay_trace_analyze_tick(struct trace *trace, struct fay_error *error);

/* Into `measured`, if there is a join. */
void fay_trace_join_counts(const struct trace *trace, struct fay_measured *measured);
/* What was joined, and what was dropped. */
void fay_trace_join_print_end(const struct trace *trace);
/* What takes the rows that are merged, and their schema: the aggregator's own, or that of the
 * pairs. */
struct fay_aggregator *fay_trace_merged(const struct trace *trace);
const struct fay_schema *fay_trace_merged_schema(const struct trace *trace);
/* The merged rows, with what was lost. */
int fay_trace_snapshot(struct trace *trace, uint32_t state, struct fay_result *result,
		       struct fay_error *error);

/* windows.c: shows windows of time that are over; at the end also those that are not, and
 * leaves the last snapshot in *last. */
/* ns after a window's end that it is looked at again and forgotten, where the events are */
#define FAY_WINDOWS_HORIZON 2000000000u
int fay_trace_windows_start(struct trace *trace, struct fay_error *error);
int fay_trace_windows_tick(struct trace *trace, uint64_t now, struct fay_error *error);
int fay_trace_windows_end(struct trace *trace, struct fay_result *last, struct fay_error *error);
/* Where machines' rows replace: trace->aggregator is all that they have, put together anew, until
 * fay_trace_cluster_gathered(). Nothing otherwise. */
int fay_trace_cluster_gather(struct trace *trace, struct fay_error *error);
void fay_trace_cluster_gathered(struct trace *trace);

/* estimate.c: a budget where nobody gave one. Then probes may take this part of one processor: */
#define FAY_BUDGET_FLOOR 0.01
int fay_trace_decide_budget(struct trace *trace, struct fay_error *error);
/* Into trace->estimate; what is installed for it is gone afterwards. */
int fay_trace_estimate(struct trace *trace, struct fay_error *error);
/* As JSON, if one was made. */
void fay_trace_estimate_describe(const struct fay_trace_estimate *estimate, char *text,
				 size_t size);
void fay_trace_estimate_print(const struct trace *trace);

/* would.c. Adds the functions of a session that counts, so many calls of each. */
int fay_trace_would_add(struct fay_trace_estimate *estimate, pid_t pid,
			const struct fay_session *session, const uint64_t *calls,
			struct fay_error *error);
void fay_trace_would_deinit(struct fay_trace_estimate *estimate);
/* The names of its functions that are called most. */
void fay_trace_name_most(struct fay_trace_estimate *estimate, const struct fay_session *session,
			 const uint64_t *calls);

/* budget.c: --budget. Measures what the probes cost each so often; takes the costliest points out
 * where that is more than the budget allows, and puts them back. */
int fay_trace_budget_tick(struct trace *trace, struct fay_error *error);
/* Looks for some tens of milliseconds, before something else takes long while probes run. */
int fay_trace_budget_settle(struct trace *trace, struct fay_error *error);
/* All points were taken out. */
bool fay_trace_budget_exhausted(const struct trace *trace);
/* Of a session that is destroyed before the trace ends. */
void fay_trace_budget_forget(struct trace *trace, const struct fay_session *session);
/* What was left out, and how much the probes cost in all. */
void fay_trace_budget_print(const struct trace *trace);
void fay_trace_budget_deinit(struct trace *trace);

/* A point that --budget takes out. */
struct fay_left_out {
	uint64_t after;  /* ns since the trace began, the first time; 0: it never was */
	uint64_t since;  /* monotonic ns; 0: it is in place */
	uint64_t back;   /* when it was put back last; 0: never */
	uint64_t rest;   /* ns that it stays out */
	uint64_t absent; /* ns that it was out, before `since` */
	uint32_t times, refused;
	double share; /* of the processor time, in the last look */
};

/* What is known in the end of a point that was left out. */
struct fay_departed {
	pid_t pid;
	char module[64], function[256];
	struct fay_left_out left;
	bool beside; /* without probes */
	uint64_t events, event_ns;
};

/* Of one session. */
struct fay_budget_account {
	struct fay_session *session;
	pid_t pid;
	size_t count, points;         /* those from `points` on are functions without probes */
	struct fay_point_cost *costs; /* by point */
	uint64_t *spent;              /* ns, between the last two looks */
	struct fay_left_out *left;
	uint64_t cpu_before, looked; /* ns, of the process; monotonic: both at the last look */
	double cpu, saved;           /* ns between the last two looks; of the budget */
	bool stuck;                  /* points could not be taken out, which was said */
	size_t most;                 /* points that are put back in one stop */
	uint32_t over;               /* looks in which it counts that too much was spent */
};

struct fay_trace_budget {
	struct fay_budget_account *items;
	size_t count;
	uint64_t began, restless; /* monotonic ns; the last: too much, or one came back */
	double spent, cpu;        /* ns, of all looks */
	size_t left_out, said;    /* functions, each once; messages about them */
	uint64_t next_return;     /* monotonic ns, before which nothing is put back */
	/* of sessions that are gone */
	struct fay_departed *departed;
	size_t departed_count;
};
/* Whether no account before that one is of the same process. */
bool fay_budget_is_first(const struct fay_trace_budget *budget, size_t index);
/* Brings the account up to date, and adds what was spent since the last time. Returns how much of
 * that points spent that are still in place. */
double fay_budget_look(struct fay_budget_account *account, double *all);
/* budget_report.c: that a point goes, or has come back. */
void fay_budget_say(const struct trace *trace, const struct fay_budget_account *account,
		    size_t point, bool out);
/* Names go with the session. Short of memory, or of room, they are not in the final report. */
void fay_budget_keep_departed(struct fay_trace_budget *budget,
			      const struct fay_budget_account *account);
/* Functions that are out, or have been, and for how long. */
typedef void fay_trace_out_visit(void *context, const struct fay_function *function, bool out,
				 uint64_t absent_ns);
void fay_trace_budget_visit_out(const struct trace *trace, fay_trace_out_visit *visit,
				void *context);

/* save.c: --save. `lost`: events, since the trace began. */
int fay_trace_save_start(struct trace *trace, struct fay_error *error);
void fay_trace_save_row(struct trace *trace, uint32_t state, const uint8_t *row);
/* Begins a new file where it is time to, or SIGUSR2 asked for what is there. */
int fay_trace_save_tick(struct trace *trace, struct fay_error *error);
int fay_trace_save_end(struct trace *trace, uint64_t lost, struct fay_error *error);
/* file.c: file("NAME") from the first saved event to the last result. */
int fay_trace_file(struct trace *trace, struct fay_error *error);
/* What an address in the file was called when it was saved. */
void fay_trace_saved_address(const struct trace *trace, uint64_t address, unsigned form, char *text,
			     size_t size);
static inline bool fay_trace_is_file(const struct trace *trace)
{
	return trace->plan && trace->plan->domain == DOMAIN_FILE;
}

/* end.c: detaches first in every case; then the last picture, if the output still takes it. */
int fay_trace_finish(struct trace *trace, int result, struct fay_error *error);
/* How it ended, and what was lost. */
void fay_trace_print_end(struct trace *trace, const struct fay_result *result);

#endif
