/* SPDX-License-Identifier: MIT */
/* Vector instructions of soundness.c. */
#ifndef FAY_TESTS_SOUNDNESS_VECTOR_H
#define FAY_TESTS_SOUNDNESS_VECTOR_H

#include "tests/verifier/silicon/vector_cpu.h"
#include "verifier/explain/exec.h"

enum soundness_vector_status {
	SOUNDNESS_VECTOR_DONE,
	SOUNDNESS_VECTOR_UNKNOWN /* not on this CPU */,
	SOUNDNESS_VECTOR_BROKEN
};
/* One OP_VECTOR on *vectors (of which only the vector registers count) and *m, with the promises
 * about vectors checked; *wrong says which is broken. */
enum soundness_vector_status soundness_vector_step(struct frame *vectors, struct fay_machine *m,
						   const struct fay_insn *insn,
						   const struct fay_probe_facts *facts,
						   const char **wrong);

#endif
