/* SPDX-License-Identifier: MIT */
/*
 * Displaced instructions: those that a jump overwrites, and their copy for another address.
 * Pure functions of bytes; no process is touched.
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
	/* where, plus one, a call's return address is pushed; 0: none is. All else of the copy is
	 * relative */
	size_t pushed;
};

/*
 * Relocates the whole instructions that cover the first `need` bytes of `bytes` (at address `from`)
 * to address `to`, a jump back (FAY_JUMP_BYTES) appended.
 */
bool fay_displace(const uint8_t *bytes, size_t available, unsigned need, uint64_t from, uint64_t to,
		  struct fay_displaced *displaced, char reason[FAY_REASON_MAX]);

#endif
