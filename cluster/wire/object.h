/* SPDX-License-Identifier: MIT */
/*
 * A query about the kernel as it travels: the BPF programs, the state that they fill, and what of
 * the kernel's types they were made with. docs/cluster.md, "Queries about the kernel";
 * docs/decisions/0012-bpf-on-agents.md says what an agent checks, and why.
 */
#ifndef FAY_CLUSTER_OBJECT_H
#define FAY_CLUSTER_OBJECT_H

#include "fay/bpf.h"

#include "wire.h"

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

/* The running kernel's types. */
int fay_object_types(uint8_t sha256[FAY_KEY_BYTES], struct fay_error *error);
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
/* Whether a policy allows it; what a policy limits and cannot be told of BPF programs is not
 * allowed. */
int fay_object_check_policy(const struct fay_object *object, const struct fay_policy *policy,
			    struct fay_error *error);
/* Finds what the programs are attached to, by name, and compares what they were made with with the
 * running kernel; sets the machine's values. */
int fay_object_resolve(struct fay_object *object, struct fay_error *error);

#endif
