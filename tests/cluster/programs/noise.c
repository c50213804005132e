/* SPDX-License-Identifier: MIT */
/*
 * Sends messages of a cluster's queries again: each up to three times, late and in another order,
 * to the subject they were sent to. `noise URL` runs until it is killed. Its own messages do not
 * come back to it (no echo).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nats/nats.h>

#define HELD 16

static natsMsg *held[HELD];
/* each subscription has a thread of its own */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Takes the place of an older one, which goes out now, perhaps twice, and perhaps stays. */
static void on_message(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
		       void *closure)
{
	pthread_mutex_lock(&lock);
	unsigned at = (unsigned)random() % HELD;
	if (held[at]) {
		for (long times = random() % 3; times >= 0; times--)
			natsConnection_Publish(connection, natsMsg_GetSubject(held[at]),
					       natsMsg_GetData(held[at]),
					       natsMsg_GetDataLength(held[at]));
		natsMsg_Destroy(held[at]);
	}
	/* And something that is no message at all. */
	if (random() % 8 == 0)
		natsConnection_Publish(connection, natsMsg_GetSubject(message),
				       natsMsg_GetData(message),
				       (int)(random() % (natsMsg_GetDataLength(message) + 1)));
	held[at] = message;
	pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv)
{
	natsOptions *options = NULL;
	natsConnection *connection = NULL;
	natsSubscription *up = NULL, *agents = NULL;
	if (argc != 2 || natsOptions_Create(&options) != NATS_OK ||
	    natsOptions_SetURL(options, argv[1]) != NATS_OK ||
	    natsOptions_SetNoEcho(options, true) != NATS_OK ||
	    natsConnection_Connect(&connection, options) != NATS_OK ||
	    natsConnection_Subscribe(&up, connection, "fay.1.q.*.*", on_message, NULL) != NATS_OK ||
	    natsConnection_Subscribe(&agents, connection, "fay.1.a.*", on_message, NULL) != NATS_OK)
		return 1;
	printf("listening\n");
	fflush(stdout);
	for (;;)
		nats_Sleep(1000);
}
