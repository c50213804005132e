/* SPDX-License-Identifier: MIT */
/* Between merge.c and sketches.c: operators that summarise; what each does with the 8-byte words of
 * its column. */
#ifndef FAY_AGGREGATOR_ROWS_PARTS_H
#define FAY_AGGREGATOR_ROWS_PARTS_H

#include "rows.h"

void fay_merge_saturating(uint64_t *to, const uint64_t *from, size_t words);
void fay_merge_bytes(uint64_t *to, const uint64_t *from, size_t words);
void fay_merge_pair(uint64_t *to, const uint64_t *from, size_t words);
void fay_merge_top(uint64_t *to, const uint64_t *from, size_t words);
void fay_merge_sample(uint64_t *to, const uint64_t *from, size_t words);
bool fay_sketch_decode(const struct fay_schema_column *column, const uint8_t *row,
		       struct fay_value *value);

#endif
