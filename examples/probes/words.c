/* SPDX-License-Identifier: MIT */
/* Commands of redis by first word, keys with a prefix, and the hashes of the last 16 commands of
 * each thread. */
#include <fay/probe.h>
#include <fay/string.h>

FAY_TABLE(by_length, 64, FAY_KEYS(FAY_KEY_U64(length)), FAY_VALUES(FAY_VALUE_COUNT(count)));
FAY_CELL(words, FAY_VALUES(FAY_VALUE_COUNT(get), FAY_VALUE_COUNT(set), FAY_VALUE_COUNT(user_keys),
			   FAY_VALUE_COUNT(repeated)));

struct command {
	uint64_t hash;
	uint32_t length;
};
FAY_SCRATCH(FAY_RING_STRUCT(struct command, 16), recent);

FAY_ENTRY("redis-server!processCommand")
{
	char text[48];
	uint64_t hash;
	struct by_length_row *row;

	if (fay_try_read(text, sizeof(text), event->arg[1]))
		return;
	if (fay_string_begins(text, sizeof(text), "GET "))
		fay_count(&words.get);
	else if (fay_string_begins(text, sizeof(text), "SET "))
		fay_count(&words.set);
	if (fay_string_find(text, sizeof(text), "user:") >= 0)
		fay_count(&words.user_keys);
	hash = fay_string_hash(text, sizeof(text));
	for (unsigned back = 0; back < 16; back++)
		if (fay_ring_at(&recent, back)->hash == hash) {
			fay_count(&words.repeated);
			break;
		}
	*fay_ring_next(&recent) = (struct command){ hash, fay_string_length(text, sizeof(text)) };
	row = by_length_at((struct by_length_key){ .length = fay_ring_at(&recent, 0)->length });
	if (row)
		fay_count(&row->count);
}
