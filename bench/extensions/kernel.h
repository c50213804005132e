/* SPDX-License-Identifier: MIT */
/*
 * A kernel of the benchmark: one source, which is built as a verified extension for kernels.host,
 * as native code, and as WebAssembly. KERNEL(NAME, LOCAL) begins its function, LOCAL bytes of local
 * state in digits.
 */
#ifndef FAY_BENCH_EXTENSIONS_KERNEL_H
#define FAY_BENCH_EXTENSIONS_KERNEL_H

#include <stdint.h>

#ifdef EXTENSION
#include <fay/host/entry.h>
#define DECLARE(local)                                                                             \
	FAY_EXTENSION(1, local);                                                                   \
	FAY_ENTRY(kernel)
#else
#define DECLARE(local) _Static_assert(local % 8 == 0, "the size of local state")
#endif

/* The host promises that regions do not overlap. */
#define PARAMETERS(data, size, out, room, state)                                                   \
	const uint8_t *restrict data, uint64_t size, uint8_t *restrict out, uint64_t room,         \
		void *restrict state
#define UNUSED __attribute__((unused))
#define KERNEL(local)                                                                              \
	DECLARE(local);                                                                            \
	uint64_t kernel(PARAMETERS(data, size, out, room, local_state));                           \
	uint64_t kernel(PARAMETERS(data, size, out UNUSED, room UNUSED, local_state UNUSED))

static inline uint32_t load32(const uint8_t *at)
{
	uint32_t word;

	__builtin_memcpy(&word, at, sizeof(word));
	return word;
}

static inline uint32_t rotate(uint32_t x, unsigned by)
{
	return x << by | x >> (32 - by);
}

#endif
