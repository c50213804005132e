/* SPDX-License-Identifier: MIT */
/*
 * Reads of memory that generated probes make, as functions that they call: compiled to LLVM bitcode
 * when Fay is built, linked into a query's module, guarded and verified with it. What cannot be
 * read is zero.
 */
#include <stdint.h>

#include "fay/event.h"

extern int64_t fay_try_read(void *to, uint64_t size, uint64_t address);

struct fay_query_string {
	uint64_t low, high; /* FAY_COMM_SIZE bytes, little-endian */
};

uint64_t fay_query_read1(uint64_t address)
{
	uint8_t value;
	fay_try_read(&value, sizeof(value), address);
	return value;
}

uint64_t fay_query_read2(uint64_t address)
{
	uint16_t value;
	fay_try_read(&value, sizeof(value), address);
	return value;
}

uint64_t fay_query_read4(uint64_t address)
{
	uint32_t value;
	fay_try_read(&value, sizeof(value), address);
	return value;
}

uint64_t fay_query_read8(uint64_t address)
{
	uint64_t value;
	fay_try_read(&value, sizeof(value), address);
	return value;
}

/* All bits below the first zero byte; all if there is none. */
static uint64_t before_nul(uint64_t word)
{
	uint64_t marks = (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
	return ((marks & -marks) >> 7) - 1;
}

/* Up to the first zero byte, at the last one at the latest. */
static struct fay_query_string end_at_nul(const uint64_t words[2])
{
	uint64_t high = words[1] & UINT64_MAX >> 8, mask = before_nul(words[0]);
	struct fay_query_string string = { words[0] & mask,
					   mask == UINT64_MAX ? high & before_nul(high) : 0 };
	return string;
}

struct fay_query_string fay_query_read_string(uint64_t address)
{
	uint64_t words[2];
	fay_try_read(words, sizeof(words), address);
	return end_at_nul(words);
}

/* Of a string whose 16 bytes cannot be read, those before the next multiple of 16: memory ends at
 * none but such. */
struct fay_query_string fay_query_read_string_end(uint64_t address)
{
	uint64_t words[2] = { 0, 0 };
	uint64_t left = -address & (FAY_COMM_SIZE - 1);
	fay_try_read(words, left ? left : 1, address); /* at a multiple of 16 nothing can be read */
	return end_at_nul(words);
}

/* The same of a program's memory, where a string may lie at the end of what is mapped. */
struct fay_query_string fay_query_read_program_string(uint64_t address)
{
	struct fay_query_string string = fay_query_read_string(address);
	return string.low || string.high ? string : fay_query_read_string_end(address);
}
