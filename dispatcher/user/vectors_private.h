/* SPDX-License-Identifier: MIT */
/*
 * The traced program's vector registers and MXCSR around probes that change them.
 *
 * A plan gathers what the probes of one trampoline do; the trampoline reserves fay_vectors_size()
 * bytes at a constant distance from rsp, and emits the saving before the first probe and the
 * restoring after the last. Exactly the registers that the verifier names are saved, as wide as the
 * probes can change them: 16 bytes where all of them use legacy SSE, which keeps the rest, else as
 * wide as the CPU's registers are, because VEX instructions zero everything above what they write.
 */
#ifndef FAY_DISPATCHER_VECTORS_PRIVATE_H
#define FAY_DISPATCHER_VECTORS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emit_private.h"
#include "fay/verify.h"

struct fay_vectors {
	uint32_t registers; /* to be saved */
	bool whole;         /* not only the low 16 bytes */
	bool mxcsr;
};

void fay_vectors_add(struct fay_vectors *plan, const struct fay_probe_facts *facts);
/* Bytes of stack, a multiple of 16. */
int32_t fay_vectors_size(const struct fay_vectors *plan);
/* `at`: distance of the reserved bytes from rsp. Nothing but vector registers and MXCSR changes;
 * flags do not. */
void fay_vectors_save(struct fay_emitter *e, const struct fay_vectors *plan, int32_t at);
void fay_vectors_restore(struct fay_emitter *e, const struct fay_vectors *plan, int32_t at);

#endif
