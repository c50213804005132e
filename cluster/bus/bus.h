/* SPDX-License-Identifier: MIT */
/* NATS: a connection, messages that are polled, and streams that keep them (JetStream). */
#ifndef FAY_CLUSTER_BUS_H
#define FAY_CLUSTER_BUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/error.h"

/* The connection to NATS: what is allowed without TLS and credentials, sending, and subscriptions
 * that are polled. */

struct fay_bus_options {
	const char *url; /* one or several, separated by commas */
	/* file of a NATS user's JWT and seed; NULL: those in the URL, if any */
	const char *credentials;
	const char *ca;                            /* PEM: of the servers; asks for TLS */
	const char *certificate, *certificate_key; /* PEM: ours */
	const char *name;                          /* shown by the servers */
	bool insecure; /* allow plain connections, without credentials, beyond loopback */
};

struct fay_bus;
struct fay_subscription;
struct fay_message {
	const void *bytes;
	size_t size;
	const char *subject;
	void *handle;
};

/* Connects; afterwards lost connections are made again for ever, unless a server refuses them:
 * fay_bus_check_open(). */
int fay_bus_open(const struct fay_bus_options *options, struct fay_bus **bus,
		 struct fay_error *error);
void fay_bus_close(struct fay_bus *bus);
bool fay_bus_connected(const struct fay_bus *bus);
/* FAY_E_REFUSED: no connection will be made any more. A server has refused it twice, such as after
 * a change of the password, or has ended it with an error. */
int fay_bus_check_open(const struct fay_bus *bus, struct fay_error *error);
/* How often the connection was made. */
uint64_t fay_bus_connections(const struct fay_bus *bus);
/* false: not sent, and not kept. true: perhaps. */
bool fay_bus_send(struct fay_bus *bus, const char *subject, const void *bytes, size_t size);
/* Likewise; what answers does so to subject `reply`. */
bool fay_bus_send_for_reply(struct fay_bus *bus, const char *subject, const char *reply,
			    const void *bytes, size_t size);
int fay_bus_subscribe(struct fay_bus *bus, const char *subject,
		      struct fay_subscription **subscription, struct fay_error *error);
void fay_bus_unsubscribe(struct fay_subscription *subscription);
/* The next message, for which it waits up to timeout_ms; to be released with fay_message_done(). */
bool fay_bus_next(struct fay_subscription *subscription, int timeout_ms,
		  struct fay_message *message);
void fay_message_done(struct fay_message *message);
/* What was sent has reached the server, or timeout_ms passed. */
void fay_bus_flush(struct fay_bus *bus, int timeout_ms);

/* A JetStream stream that keeps what agents send for a query whose asking side is away. */

/* on the servers' disks; then agents keep what they have and leave windows out */
#define FAY_STREAM_BYTES_MAX (256ull << 20)
#define FAY_STREAM_DAY (24ull * 3600 * 1000000000)
/* ns that a query runs; then there is a day in which its end can be looked at */
#define FAY_STREAM_LIFE_MAX (7 * FAY_STREAM_DAY)
/* ns; what was asked is stored once, so a query must end before; one that nobody comes back for is
 * forgotten */
#define FAY_STREAM_AGE_MAX (8 * FAY_STREAM_DAY)

struct fay_stream;
/* Keeps all messages of fay.1.q.QUERY.up and .meta from now on. */
int fay_stream_create(struct fay_bus *bus, uint64_t query, struct fay_stream **stream,
		      struct fay_error *error);
/* One that exists. */
int fay_stream_open(struct fay_bus *bus, uint64_t query, struct fay_stream **stream,
		    struct fay_error *error);
void fay_stream_close(struct fay_stream *stream);
/* Sends, and returns when it is stored. */
int fay_stream_store(struct fay_stream *stream, const char *subject, const void *bytes, size_t size,
		     struct fay_error *error);
/* The last message of a subject. To be released with fay_message_done(). */
int fay_stream_last(struct fay_stream *stream, const char *subject, struct fay_message *message,
		    struct fay_error *error);
/* First and last sequence number that are kept. */
int fay_stream_range(struct fay_stream *stream, uint64_t *first, uint64_t *last,
		     struct fay_error *error);
/* false: the server did not say, and may be asked again. Without `bytes` and `handle`: there is
 * none of that number. */
bool fay_stream_get(struct fay_stream *stream, uint64_t sequence, struct fay_message *message);
int fay_stream_delete(struct fay_stream *stream, struct fay_error *error);

#endif
