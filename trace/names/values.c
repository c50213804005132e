/* SPDX-License-Identifier: MIT */
/* What values in rows are called, and where a row has what a view shows. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "view.h"

bool fay_column_is_plain(const struct fay_schema_column *column)
{
	return column->merge == FAY_MERGE_KEY || column->merge == (uint16_t)FAY_RESULT_COMPUTED;
}

struct fay_bucket fay_bucket_of(const struct fay_schema_column *column, size_t bucket, size_t count)
{
	uint64_t one = 1, part = bucket & ((1u << FAY_HIST_LOGLINEAR_BITS) - 1);
	unsigned exponent = (unsigned)(bucket >> FAY_HIST_LOGLINEAR_BITS);
	int64_t low = column->param[0], width = column->param[1];
	if (column->merge == FAY_MERGE_HIST_LOG2 || column->merge == FAY_MERGE_HIST_LOGLINEAR) {
		if (bucket == 0)
			return (struct fay_bucket){ .open = "<= " };
		if (column->merge == FAY_MERGE_HIST_LOG2)
			return (struct fay_bucket){ .low = one << (bucket - 1),
						    .high = (one << (bucket - 1)) * 2 - 1 };
		if (!exponent)
			return (struct fay_bucket){ .low = bucket, .high = bucket };
		part = (part + (one << FAY_HIST_LOGLINEAR_BITS)) << (exponent - 1);
		return (struct fay_bucket){ .low = part,
					    .high = part + (one << (exponent - 1)) - 1 };
	}
	if (bucket == 0)
		return (struct fay_bucket){ .open = "< ", .is_signed = true, .low = (uint64_t)low };
	low += width * (int64_t)(bucket - 1);
	return (struct fay_bucket){ .open = bucket == count - 1 ? ">= " : NULL,
				    .is_signed = true,
				    .low = (uint64_t)low,
				    .high = (uint64_t)(low + width - 1) };
}

void fay_bucket_label(const struct fay_schema_column *column, size_t bucket, size_t count,
		      char label[64])
{
	struct fay_bucket b = fay_bucket_of(column, bucket, count);
	char low[24], high[24];
	snprintf(low, sizeof(low), b.is_signed ? "%" PRId64 : "%" PRIu64, b.low);
	snprintf(high, sizeof(high), b.is_signed ? "%" PRId64 : "%" PRIu64, b.high);
	if (b.open || b.low == b.high)
		snprintf(label, 64, "%s%s", b.open ? b.open : "", low);
	else
		snprintf(label, 64, "%s..%s", low, high);
}

struct fay_text_bytes fay_view_string(const struct fay_texts *texts,
				      const struct fay_view_column *view, const uint8_t *row,
				      const struct fay_value *value)
{
	struct fay_text_bytes text = { .bytes = value->string.bytes, .length = value->string.size };
	if (texts && view->column->size == FAY_TEXT_CELL)
		text = fay_text_of(texts, row + view->column->offset);
	text.length += text.cut ? FAY_TEXT_CUT_MARK : 0;
	return text;
}

static const char *name_of(const struct fay_enumeration *enumeration, int64_t value,
			   char text[FAY_VALUE_NAMES])
{
	int64_t left = value, named = 0; /* bits that have a name already */
	size_t used = 0;
	for (uint32_t i = 0; enumeration && i < enumeration->count && used < FAY_VALUE_NAMES; i++) {
		if ((left & enumeration->items[i].mask) != enumeration->items[i].value ||
		    (named & enumeration->items[i].mask))
			continue;
		used += (size_t)snprintf(text + used, FAY_VALUE_NAMES - used, "%s%s",
					 used ? "|" : "", enumeration->items[i].name);
		left &= ~enumeration->items[i].mask;
		named |= enumeration->items[i].mask;
	}
	if (!enumeration || (!used && enumeration->rest == FAY_REST_DECIMAL))
		return NULL;
	if (used < FAY_VALUE_NAMES && (left || !used))
		snprintf(text + used, FAY_VALUE_NAMES - used,
			 enumeration->rest == FAY_REST_OCTAL ? "%s%#" PRIo64 : "%s%#" PRIx64,
			 used ? "|" : "", left);
	return text;
}

const char *fay_view_name(const struct fay_view_column *view, const uint8_t *row, int64_t value,
			  char text[FAY_VALUE_NAMES])
{
	const struct fay_enumeration *enumeration = view->enumeration;
	struct fay_value by;
	if (!enumeration || !enumeration->by)
		return name_of(enumeration, value, text);
	if (!view->by || !fay_value_decode(view->by, row, &by) || by.kind != FAY_VALUE_I64)
		return NULL;
	for (uint32_t i = 0; i < enumeration->case_count; i++)
		if (enumeration->cases[i].by == by.i64)
			return name_of(enumeration->cases[i].values, value, text);
	return NULL;
}

uint64_t fay_view_address(const struct fay_view_column *view, const uint8_t *row, uint32_t frame)
{
	uint64_t address;
	memcpy(&address, row + view->column->offset + 8 * (size_t)frame, sizeof(address));
	return address;
}

uint32_t fay_view_stack_depth(const struct fay_view_column *view, const uint8_t *row)
{
	uint32_t depth = 0;
	while (depth < view->stack_frames && fay_view_address(view, row, depth))
		depth++;
	return depth;
}
