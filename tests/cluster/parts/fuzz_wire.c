/* SPDX-License-Identifier: MIT */
/*
 * What other machines send, after the signature: bodies of all messages, then partials all the way
 * into a root and an inner agent. Each input is a sequence of messages: a byte of type, two of
 * size, a body. A signature cannot be guessed, so bodies are given to the readers directly.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/wire/wire.h"
#include "fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_machines(const struct fay_wire_meta *meta)
{
	struct fay_reader rest = meta->rest;
	char text[FAY_WIRE_PATH_MAX + 1];
	fay_text_copy(text, sizeof(text), meta->path);
	for (uint16_t i = 0; i < meta->machines; i++)
		fay_wire_meta_machine(&rest);
	assert(!rest.bad);
}

static void read_all(struct fay_reader body, unsigned type)
{
	union {
		struct fay_wire_hello hello;
		struct fay_wire_start start;
		struct fay_wire_answer answer;
		struct fay_wire_assign assign;
		struct fay_wire_control control;
		struct fay_wire_meta meta;
	} message;
	uint64_t time;
	uint32_t period;
	char text[64];
	if (type == FAY_WIRE_PING)
		fay_wire_read_ping(body, &time, &period);
	if (type == FAY_WIRE_HELLO && fay_wire_read_hello(body, &message.hello))
		fay_text_copy(text, sizeof(text), message.hello.name);
	if (type == FAY_WIRE_START && fay_wire_read_start(body, &message.start)) {
		struct fay_reader comms = { .at = message.start.comms.bytes,
					    .end = message.start.comms_end };
		for (uint16_t i = 0; i < message.start.comms.count; i++)
			fay_text_copy(text, sizeof(text),
				      fay_wire_string(&comms, FAY_WIRE_NAME_MAX));
		assert(!comms.bad && comms.at == comms.end);
		fay_text_copy(text, sizeof(text), message.start.function);
		uint8_t build_id[FAY_WIRE_BUILD_ID_MAX];
		memcpy(build_id, message.start.build_id, message.start.build_id_size);
		fay_wire_codes_fit(&message.start, &fixture_schema);
	}
	if (type == FAY_WIRE_ANSWER)
		fay_wire_read_answer(body, &message.answer);
	if (type == FAY_WIRE_ASSIGN)
		fay_wire_read_assign(body, &message.assign);
	if (type == FAY_WIRE_CONTROL)
		fay_wire_read_control(body, &message.control);
	if (type == FAY_WIRE_META && fay_wire_read_meta(body, &message.meta))
		read_machines(&message.meta);
}

static void read_object(const uint8_t *bytes, size_t size)
{
	struct fay_object *object;
	struct fay_aggregator *aggregator;
	struct fay_error error;
	if (fay_object_read(bytes, size, &object, &error))
		return;
	if (!fay_aggregator_create(&object->verdict.schema, &aggregator, &error))
		fay_aggregator_destroy(aggregator);
	free(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fixture fixture;
	struct fay_wire_head whole;
	fay_wire_open(bytes, size, &whole);
	fay_wire_version(bytes, size);
	read_object(bytes, size);
	fixture_init(&fixture, 3);
	fixture.root.machines[2]->inner = true;
	while (size >= 4) {
		uint8_t type = bytes[0] & 15, from = bytes[1] % 4;
		size_t length = bytes[2] | bytes[3] << 8;
		bytes += 4;
		size -= 4;
		length = length < size ? length : size;
		/* exactly as large, so that a byte too far is seen */
		uint8_t *copy = malloc(length + 1);
		assert(copy);
		memcpy(copy, bytes, length);
		struct fay_reader body = { .at = copy, .end = copy + length };
		struct fay_wire_head head = { .type = type,
					      .query = 1,
					      .sender = from + 1u,
					      .key = fixture.key,
					      .body = body };
		read_all(body, type);
		fay_root_merge(&fixture.root, &head);
		fay_job_collect(&fixture.inner, &head);
		free(copy);
		bytes += length;
		size -= length;
	}
	fixture_deinit(&fixture);
	return 0;
}
