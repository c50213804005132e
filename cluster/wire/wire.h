/* SPDX-License-Identifier: MIT */
/* The messages of the cluster as bytes: docs/cluster.md says each. */
#ifndef FAY_CLUSTER_WIRE_H
#define FAY_CLUSTER_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/access/access.h"
#include "fay/aggregator.h"
#include "fay/bpf.h"

/*
 * The messages of docs/cluster.md, to and from bytes. What is decoded comes from other machines:
 * every length is checked by one cursor, strings and blocks stay where they are in the message, and
 * nothing is allocated.
 */

#define FAY_WIRE_VERSION 7u
#define FAY_WIRE_VERSION_AT 4u /* where it stands in the header */
#define FAY_WIRE_HEADER 24u
#define FAY_WIRE_TRAILER (FAY_KEY_BYTES + FAY_SIGNATURE_BYTES)
/* bytes of a message; nats-server's own limit unless configured */
#define FAY_WIRE_MAX (1u << 20)
#define FAY_WIRE_PARTIAL_MAX (512u << 10) /* bytes of a partial that we send */
#define FAY_WIRE_IMAGE_MAX (768u << 10)
#define FAY_WIRE_AGENTS_MAX 4096u /* agents, members, children, names */
#define FAY_WIRE_RANGE_MAX 1024u  /* sequences of one member */
#define FAY_WIRE_EXCEPTIONS_MAX 1024u
#define FAY_WIRE_COMMS_MAX 256u
#define FAY_WIRE_PIDS_MAX 4096u
#define FAY_WIRE_STATES_MAX 1024u
#define FAY_WIRE_NAME_MAX 255u   /* bytes of a function's, machine's, process's name */
#define FAY_WIRE_TEXT_MAX 16384u /* of a query */
#define FAY_WIRE_REASON_MAX 511u
#define FAY_WIRE_BUILD_ID_MAX 64u
#define FAY_WIRE_PATH_MAX 4095u
#define FAY_WIRE_CODES_MAX 64u /* columns of addresses of code */
#define FAY_WIRE_SIGNATURES_MAX 16u
#define FAY_WIRE_SIGNATURE (FAY_KEY_BYTES + 32u + FAY_SIGNATURE_BYTES)

enum fay_wire_type {
	FAY_WIRE_PING = 1,
	FAY_WIRE_HELLO = 2,
	FAY_WIRE_START = 3,
	FAY_WIRE_ANSWER = 4,
	FAY_WIRE_ASSIGN = 5,
	FAY_WIRE_CONTROL = 6,
	FAY_WIRE_PARTIAL = 7,
	FAY_WIRE_META = 8,
};

/* Reads forward; once it is `bad` everything reads as 0. */
struct fay_reader {
	const uint8_t *at, *end;
	bool bad;
};
struct fay_text {
	const char *bytes; /* not NUL-terminated */
	uint16_t size;
};
struct fay_list { /* `count` items of a fixed size that were found to lie in the message */
	const uint8_t *bytes;
	uint16_t count;
};

/* Grows to FAY_WIRE_MAX, or to `limit` if that is not 0; once `bad` it stays so. */
struct fay_writer_buffer {
	uint8_t *bytes;
	size_t size, room, limit;
	bool bad;
};

struct fay_wire_head {
	uint16_t type;
	uint64_t query, sender;
	const uint8_t *key; /* of the signer, FAY_KEY_BYTES */
	struct fay_reader body;
};

struct fay_wire_hello {
	uint64_t ping_time, time;
	uint32_t cpus, queries;
	struct fay_text name, kernel, labels, version;
};
struct fay_wire_start {
	uint64_t target; /* the agent */
	uint64_t sent, window, elapsed, lease, life, horizon;
	int64_t clock; /* ns to add to the machine's own for the times of events */
	uint32_t flags, bytes_per_second;
	struct fay_text text;
	struct fay_list comms; /* strings; fay_wire_string() reads them */
	const uint8_t *comms_end;
	struct fay_list pids;     /* u32 */
	struct fay_text function; /* whose types the query uses; empty: none. Of this build: */
	const uint8_t *build_id;
	uint16_t build_id_size;
	struct fay_list codes; /* columns that hold addresses of code; fay_wire_code() reads them */
	/* of the image, as they lie beside it: key, SHA-256 of the policy's file, signature */
	struct fay_list signatures;
	const uint8_t *image;
	uint32_t image_size;
};
/*
 * A column of the image's schema whose words are addresses of code, zeros behind the last one. Its
 * rows travel with hashes of what the addresses are called in their place, so that machines' rows
 * can be merged.
 */
struct fay_wire_code {
	uint16_t column;
	uint8_t flags;
};
#define FAY_WIRE_CODE 3u
/* the first word is an instruction's own address, else what a call returns to, as the others */
#define FAY_CODE_EXACT 1u
#define FAY_CODE_KERNEL 2u      /* of the kernel's code */
#define FAY_START_WAIT 1u       /* processes of the names that come later, too */
#define FAY_START_BPF 4u        /* the image is a BPF object (object.h) */
#define FAY_START_SOME 8u       /* a process need not have all that is asked for */
#define FAY_START_FOLLOW 16u    /* forked children, and programs that are executed */
#define FAY_START_DURABLE 2u    /* what is sent is stored; the server that stores it acknowledges */
#define FAY_START_DROP 32u      /* where a ring is full: FAY_FULL_DROP, else FAY_FULL_BLOCK */
#define FAY_START_OVERWRITE 64u /* FAY_FULL_OVERWRITE */
/* the probes walk stacks: GLOBAL is to hold struct fay_stack_tables */
#define FAY_START_STACKS 128u
/* What `fay attach` has to know of a detached query. */
struct fay_wire_meta {
	uint64_t began, window, life, lease; /* ns; began: since the epoch */
	bool is_query;                       /* text is one; else a file's name */
	struct fay_text text;
	/* whose types the query uses; empty: none. In a file of this build: */
	struct fay_text function;
	struct fay_text build_id, path;
	uint16_t machines; /* fay_wire_meta_machine() reads them from `rest` */
	struct fay_reader rest;
	const uint8_t *image;
	uint32_t image_size;
};
struct fay_wire_answer {
	uint64_t sent, time;
	bool accepted;
	uint32_t processes, functions;
	struct fay_text reason;
};
struct fay_wire_assign {
	uint32_t version;
	uint64_t parent;
	struct fay_list children; /* u64 agent, key */
};
#define FAY_ASSIGN_CHILD (8u + FAY_KEY_BYTES)
struct fay_wire_control {
	uint64_t number; /* grows with each CONTROL of a query */
	uint32_t flags;
	uint64_t floor;
	struct fay_list exceptions; /* u64 agent, u64 sequence */
};
#define FAY_CONTROL_STOP 1u
#define FAY_CONTROL_GONE 2u /* the root has all it wants */
#define FAY_CONTROL_EXCEPTION 16u

struct fay_wire_member {
	uint64_t agent, first, last, window;
	uint32_t tree;
	uint8_t flags, why;
};
#define FAY_WIRE_MEMBER 38u
#define FAY_MEMBER_LAST 1u  /* the window's last part */
#define FAY_MEMBER_FINAL 2u /* nothing follows */
enum fay_final {
	FAY_FINAL_NONE,
	FAY_FINAL_STOPPED,
	FAY_FINAL_ENDED,
	FAY_FINAL_LEASE,
	FAY_FINAL_LIMIT,
	FAY_FINAL_AGENT
};

#define FAY_WIRE_LOSSES 6u
struct fay_wire_partial {
	bool combined;
	struct fay_list members;
	uint64_t losses[FAY_WIRE_LOSSES]; /* reentrant, full, no slot, calls, shed, threads */
	/* fay_wire_block() reads them from `rest`, then fay_wire_name() the names */
	uint16_t blocks;
	struct fay_reader rest;
};
/* in a block's state: its rows are not replaced any more by what comes for them later */
#define FAY_BLOCK_FINAL 0x8000u
struct fay_wire_block {
	uint16_t state;
	bool final;
	uint32_t rows;
	const uint8_t *bytes;
};

/* Checks header, bounds and signature. false: not one of our messages. */
bool fay_wire_open(const void *bytes, size_t size, struct fay_wire_head *head);
/* The version of something that looks like a message of Fay's, signed or not; 0: it does not. */
uint16_t fay_wire_version(const void *bytes, size_t size);

/* `period`: seconds between two HELLOs that nobody asked for; 0: as before. */
bool fay_wire_read_ping(struct fay_reader body, uint64_t *time, uint32_t *period);
bool fay_wire_read_hello(struct fay_reader body, struct fay_wire_hello *hello);
bool fay_wire_read_start(struct fay_reader body, struct fay_wire_start *start);
struct fay_wire_code fay_wire_code(const struct fay_wire_start *start, uint16_t index);
/* Whether all columns that START names are keys, or streamed, of whole words. */
bool fay_wire_codes_fit(const struct fay_wire_start *start, const struct fay_schema *schema);
bool fay_wire_read_meta(struct fay_reader body, struct fay_wire_meta *meta);
struct fay_wire_meta_machine {
	uint64_t agent;
	const uint8_t *key;
	/* ns by which its events' times were ahead of the asking side's clock when it began */
	int64_t event_clock;
	struct fay_text name;
};
struct fay_wire_meta_machine fay_wire_meta_machine(struct fay_reader *rest);
bool fay_wire_read_answer(struct fay_reader body, struct fay_wire_answer *answer);
bool fay_wire_read_assign(struct fay_reader body, struct fay_wire_assign *assign);
bool fay_wire_read_control(struct fay_reader body, struct fay_wire_control *control);
/* Checks the whole message against the schema; afterwards fay_wire_block() and fay_wire_name()
 * cannot fail. */
bool fay_wire_read_partial(struct fay_reader body, const struct fay_schema *schema,
			   struct fay_wire_partial *partial);
void fay_wire_read_member(const struct fay_wire_partial *partial, uint16_t index,
			  struct fay_wire_member *member);
struct fay_wire_block fay_wire_block(struct fay_reader *rest, const struct fay_schema *schema);
struct fay_text fay_wire_string(struct fay_reader *reader, uint16_t max);
uint16_t fay_wire_u16(struct fay_reader *reader);
uint32_t fay_wire_u32(struct fay_reader *reader);
uint64_t fay_wire_u64(struct fay_reader *reader);
static inline uint64_t fay_wire_peek64(const uint8_t *at)
{
	uint64_t value;
	__builtin_memcpy(&value, at, sizeof(value));
	return value;
}

/* Copies a string with a NUL, cut to `size`; bytes that are not printable become '?'. */
void fay_text_copy(char *to, size_t size, struct fay_text text);

/* --- writing --- */

void fay_wire_begin(struct fay_writer_buffer *out, enum fay_wire_type type, uint64_t query,
		    uint64_t sender);
void fay_wire_put(struct fay_writer_buffer *out, const void *bytes, size_t size);
void fay_wire_put8(struct fay_writer_buffer *out, uint8_t value);
void fay_wire_put16(struct fay_writer_buffer *out, uint16_t value);
void fay_wire_put32(struct fay_writer_buffer *out, uint32_t value);
void fay_wire_put64(struct fay_writer_buffer *out, uint64_t value);
/* cut to max */
void fay_wire_put_text(struct fay_writer_buffer *out, const char *text, size_t max);
void fay_wire_put_member(struct fay_writer_buffer *out, const struct fay_wire_member *member);
/* Signs. false: out of memory or over FAY_WIRE_MAX; nothing may be sent. */
bool fay_wire_end(struct fay_writer_buffer *out, const struct fay_keys *keys);
void fay_wire_free(struct fay_writer_buffer *out);

/*
 * A query about the kernel as it travels: the BPF programs, the state that they fill, and what of
 * the kernel's types they were made with. docs/cluster.md, "Queries about the kernel";
 * docs/decisions/0012-bpf-on-agents.md says what an agent checks, and why.
 */

#define FAY_OBJECT_COLUMNS_MAX 256u
#define FAY_OBJECT_INSTRUCTIONS_MAX 65536u /* of all programs */

/* Of one malloc(3): free(3) releases all. */
struct fay_object {
	struct fay_verdict verdict;   /* first; only schema and image_sha256 */
	struct fay_bpf_object bpf;    /* its programs have no btf_id yet, its values are not set */
	uint8_t types[FAY_KEY_BYTES]; /* SHA-256 of the kernel's BTF, if bpf.typed */
	struct fay_bpf_program programs[FAY_BPF_PROGRAMS_MAX];
	uint64_t names[FAY_BPF_SYSCALLS];
	struct fay_schema_state state;
	struct fay_schema_column columns[FAY_OBJECT_COLUMNS_MAX];
	char column_names[FAY_OBJECT_COLUMNS_MAX][64], state_name[64];
	struct bpf_insn code[];
};

/* Appends the object; *out may be too small for it afterwards (out->bad). */
int fay_object_write(const struct fay_bpf_object *object, const struct fay_schema *schema,
		     struct fay_writer_buffer *out, struct fay_error *error);
/*
 * Reads one and checks it: every number in its range, every instruction that refers to anything
 * refers to the object's own maps, values or one of the helpers that only read. What else an
 * instruction may do is for the kernel's verifier to say.
 */
int fay_object_read(const void *bytes, size_t size, struct fay_object **object,
		    struct fay_error *error);
/* Whether a signer's policy allows it: fay_bpf_check_policy(). */
int fay_object_check_policy(const struct fay_object *object, const struct fay_policy *policy,
			    struct fay_error *error);
/* Finds what the programs are attached to, by name, and compares what they were made with with the
 * running kernel; sets the machine's values. */
int fay_object_resolve(struct fay_object *object, struct fay_error *error);

#endif
