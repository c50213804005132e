/* SPDX-License-Identifier: MIT */
/* Between the parts of a session: session.c (its life, attaching), maps.c, programs.c. */
#ifndef FAY_BPF_SESSION_H
#define FAY_BPF_SESSION_H

#include "fay/bpf.h"

struct fay_bpf_session {
	const struct fay_bpf_object *object;
	int maps[FAY_BPF_MAPS];
	int *programs, *links; /* -1: none */
	int *clocks;           /* perf events, by processor; -1: none */
	uint64_t *ticked;      /* ns that each clock had been on when it was last looked at */
	uint64_t looked;       /* monotonic ns: when that was */
	const struct fay_bpf_program *timer; /* what the clocks run; NULL: nothing */
	/* links of traps, trap_count of them; -1: gone, or another one's is for it, too */
	int *traps;
	uint32_t trap_count;
	bool together;    /* one link holds several traps */
	uint64_t *events; /* whether they count; by program, of traps */
	int *refusals;    /* errno of programs that were left out; 0 */
	uint8_t *memory;  /* control page, then the slots */
	size_t size;
	uint8_t *listed;          /* PIDS; NULL: there is none */
	struct ring_buffer *ring; /* libbpf's; NULL: there is none */
	fay_bpf_take_row *take;   /* while the ring is drained */
	void *take_context;
	size_t drained, drained_bytes;
	uint32_t instructions;
};

/* An error of the kernel's (-errno) in words; `what` is what was being done. */
int fay_bpf_refused(int code, const char *what, struct fay_error *error);

/* --- maps.c --- */
/* The maps that the object names, with what programs look up in them. */
int fay_bpf_maps_create(struct fay_bpf_session *session, struct fay_error *error);
/* Slots, ring and list of processes into this process; the list is filled. */
int fay_bpf_maps_map(struct fay_bpf_session *session, struct fay_error *error);
void fay_bpf_maps_destroy(struct fay_bpf_session *session);

/* --- programs.c --- */
/* All programs; of an object with `some`, those that the kernel takes, and at least one. */
int fay_bpf_programs_load(struct fay_bpf_session *session, struct fay_error *error);

/* --- traps.c --- */
/* What such programs are loaded and attached as: of enum bpf_attach_type since Linux 6.6. */
#define FAY_BPF_TRACE_UPROBE_MULTI 48u
void fay_bpf_traps_close(struct fay_bpf_session *session);

#endif
