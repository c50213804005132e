/* SPDX-License-Identifier: MIT */
/*
 * One kernel, one source, two programs. `fay cc` compiles it as a probe whose memory is one
 * FAY_SCRATCH object; clang compiles it as a plain function over the same bytes:
 *
 *     struct state { ... };
 *     KERNEL { uses event->arg[] and the members of S }
 *     SETUP { fills S and event for one run; not part of the probe }
 *
 * With NO_GUARDS undefined this is the probe. Everything that differs between the two is in this
 * file.
 */
#ifndef FAY_BENCH_KERNEL_H
#define FAY_BENCH_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifndef NO_GUARDS

#include <fay/probe.h>
#define KERNEL                                                                                     \
	FAY_SCRATCH(struct state, state);                                                          \
	FAY_ENTRY("bench!kernel")
#define S state
#define SETUP                                                                                      \
	static inline __attribute__((unused)) void setup(struct state *setup_state,                \
							 struct fay_event *event, uint64_t *seed)

#else

#include <fay/event.h>
#define KERNEL                                                                                     \
	extern const size_t state_size;                                                            \
	const size_t state_size = sizeof(struct state);                                            \
	void kernel(const struct fay_event *event, void *fay_local, void *fay_global);             \
	void kernel(const struct fay_event *event, void *fay_local,                                \
		    void *fay_global __attribute__((unused)))
#define S (*(struct state *)fay_local)
#define SETUP                                                                                      \
	void setup(struct state *setup_state, struct fay_event *event, uint64_t *seed);            \
	void setup(struct state *setup_state, struct fay_event *event, uint64_t *seed)

#endif

/* xorshift64* (Vigna, 2016) */
static inline __attribute__((unused)) uint32_t setup_random(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (uint32_t)(*seed * UINT64_C(0x2545f4914f6cdd1d) >> 32);
}

#endif
