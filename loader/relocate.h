/* SPDX-License-Identifier: MIT */
/*
 * Displaced instructions: which ones a jump at a function's entry overwrites, whether that is safe,
 * and their copy for another address. Pure functions of bytes; no process is touched.
 */
#ifndef FAY_LOADER_RELOCATE_H
#define FAY_LOADER_RELOCATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAY_JUMP_BYTES 5u       /* e9 rel32 */
#define FAY_DISPLACED_MAX 24u   /* bytes: 4 of one-byte instructions and one of 15 come to 19 */
#define FAY_DISPLACED_ROOM 144u /* bytes of the relocated copy with its jump back, at most */
#define FAY_REASON_MAX 200u

struct fay_displaced {
	unsigned length; /* bytes of whole instructions taken from the site, >= FAY_JUMP_BYTES */
	unsigned count;
	struct {
		uint8_t from; /* bytes from the site */
		uint8_t to;   /* bytes from the start of the copy */
	} map[FAY_JUMP_BYTES + 1];
	uint8_t code[FAY_DISPLACED_ROOM];
	size_t size;
};

/*
 * Jumps back to a function's first instruction. They are no calls, so they are led past the jump
 * there, to the copy of the displaced instructions: by FAY_JUMP_BYTES that are written over the
 * jump itself, which no thread can stand inside of.
 */
#define FAY_BACKS_MAX 8u
struct fay_backs {
	unsigned count;
	uint32_t at[FAY_BACKS_MAX]; /* bytes from the function's start */
};

/*
 * Is it safe to overwrite FAY_JUMP_BYTES at body + *site? body holds `size` bytes of the function
 * at `address`, followed by `tail` more bytes (padding, the next function). *site is set to 0, or 4
 * behind endbr64. On false, `reason` says why not, to follow the function's name.
 */
bool fay_patchable(const uint8_t *body, size_t size, size_t tail, uint64_t address, size_t *site,
		   struct fay_backs *backs, char reason[FAY_REASON_MAX]);

/*
 * The same for a place `offset` bytes inside the function: an instruction must begin there, no jump
 * may lead behind its start, and where more than one instruction is overwritten no indirect jump
 * may be able to. `size` bytes at body are the function, `tail` more follow.
 */
bool fay_patchable_at(const uint8_t *body, size_t size, size_t tail, uint64_t address,
		      size_t offset, char reason[FAY_REASON_MAX]);

/*
 * For a short instruction at `offset` behind which code joins, such as a marker's nop: a jump over
 * the instructions before it, of which it is then the last overwritten or a later one. *site is
 * where the jump goes. From there to the instruction's end all runs in one go, and no jump of the
 * function leads in. The jump ends at or before the instruction's end.
 */
bool fay_patchable_before(const uint8_t *body, size_t size, uint64_t address, size_t offset,
			  size_t *site);

/*
 * Relocates the whole instructions that cover the first `need` bytes of `bytes` (at address `from`)
 * to address `to`, a jump back (FAY_JUMP_BYTES) appended.
 */
bool fay_displace(const uint8_t *bytes, size_t available, unsigned need, uint64_t from, uint64_t to,
		  struct fay_displaced *displaced, char reason[FAY_REASON_MAX]);

#endif
