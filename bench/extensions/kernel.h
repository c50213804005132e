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

#define KERNEL(local)                                                                              \
	DECLARE(local);                                                                            \
	uint64_t kernel(const uint8_t *data, uint64_t size, uint8_t *out, uint64_t room,           \
			void *local_state);                                                        \
	uint64_t kernel(const uint8_t *data, uint64_t size, uint8_t *out __attribute__((unused)),  \
			uint64_t room __attribute__((unused)),                                     \
			void *local_state __attribute__((unused)))

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
