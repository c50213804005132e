/* SPDX-License-Identifier: MIT */
/*
 * An eavesdropper with a key that nobody knows: `replay URL KEY-FILE COUNT` keeps the first START
 * that it hears; after a line of input it sends the agent COUNT queries of its own, and then that
 * START once more, as it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nats/nats.h>

#include "cluster/wire/wire.h"

static natsMsg *wait_for_start(natsSubscription *agents, struct fay_wire_head *head)
{
	natsMsg *message;
	while (natsSubscription_NextMsg(&message, agents, 60000) == NATS_OK) {
		if (fay_wire_open(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message),
				  head) &&
		    head->type == FAY_WIRE_START)
			return message;
		natsMsg_Destroy(message);
	}
	return NULL;
}

/* The same query under another number and key. */
static bool send_own(natsConnection *connection, const char *subject,
		     const struct fay_wire_head *head, const struct fay_keys *keys)
{
	struct fay_writer_buffer out = { 0 };
	fay_wire_begin(&out, FAY_WIRE_START, fay_keys_random(), 0);
	fay_wire_put(&out, head->body.at, (size_t)(head->body.end - head->body.at));
	bool sent =
		fay_wire_end(&out, keys) &&
		natsConnection_Publish(connection, subject, out.bytes, (int)out.size) == NATS_OK;
	fay_wire_free(&out);
	return sent;
}

int main(int argc, char **argv)
{
	natsConnection *connection = NULL;
	natsSubscription *agents = NULL;
	struct fay_wire_head head;
	struct fay_error error;
	struct fay_keys keys;
	natsMsg *start;
	if (argc != 4 || fay_keys_init(&error) || fay_keys_read(argv[2], &keys, &error) ||
	    natsConnection_ConnectTo(&connection, argv[1]) != NATS_OK ||
	    natsConnection_SubscribeSync(&agents, connection, "fay.1.a.*") != NATS_OK ||
	    natsConnection_Flush(connection) != NATS_OK)
		return 1;
	printf("listening\n");
	fflush(stdout);
	if (!(start = wait_for_start(agents, &head)))
		return 2;
	printf("heard\n");
	fflush(stdout);
	natsSubscription_Unsubscribe(agents);
	if (getchar() == EOF)
		return 3;
	for (unsigned long i = 0, count = strtoul(argv[3], NULL, 10); i < count; i++)
		if (!send_own(connection, natsMsg_GetSubject(start), &head, &keys))
			return 4;
	if (natsConnection_Publish(connection, natsMsg_GetSubject(start), natsMsg_GetData(start),
				   natsMsg_GetDataLength(start)) != NATS_OK ||
	    natsConnection_Flush(connection) != NATS_OK)
		return 5;
	natsMsg_Destroy(start);
	natsConnection_Destroy(connection);
	return 0;
}
