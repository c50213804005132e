/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bus_private.h"

struct fay_stream {
	jsCtx *context;
	char name[32];
};

static int failed(struct fay_error *error, const char *what, natsStatus status, jsErrCode code)
{
	return fay_error_set(error, FAY_E_REFUSED, "%s: %s%s", what, natsStatus_GetText(status),
			     status == NATS_NO_RESPONDERS || code == JSNotEnabledErr
				     ? " (does nats-server run with JetStream, -js?)"
				     : "");
}

static int open_stream(struct fay_bus *bus, uint64_t query, struct fay_stream **result,
		       struct fay_error *error)
{
	struct fay_stream *stream = calloc(1, sizeof(*stream));
	if (!stream)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	snprintf(stream->name, sizeof(stream->name), "FAY_%016" PRIx64, query);
	natsStatus status = natsConnection_JetStream(&stream->context, bus->connection, NULL);
	if (status != NATS_OK) {
		free(stream);
		return failed(error, "JetStream", status, 0);
	}
	*result = stream;
	return FAY_OK;
}

int fay_stream_create(struct fay_bus *bus, uint64_t query, struct fay_stream **result,
		      struct fay_error *error)
{
	jsStreamConfig config;
	jsErrCode code = 0;
	char up[64], meta[64];
	const char *subjects[] = { up, meta };
	struct fay_stream *stream;
	if (open_stream(bus, query, &stream, error))
		return error->code;
	snprintf(up, sizeof(up), "fay.1.q.%016" PRIx64 ".up", query);
	snprintf(meta, sizeof(meta), "fay.1.q.%016" PRIx64 ".meta", query);
	jsStreamConfig_Init(&config);
	config.Name = stream->name;
	config.Subjects = subjects;
	config.SubjectsLen = 2;
	config.MaxBytes = FAY_STREAM_BYTES_MAX;
	config.MaxAge = FAY_STREAM_AGE_MAX;
	config.Discard = js_DiscardNew;
	natsStatus status = js_AddStream(NULL, stream->context, &config, NULL, &code);
	if (status != NATS_OK) {
		fay_stream_close(stream);
		return failed(error, "cannot make a stream for the query", status, code);
	}
	*result = stream;
	return FAY_OK;
}

int fay_stream_open(struct fay_bus *bus, uint64_t query, struct fay_stream **result,
		    struct fay_error *error)
{
	uint64_t first, last;
	struct fay_stream *stream;
	if (open_stream(bus, query, &stream, error))
		return error->code;
	if (fay_stream_range(stream, &first, &last, error)) {
		fay_stream_close(stream);
		return error->code;
	}
	*result = stream;
	return FAY_OK;
}

void fay_stream_close(struct fay_stream *stream)
{
	if (!stream)
		return;
	jsCtx_Destroy(stream->context);
	free(stream);
}

int fay_stream_store(struct fay_stream *stream, const char *subject, const void *bytes, size_t size,
		     struct fay_error *error)
{
	jsErrCode code = 0;
	natsStatus status =
		js_Publish(NULL, stream->context, subject, bytes, (int)size, NULL, &code);
	return status == NATS_OK ? FAY_OK
				 : failed(error, "the query cannot be stored", status, code);
}

static void take(natsMsg *got, struct fay_message *message)
{
	*message = (struct fay_message){ .bytes = natsMsg_GetData(got),
					 .size = (size_t)natsMsg_GetDataLength(got),
					 .subject = natsMsg_GetSubject(got),
					 .handle = got };
}

int fay_stream_last(struct fay_stream *stream, const char *subject, struct fay_message *message,
		    struct fay_error *error)
{
	natsMsg *got;
	jsErrCode code = 0;
	natsStatus status =
		js_GetLastMsg(&got, stream->context, stream->name, subject, NULL, &code);
	if (status != NATS_OK)
		return failed(error, "the query was not stored", status, code);
	take(got, message);
	return FAY_OK;
}

int fay_stream_range(struct fay_stream *stream, uint64_t *first, uint64_t *last,
		     struct fay_error *error)
{
	jsStreamInfo *info = NULL;
	jsErrCode code = 0;
	natsStatus status = js_GetStreamInfo(&info, stream->context, stream->name, NULL, &code);
	if (status == NATS_NOT_FOUND)
		return fay_error_set(error, FAY_E_REFUSED, "no such query (%s)", stream->name + 4);
	if (status != NATS_OK)
		return failed(error, "cannot inspect the query's stream", status, code);
	*first = info->State.FirstSeq;
	*last = info->State.LastSeq;
	jsStreamInfo_Destroy(info);
	return FAY_OK;
}

bool fay_stream_get(struct fay_stream *stream, uint64_t sequence, struct fay_message *message)
{
	natsMsg *got;
	natsStatus status = js_GetMsg(&got, stream->context, stream->name, sequence, NULL, NULL);
	*message = (struct fay_message){ 0 };
	if (status == NATS_OK)
		take(got, message);
	return status == NATS_OK || status == NATS_NOT_FOUND;
}

int fay_stream_delete(struct fay_stream *stream, struct fay_error *error)
{
	jsErrCode code = 0;
	natsStatus status = js_DeleteStream(stream->context, stream->name, NULL, &code);
	return status == NATS_OK ? FAY_OK
				 : failed(error, "cannot delete the query's stream", status, code);
}
