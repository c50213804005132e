/* SPDX-License-Identifier: MIT */
/* The interface of probes, as include/fay/event.h and include/fay/image.h tell it to them. */
#include "subject.h"

enum { EVENT, LOCAL, GLOBAL };
enum { READ = FAY_REGION_READ, WRITE = FAY_REGION_WRITE };

#define NUMBER(lo, hi) { FAY_VALUE_NUMBER, 0, 0, { 0 }, lo, hi }
#define START(of) { FAY_VALUE_START, of, 0, { 0 }, 0, 0 }
#define STATE(kind) { FAY_VALUE_STATE, kind, 0, { 0 }, 0, UINT64_MAX }
#define BYTES(what, count) { FAY_VALUE_##what, 0, count, { 0 }, 0, 0 }
#define FIELD(offset, size) { offset, size, EVENT, READ, { 0 } }

const struct fay_interface check_probe_interface = {
	.magic = FAY_INTERFACE_MAGIC,
	.parameter_count = 3,
	.region_count = 3,
	.field_count = 23,
	.helper_count = FAY_HELPER_COUNT,
	.max_instructions = UINT64_MAX,
	.max_stack = UINT32_MAX,
	.parameter = { START(EVENT), START(LOCAL), START(GLOBAL) },
	.region = {
		[EVENT] = { FAY_EVENT_SIZE, 8, READ | FAY_REGION_CONSTANT,
				   FAY_EXTENT_FIXED, { 0 } },
		[LOCAL] = { FAY_IMAGE_MAX_LOCAL, 64, READ | WRITE | FAY_REGION_FILLED,
				   FAY_EXTENT_LOCAL, { 0 } },
		[GLOBAL] = { FAY_IMAGE_MAX_GLOBAL, 64, READ | WRITE, FAY_EXTENT_GLOBAL,
				    { 0 } },
	},
	.field = {
		/* enum fay_event_field, in order */
		FIELD(0, 8), FIELD(8, 8), FIELD(16, 8), FIELD(24, 8), FIELD(32, 8), FIELD(40, 8),
		FIELD(48, 8), FIELD(56, 8), FIELD(64, 8), FIELD(72, 8), FIELD(80, 8), FIELD(88, 4),
		FIELD(92, 4), FIELD(96, 4), FIELD(100, 4), FIELD(104, 16), FIELD(120, 8),
		FIELD(128, 8), FIELD(136, 8), FIELD(144, 8), FIELD(152, 8), FIELD(160, 128),
		FIELD(288, 8),
	},
	.helper = {
		[FAY_HELPER_FLUSH] = { "fay_flush", { START(LOCAL), STATE(FAY_STATE_TABLE) },
				       NUMBER(0, 1), 0 },
		[FAY_HELPER_EMIT] = { "fay_emit",
				      { START(LOCAL), STATE(FAY_STATE_STREAM), BYTES(READ, 2) },
				      NUMBER(0, 1), 0 },
		[FAY_HELPER_TRY_READ] = { "fay_try_read",
					  { BYTES(WRITE, 2), NUMBER(0, FAY_TRY_READ_MAX),
					    BYTES(ADDRESS, 2) },
					  NUMBER(-1, 0), 0 },
	},
};
