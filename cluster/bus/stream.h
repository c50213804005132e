/* SPDX-License-Identifier: MIT */
/* A JetStream stream that keeps what agents send for a query whose asking side is away. */
#ifndef FAY_CLUSTER_STREAM_H
#define FAY_CLUSTER_STREAM_H

#include "bus.h"

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
