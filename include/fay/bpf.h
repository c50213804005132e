/* SPDX-License-Identifier: MIT */
/*
 * Queries about the kernel, as BPF programs: the kernel's types, what a generated object is, and a
 * session that runs one. docs/internals/bpf.md says how it works.
 */
#ifndef FAY_BPF_H
#define FAY_BPF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/bpf.h>
#include <linux/btf.h>

#include "fay/error.h"
#include "fay/loader.h"
#include "fay/shm.h"
#include "fay/verify.h"

enum fay_trap_kind {
	FAY_TRAP_PLACE, /* the event: a function's first instruction, or a marker */
	FAY_TRAP_CALL,  /* a call begins: what an END looks up is kept */
	FAY_TRAP_END,   /* it ends: the event */
};
#define FAY_TRAP_ALWAYS 0xffu
#define FAY_TRAP_PARTS 4u

/*
 * A point that could not be patched, and a place for it at which the kernel may trap: a whole
 * instruction begins there, the process has it as its file has, and no jump of any trace's covers
 * it. A point may need several, which follow each other: all of a function's ends.
 */
struct fay_trap {
	size_t skipped; /* number of its fay_skipped_point */
	uint8_t kind;   /* enum fay_trap_kind */
	/* END: it counts only if a CALL has kept the call, since a call's begin is asked for, or
	 * since other calls may end there, too */
	bool kept;
	/* END: of a conditional jump, when it is one: the low four bits of its opcode; else
	 * FAY_TRAP_ALWAYS */
	uint8_t condition;
	/* END: of an indirect jump to operands[0]; where that is in one of the function's parts,
	 * given as distances from `address`, the call goes on. 0: it ends in any case */
	uint8_t part_count;
	/* END: a jump to another function, if more is asked of the end than is known there: the
	 * event has the duration so far, and no value */
	bool left;
	struct {
		int64_t from, to;
	} parts[FAY_TRAP_PARTS];
	struct fay_function function; /* strings are the target's */
	uint64_t address;             /* of the instruction in the process */
	int file;                     /* the target's, open for reading while the target is */
	uint64_t device, inode;       /* of the file */
	uint64_t offset;              /* of the instruction in the file */
	uint64_t start;               /* likewise of the function's first one, or of the marker */
	/* where the process's initial stack began, by which its program is known: one that it
	 * executes has another */
	uint64_t stack;
	/* likewise, of the marker's semaphore, and its address in the process; 0: it has none */
	uint64_t semaphore, semaphore_address;
	struct fay_operand operands[FAY_MARKER_OPERANDS]; /* of a marker, or such a jump */
	uint32_t operand_count;
};

/* Whether two are for one function, or marker, perhaps in different processes. */
static inline bool fay_trap_of_same(const struct fay_trap *a, const struct fay_trap *b)
{
	return a->device == b->device && a->inode == b->inode && a->start == b->start &&
	       !strcmp(a->function.name, b->function.name) &&
	       !strcmp(a->function.module, b->function.module);
}

/* --- the kernel's types (bpf/btf.c)
 * ----------------------------------------------------------------------------------- */

struct btf; /* libbpf's <bpf/btf.h> */

/*
 * Types of a file in BTF (the kernel's Documentation/bpf/btf.rst). path NULL: of the running
 * kernel, which are read once and stay, also when they are closed, until fay_btf_let_go() finds
 * that nobody has them open.
 */
int fay_btf_open(const char *path, const struct btf **btf, struct fay_error *error);
void fay_btf_close(const struct btf *btf);
void fay_btf_let_go(void);
/* A string by its offset; "" if there is none: libbpf takes files whose names lie outside. */
const char *fay_btf_name(const struct btf *btf, uint32_t offset);
/* The type of that kind (BTF_KIND_...) and name; 0: there is none. */
uint32_t fay_btf_find(const struct btf *btf, uint32_t kind, const char *name);
/* Without typedefs and qualifiers; 0: nothing is left. btf__resolve_type() refuses what is only
 * declared (BTF_KIND_FWD). */
uint32_t fay_btf_strip(const struct btf *btf, uint32_t id);
/* Bytes of a value of this type; 0: unknown. */
uint32_t fay_btf_size(const struct btf *btf, uint32_t id);

struct fay_btf_field {
	const char *name;
	uint32_t type;
	uint32_t bit_offset; /* from the start of the structure asked for */
	uint32_t bits;       /* of a bit field; 0: it is none */
};
/* A member of a structure or union, members of unnamed ones inside it included. */
bool fay_btf_member(const struct btf *btf, uint32_t structure, const char *name,
		    struct fay_btf_field *field);
/* All names that fay_btf_member() knows, up to `max`; returns how many. */
size_t fay_btf_member_names(const struct btf *btf, uint32_t structure, const char **names,
			    size_t max);

/* A tracepoint: its typedef (what programs are attached by) and the arguments behind __data. */
#define FAY_BTF_ARGUMENTS_MAX 12u
struct fay_btf_tracepoint {
	uint32_t id;
	uint32_t argument_count;
	struct {
		const char *name;
		uint32_t type;
	} arguments[FAY_BTF_ARGUMENTS_MAX];
};
bool fay_btf_tracepoint(const struct btf *btf, const char *name,
			struct fay_btf_tracepoint *tracepoint);
/* The same of a function of the kernel; id: of the function. */
bool fay_btf_function(const struct btf *btf, const char *name, struct fay_btf_tracepoint *function);
/*
 * What a function of this prototype returns: the low `bytes` of the result register count, with
 * their sign or without; 0: it returns nothing. 8 also of what is not understood.
 */
struct fay_btf_result {
	uint32_t bytes;
	bool is_signed;
};
struct fay_btf_result fay_btf_result(const struct btf *btf, uint32_t prototype);
/* Names of tracepoints, in the order of the types; returns how many there are. */
size_t fay_btf_tracepoints(const struct btf *btf, const char **names, size_t max);

/* --- a generated object
 * -----------------------------------------------------------------------------------------------
 * */

/*
 * Maps that a program may refer to: by an ld_imm64 with source register BPF_PSEUDO_MAP_FD or
 * BPF_PSEUDO_MAP_VALUE and one of these numbers, which the session replaces by its file descriptor.
 */
enum fay_bpf_map {
	/* one array element: a slot of fay/shm.h for each processor, slot_stride bytes apart */
	FAY_BPF_SLOTS,
	FAY_BPF_RING,   /* ring buffer: rows that found no place in a table, and rows of events */
	FAY_BPF_STARTS, /* one array element: struct fay_bpf_start for each thread id */
	FAY_BPF_NAMES,  /* one array element: name hash of each system call, 0: not asked for */
	/* one array element: a byte for each process id, 1: its events are asked for */
	FAY_BPF_PIDS,
	/* hash: address of the context of a function's call to the boot clock's time in ns when it
	 * began */
	FAY_BPF_CALLS,
	/* one array element, of traps: a word that is not 0 while their events count, then a number
	 * for each program */
	FAY_BPF_EVENTS,
	FAY_BPF_TRAPPED, /* hash, of traps: struct fay_bpf_call_key to struct fay_bpf_call */
	/* hash: a process that executes a program to the six arguments of that system call */
	FAY_BPF_EXECUTED,
	FAY_BPF_MAPS
};

/*
 * What differs from machine to machine: an ld_imm64 with this as source register (which the kernel
 * does not know) and one of these numbers; the session puts the machine's value there. So one
 * object is for all machines whose kernels have the same types.
 */
#define FAY_BPF_PSEUDO_MACHINE 15u
enum fay_bpf_value {
	FAY_BPF_VALUE_PROCESSORS,
	FAY_BPF_VALUE_THREADS,
	FAY_BPF_VALUE_CLOCK, /* ns from the monotonic clock to the epoch's */
	FAY_BPF_VALUE_SELF,  /* a process whose events do not count */
	FAY_BPF_VALUE_BOOT,  /* ns from the boot clock to the epoch's */
	/* address of what calls the programs where system calls begin, and where they end; 0: not
	 * known */
	FAY_BPF_VALUE_ENTER_CALLER,
	FAY_BPF_VALUE_EXIT_CALLER,
	FAY_BPF_VALUES
};

/* Helpers of the kernel that programs call: all that reads, and what writes into maps. None changes
 * anything else. */
#define FAY_BPF_HELPERS                                                                            \
	{ BPF_FUNC_map_lookup_elem,       BPF_FUNC_map_update_elem,                                \
	  BPF_FUNC_map_delete_elem,       BPF_FUNC_probe_read_kernel,                              \
	  BPF_FUNC_probe_read_kernel_str, BPF_FUNC_ktime_get_ns,                                   \
	  BPF_FUNC_ktime_get_boot_ns,     BPF_FUNC_get_smp_processor_id,                           \
	  BPF_FUNC_get_current_pid_tgid,  BPF_FUNC_get_current_comm,                               \
	  BPF_FUNC_get_current_task_btf,  BPF_FUNC_ringbuf_reserve,                                \
	  BPF_FUNC_ringbuf_submit,        BPF_FUNC_get_stack,                                      \
	  BPF_FUNC_probe_read_user_str,   BPF_FUNC_ringbuf_output }

/* A call in a program that is traced by traps: by where its return address lies, which no two calls
 * that are under way share, whatever stack they are on and whatever thread runs them. */
struct fay_bpf_call_key {
	uint64_t stack;
	uint32_t process, function; /* the number of the function's first program */
};
/* What it began with. */
struct fay_bpf_call {
	uint64_t time; /* ns of the boot clock */
	uint64_t arguments[6];
};

struct fay_bpf_start {
	uint64_t time; /* ns of the boot clock; 0: none */
	uint64_t number;
};
#define FAY_BPF_SYSCALLS 1024u /* system call numbers are below */
/* process and thread ids are below, whatever kernel.pid_max (the kernel's PID_MAX_LIMIT); a power
 * of two */
#define FAY_BPF_PIDS_MAX 4194304u
#define FAY_BPF_FRAMES_MAX 40u /* of all stacks that one query asks for */

struct fay_bpf_program {
	char name[64];   /* of what it is attached to */
	uint32_t type;   /* enum bpf_prog_type */
	uint32_t attach; /* enum bpf_attach_type */
	uint32_t btf_id;
	uint64_t period; /* BPF_PROG_TYPE_PERF_EVENT: ns of each processor's clock */
	struct bpf_insn *code;
	uint32_t count;
};

/* Where programs take a member of a structure of the kernel's to be. */
struct fay_bpf_place {
	char structure[32], member[32];
	uint32_t offset; /* bytes */
};
#define FAY_BPF_PLACES_MAX 8u

/* Programs that one query may need; the timer's period in ns. */
#define FAY_BPF_PROGRAMS_MAX 520u
#define FAY_BPF_PERIOD_LEAST 100000u
#define FAY_BPF_PERIOD_MOST 3600000000000u

struct fay_bpf_object {
	struct fay_bpf_program *programs;
	uint32_t program_count;
	/* of the machine that runs it; addresses are looked up when programs that use them are
	 * loaded */
	uint64_t values[FAY_BPF_VALUES];
	/* What was taken from the types of the kernel that it was made on: these places, or, if
	 * `typed`, anything. */
	struct fay_bpf_place places[FAY_BPF_PLACES_MAX];
	uint32_t place_count;
	bool typed;
	/* programs that the kernel does not take are left out, as long as there is one that it does
	 * */
	bool some;
	uint32_t maps;                    /* 1 << enum fay_bpf_map */
	uint32_t slot_stride, local_size; /* bytes; a slot for each processor, and one */
	uint32_t row_size;                /* of rows in the ring, all of state 0 */
	uint64_t *names;                  /* FAY_BPF_SYSCALLS of them, or NULL */
	const pid_t *pids;                /* of PIDS; the caller's */
	size_t pid_count;
};
void fay_bpf_object_deinit(struct fay_bpf_object *object);
struct fay_policy;
/* Whether a policy, `whose` ("the policy"), allows the object; what a policy limits and cannot be
 * told of BPF programs is not allowed (bpf/policy.c). */
int fay_bpf_check_policy(const struct fay_bpf_object *object, const struct fay_policy *policy,
			 const char *whose, struct fay_error *error);

/* --- a running object (bpf/session.c)
 * --------------------------------------------------------------------------------- */

struct fay_bpf_session;

/* Possible processors: numbers are below. */
uint32_t fay_bpf_processors(void);
/* Thread ids are below (kernel.pid_max). */
uint32_t fay_bpf_threads(void);
/* An object's values on this machine, and in this process; the addresses among them are 0. */
void fay_bpf_machine(uint64_t values[FAY_BPF_VALUES]);
/* Where a function of the kernel is; 0: the kernel does not say. */
uint64_t fay_bpf_address_of(const char *function);
/* Why nothing is called at kernel functions' entries, by no back end; NULL: the kernel does not say
 * so. */
const char *fay_bpf_functions_off(void);
/* false: this process is in a PID namespace (a container); the kernel's events have other process
 * numbers than are known here. */
bool fay_bpf_knows_processes(void);

/* Creates the maps and loads the programs; nothing runs yet. The kernel's refusal is in the
 * message. */
int fay_bpf_session_create(const struct fay_bpf_object *object, struct fay_bpf_session **session,
			   struct fay_error *error);
/* All programs, or none; of an object with `some`: those that can be, and at least one. */
int fay_bpf_session_attach(struct fay_bpf_session *session, struct fay_error *error);
/*
 * Instead, of an object for traps (fay_bpf_options.traps): the kernel traps at these places of one
 * file in the process, from now on, at all or at none, and runs the program. Their numbers follow
 * each other from *first. Their events count while the session's are counted.
 */
#define FAY_TRAP_TOGETHER 256u
/* Whether the kernel sets several by one link (Linux 6.6), else each has a perf event. */
bool fay_bpf_traps_together(void);
/* Exits that a function may have that gets traps at all of them: each perf event takes a while to
 * set and to take away, and links with many places to set, for which processes wait that are
 * `followed`. */
uint32_t fay_bpf_trap_exits(bool followed);
int fay_bpf_session_trap(struct fay_bpf_session *session, uint32_t program, pid_t pid,
			 const struct fay_trap *const *traps, uint32_t count, uint32_t *first,
			 struct fay_error *error);
/* All traps at once, since to set them and to take them away takes long. At first they are not. */
void fay_bpf_session_count(struct fay_bpf_session *session, bool counted);
/* The traps of these numbers are gone: of those that were set together all, or none. */
void fay_bpf_session_untrap(struct fay_bpf_session *session, const uint32_t *numbers, size_t count);
/* How many events a program of traps had, whatever the query's conditions. */
uint64_t fay_bpf_session_events(const struct fay_bpf_session *session, uint32_t program);
/* Returns when no program runs any more. */
void fay_bpf_session_detach(struct fay_bpf_session *session);
void fay_bpf_session_destroy(struct fay_bpf_session *session);
/* As a target's shared memory: a source for the aggregator. */
struct fay_shm_control *fay_bpf_session_shm(const struct fay_bpf_session *session, size_t *size);
/* Gives the rows in the ring, and texts (fay_text_is_record()), to `take`, in the order in which
 * they were made; returns how many. Counts what the kernel lost by itself. */
typedef bool fay_bpf_take_row(void *context, const uint8_t *row, size_t size);
size_t fay_bpf_session_drain(struct fay_bpf_session *session, fay_bpf_take_row *take,
			     void *context);
/* Of an object that has PIDS: whether any process that is listed, children included, has not ended.
 * */
bool fay_bpf_session_has_processes(const struct fay_bpf_session *session);
/*
 * Sets clocks going of processors that were switched on meanwhile, or off and on again; returns how
 * many. To be called now and then; what such a processor ran before, FAY_BPF_CLOCKS_EVERY at most,
 * is missing.
 */
#define FAY_BPF_CLOCKS_EVERY 250000000u /* ns */
uint32_t fay_bpf_session_tick(struct fay_bpf_session *session);
/* Why a program is not attached, or NULL. */
const char *fay_bpf_session_skipped(const struct fay_bpf_session *session, uint32_t program);
/* Instructions of all programs, as the kernel's verifier took them. */
uint32_t fay_bpf_session_instructions(const struct fay_bpf_session *session);

#endif
