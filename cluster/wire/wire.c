/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "aggregator/live/partial.h"

#include "wire.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the messages are little-endian");

/* --- reading --- */

static const uint8_t *take(struct fay_reader *reader, size_t size)
{
	if (reader->bad || size > (size_t)(reader->end - reader->at)) {
		reader->bad = true;
		return NULL;
	}
	const uint8_t *at = reader->at;
	reader->at += size;
	return at;
}

static void read_bytes(struct fay_reader *reader, void *to, size_t size)
{
	const uint8_t *at = take(reader, size);
	if (at)
		memcpy(to, at, size);
}

static uint8_t read8(struct fay_reader *reader)
{
	uint8_t value = 0;
	read_bytes(reader, &value, sizeof(value));
	return value;
}

uint16_t fay_wire_u16(struct fay_reader *reader)
{
	uint16_t value = 0;
	read_bytes(reader, &value, sizeof(value));
	return value;
}

uint32_t fay_wire_u32(struct fay_reader *reader)
{
	uint32_t value = 0;
	read_bytes(reader, &value, sizeof(value));
	return value;
}

uint64_t fay_wire_u64(struct fay_reader *reader)
{
	uint64_t value = 0;
	read_bytes(reader, &value, sizeof(value));
	return value;
}

struct fay_text fay_wire_string(struct fay_reader *reader, uint16_t max)
{
	struct fay_text text = { 0 };
	text.size = fay_wire_u16(reader);
	if (text.size > max)
		reader->bad = true;
	text.bytes = (const char *)take(reader, text.size);
	if (!text.bytes)
		text.size = 0;
	return text;
}

static struct fay_list read_list(struct fay_reader *reader, uint16_t max, size_t item)
{
	struct fay_list list = { 0 };
	list.count = fay_wire_u16(reader);
	if (list.count > max)
		reader->bad = true;
	list.bytes = take(reader, list.count * item);
	if (!list.bytes)
		list.count = 0;
	return list;
}

/* All was read, and nothing is left. */
static bool complete(const struct fay_reader *reader)
{
	return !reader->bad && reader->at == reader->end;
}

bool fay_wire_open(const void *bytes, size_t size, struct fay_wire_head *head)
{
	const uint8_t *message = bytes;
	if (size < FAY_WIRE_HEADER + FAY_WIRE_TRAILER || size > FAY_WIRE_MAX ||
	    memcmp(message, "FAYc", 4))
		return false;
	size_t end = size - FAY_WIRE_TRAILER;
	struct fay_reader reader = { .at = message + 4, .end = message + end };
	if (fay_wire_u16(&reader) != FAY_WIRE_VERSION)
		return false;
	head->type = fay_wire_u16(&reader);
	head->query = fay_wire_u64(&reader);
	head->sender = fay_wire_u64(&reader);
	head->key = message + end;
	head->body = reader;
	return !reader.bad && fay_keys_check(head->key, message, size - FAY_SIGNATURE_BYTES,
					     message + size - FAY_SIGNATURE_BYTES);
}

uint16_t fay_wire_version(const void *bytes, size_t size)
{
	struct fay_reader reader = { .at = (const uint8_t *)bytes + FAY_WIRE_VERSION_AT,
				     .end = (const uint8_t *)bytes + size };
	return size < FAY_WIRE_HEADER || memcmp(bytes, "FAYc", 4) ? 0 : fay_wire_u16(&reader);
}

bool fay_wire_read_ping(struct fay_reader body, uint64_t *time, uint32_t *period)
{
	*time = fay_wire_u64(&body);
	*period = fay_wire_u32(&body);
	return complete(&body);
}

bool fay_wire_read_hello(struct fay_reader body, struct fay_wire_hello *hello)
{
	hello->ping_time = fay_wire_u64(&body);
	hello->time = fay_wire_u64(&body);
	hello->cpus = fay_wire_u32(&body);
	hello->queries = fay_wire_u32(&body);
	hello->name = fay_wire_string(&body, FAY_WIRE_NAME_MAX);
	hello->kernel = fay_wire_string(&body, FAY_WIRE_NAME_MAX);
	hello->labels = fay_wire_string(&body, FAY_WIRE_NAME_MAX);
	hello->version = fay_wire_string(&body, FAY_WIRE_NAME_MAX);
	return complete(&body);
}

bool fay_wire_read_start(struct fay_reader body, struct fay_wire_start *start)
{
	start->target = fay_wire_u64(&body);
	start->sent = fay_wire_u64(&body);
	start->window = fay_wire_u64(&body);
	start->elapsed = fay_wire_u64(&body);
	start->lease = fay_wire_u64(&body);
	start->life = fay_wire_u64(&body);
	start->horizon = fay_wire_u64(&body);
	start->clock = (int64_t)fay_wire_u64(&body);
	start->flags = fay_wire_u32(&body);
	start->bytes_per_second = fay_wire_u32(&body);
	start->text = fay_wire_string(&body, FAY_WIRE_TEXT_MAX);
	start->comms.count = fay_wire_u16(&body);
	start->comms.bytes = body.at;
	if (start->comms.count > FAY_WIRE_COMMS_MAX)
		body.bad = true;
	for (uint16_t i = 0; i < start->comms.count && !body.bad; i++)
		fay_wire_string(&body, FAY_WIRE_NAME_MAX);
	start->comms_end = body.at;
	start->pids = read_list(&body, FAY_WIRE_PIDS_MAX, sizeof(uint32_t));
	start->function = fay_wire_string(&body, FAY_WIRE_NAME_MAX);
	struct fay_text build_id = fay_wire_string(&body, FAY_WIRE_BUILD_ID_MAX);
	start->build_id = (const uint8_t *)build_id.bytes;
	start->build_id_size = build_id.size;
	start->codes = read_list(&body, FAY_WIRE_CODES_MAX, FAY_WIRE_CODE);
	start->signatures = read_list(&body, FAY_WIRE_SIGNATURES_MAX, FAY_WIRE_SIGNATURE);
	start->image_size = fay_wire_u32(&body);
	if (start->image_size > FAY_WIRE_IMAGE_MAX)
		body.bad = true;
	start->image = take(&body, start->image_size);
	return complete(&body);
}

struct fay_wire_code fay_wire_code(const struct fay_wire_start *start, uint16_t index)
{
	const uint8_t *at = start->codes.bytes + (size_t)index * FAY_WIRE_CODE;
	struct fay_reader reader = { .at = at, .end = at + FAY_WIRE_CODE };
	struct fay_wire_code code = { .column = fay_wire_u16(&reader) };
	code.flags = read8(&reader);
	return code;
}

bool fay_wire_codes_fit(const struct fay_wire_start *start, const struct fay_schema *schema)
{
	for (uint16_t i = 0; i < start->codes.count; i++) {
		struct fay_wire_code code = fay_wire_code(start, i);
		if (code.column >= schema->column_count ||
		    code.flags & ~(FAY_CODE_EXACT | FAY_CODE_KERNEL))
			return false;
		const struct fay_schema_column *column = &schema->columns[code.column];
		if (column->merge != FAY_MERGE_KEY || column->size % sizeof(uint64_t) ||
		    column->type == FAY_TYPE_FUNCTION)
			return false;
	}
	return true;
}

struct fay_wire_meta_machine fay_wire_meta_machine(struct fay_reader *rest)
{
	struct fay_wire_meta_machine machine;
	machine.agent = fay_wire_u64(rest);
	machine.key = take(rest, FAY_KEY_BYTES);
	machine.event_clock = (int64_t)fay_wire_u64(rest);
	machine.name = fay_wire_string(rest, FAY_WIRE_NAME_MAX);
	return machine;
}

bool fay_wire_read_meta(struct fay_reader body, struct fay_wire_meta *meta)
{
	meta->began = fay_wire_u64(&body);
	meta->window = fay_wire_u64(&body);
	meta->life = fay_wire_u64(&body);
	meta->lease = fay_wire_u64(&body);
	meta->is_query = read8(&body) == 1;
	meta->text = fay_wire_string(&body, FAY_WIRE_TEXT_MAX);
	meta->function = fay_wire_string(&body, FAY_WIRE_NAME_MAX);
	meta->build_id = fay_wire_string(&body, FAY_WIRE_BUILD_ID_MAX);
	meta->path = fay_wire_string(&body, FAY_WIRE_PATH_MAX);
	meta->machines = fay_wire_u16(&body);
	meta->rest = body;
	if (meta->machines > FAY_WIRE_AGENTS_MAX)
		body.bad = true;
	for (uint16_t i = 0; i < meta->machines && !body.bad; i++)
		fay_wire_meta_machine(&body);
	meta->image_size = fay_wire_u32(&body);
	if (meta->image_size > FAY_WIRE_IMAGE_MAX)
		body.bad = true;
	meta->image = take(&body, meta->image_size);
	return complete(&body);
}

bool fay_wire_read_answer(struct fay_reader body, struct fay_wire_answer *answer)
{
	answer->sent = fay_wire_u64(&body);
	answer->time = fay_wire_u64(&body);
	answer->accepted = read8(&body) == 1;
	answer->processes = fay_wire_u32(&body);
	answer->functions = fay_wire_u32(&body);
	answer->reason = fay_wire_string(&body, FAY_WIRE_REASON_MAX);
	return complete(&body);
}

bool fay_wire_read_assign(struct fay_reader body, struct fay_wire_assign *assign)
{
	assign->version = fay_wire_u32(&body);
	assign->parent = fay_wire_u64(&body);
	assign->children = read_list(&body, FAY_WIRE_AGENTS_MAX, FAY_ASSIGN_CHILD);
	return complete(&body);
}

bool fay_wire_read_control(struct fay_reader body, struct fay_wire_control *control)
{
	control->number = fay_wire_u64(&body);
	control->flags = fay_wire_u32(&body);
	control->floor = fay_wire_u64(&body);
	control->exceptions = read_list(&body, FAY_WIRE_EXCEPTIONS_MAX, FAY_CONTROL_EXCEPTION);
	return complete(&body);
}

void fay_wire_read_member(const struct fay_wire_partial *partial, uint16_t index,
			  struct fay_wire_member *member)
{
	const uint8_t *at = partial->members.bytes + (size_t)index * FAY_WIRE_MEMBER;
	struct fay_reader reader = { .at = at, .end = at + FAY_WIRE_MEMBER };
	member->agent = fay_wire_u64(&reader);
	member->first = fay_wire_u64(&reader);
	member->last = fay_wire_u64(&reader);
	member->window = fay_wire_u64(&reader);
	member->tree = fay_wire_u32(&reader);
	member->flags = read8(&reader);
	member->why = read8(&reader);
}

struct fay_wire_block fay_wire_block(struct fay_reader *rest, const struct fay_schema *schema)
{
	struct fay_wire_block block = { 0 };
	block.state = fay_wire_u16(rest);
	block.rows = fay_wire_u32(rest);
	block.final = block.state & FAY_BLOCK_FINAL;
	block.state &= (uint16_t)~FAY_BLOCK_FINAL;
	if (block.state >= schema->state_count ||
	    (block.final && (schema->states[block.state].kind == FAY_STATE_STREAM ||
			     !fay_schema_replaces(schema)))) {
		rest->bad = true;
		return block;
	}
	block.bytes = take(rest, (uint64_t)block.rows * schema->states[block.state].row_size);
	return block;
}

/* Sorted by agent and sequence, ranges apart: entering one member of a message cannot make another
 * one old. No range is empty or begins at 0. */
static bool members_are_sound(const struct fay_wire_partial *partial)
{
	struct fay_wire_member member, before = { 0 };
	for (uint16_t i = 0; i < partial->members.count; i++, before = member) {
		fay_wire_read_member(partial, i, &member);
		if (!member.agent || !member.first || member.last < member.first ||
		    member.last - member.first >= FAY_WIRE_RANGE_MAX || member.last > INT64_MAX ||
		    member.window > INT64_MAX)
			return false;
		if (member.agent < before.agent ||
		    (member.agent == before.agent && member.first <= before.last))
			return false;
	}
	return partial->members.count > 0;
}

bool fay_wire_read_partial(struct fay_reader body, const struct fay_schema *schema,
			   struct fay_wire_partial *partial)
{
	uint8_t combined = read8(&body);
	partial->combined = combined == 1;
	partial->members = read_list(&body, FAY_WIRE_AGENTS_MAX, FAY_WIRE_MEMBER);
	for (unsigned i = 0; i < FAY_WIRE_LOSSES; i++)
		partial->losses[i] = fay_wire_u64(&body);
	partial->blocks = fay_wire_u16(&body);
	if (combined > 1 || partial->blocks > FAY_WIRE_STATES_MAX)
		body.bad = true;
	partial->rest = body;
	for (uint16_t i = 0; i < partial->blocks && !body.bad; i++)
		fay_wire_block(&body, schema);
	uint16_t names = fay_wire_u16(&body);
	for (uint16_t i = 0; i < names && !body.bad; i++) {
		fay_wire_u64(&body);
		fay_wire_string(&body, FAY_WIRE_NAME_MAX);
	}
	return complete(&body) && members_are_sound(partial);
}

void fay_text_copy(char *to, size_t size, struct fay_text text)
{
	size_t length = text.size < size ? text.size : size - 1;
	for (size_t i = 0; i < length; i++)
		to[i] = (unsigned char)text.bytes[i] < 32 || text.bytes[i] == 127 ? '?'
										  : text.bytes[i];
	to[length] = 0;
}

/* --- writing --- */

void fay_wire_put(struct fay_writer_buffer *out, const void *bytes, size_t size)
{
	size_t limit = out->limit ? out->limit : FAY_WIRE_MAX;
	if (out->bad || size > limit - out->size) {
		out->bad = true;
		return;
	}
	if (size > out->room - out->size) {
		size_t room = out->room ? out->room : 4096;
		while (room < out->size + size)
			room *= 2;
		uint8_t *grown = realloc(out->bytes, room);
		if (!grown) {
			out->bad = true;
			return;
		}
		out->bytes = grown;
		out->room = room;
	}
	if (size)
		memcpy(out->bytes + out->size, bytes, size);
	out->size += size;
}

void fay_wire_put8(struct fay_writer_buffer *out, uint8_t value)
{
	fay_wire_put(out, &value, sizeof(value));
}

void fay_wire_put16(struct fay_writer_buffer *out, uint16_t value)
{
	fay_wire_put(out, &value, sizeof(value));
}

void fay_wire_put32(struct fay_writer_buffer *out, uint32_t value)
{
	fay_wire_put(out, &value, sizeof(value));
}

void fay_wire_put64(struct fay_writer_buffer *out, uint64_t value)
{
	fay_wire_put(out, &value, sizeof(value));
}

void fay_wire_put_text(struct fay_writer_buffer *out, const char *text, size_t max)
{
	size_t length = strnlen(text, max);
	fay_wire_put16(out, (uint16_t)length);
	fay_wire_put(out, text, length);
}

void fay_wire_put_member(struct fay_writer_buffer *out, const struct fay_wire_member *member)
{
	fay_wire_put64(out, member->agent);
	fay_wire_put64(out, member->first);
	fay_wire_put64(out, member->last);
	fay_wire_put64(out, member->window);
	fay_wire_put32(out, member->tree);
	fay_wire_put8(out, member->flags);
	fay_wire_put8(out, member->why);
}

void fay_wire_begin(struct fay_writer_buffer *out, enum fay_wire_type type, uint64_t query,
		    uint64_t sender)
{
	out->size = 0;
	out->bad = false;
	fay_wire_put(out, "FAYc", 4);
	fay_wire_put16(out, FAY_WIRE_VERSION);
	fay_wire_put16(out, (uint16_t)type);
	fay_wire_put64(out, query);
	fay_wire_put64(out, sender);
}

bool fay_wire_end(struct fay_writer_buffer *out, const struct fay_keys *keys)
{
	uint8_t signature[FAY_SIGNATURE_BYTES] = { 0 };
	fay_wire_put(out, keys->public, FAY_KEY_BYTES);
	if (!out->bad)
		fay_keys_sign(keys, out->bytes, out->size, signature);
	fay_wire_put(out, signature, sizeof(signature));
	return !out->bad;
}

void fay_wire_free(struct fay_writer_buffer *out)
{
	free(out->bytes);
	*out = (struct fay_writer_buffer){ 0 };
}
