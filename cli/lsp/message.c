/* SPDX-License-Identifier: MIT */
/* Messages as LSP frames them: header lines, of which Content-Length counts, an empty one, JSON. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "parts.h"

#define CHUNK 65536u

/* Reads on until so many bytes are there; false: they do not come, or memory is short. */
static bool fill(struct fay_lsp_stream *stream, size_t wanted)
{
	if (stream->begin) {
		memmove(stream->bytes, stream->bytes + stream->begin, stream->used - stream->begin);
		stream->used -= stream->begin;
		stream->begin = 0;
	}
	while (stream->used < wanted) {
		/* grows with what has come, not with what was announced */
		if (stream->room - stream->used < CHUNK) {
			size_t room = 2 * stream->room + CHUNK;
			char *bytes = realloc(stream->bytes, room);
			if (!bytes)
				return false;
			stream->bytes = bytes;
			stream->room = room;
		}
		ssize_t got =
			read(stream->in, stream->bytes + stream->used, stream->room - stream->used);
		if (got > 0)
			stream->used += (size_t)got;
		else if (!got || errno != EINTR)
			return false;
	}
	return true;
}

/* The header's bytes with its empty line; 0: there is none yet. */
static size_t header_size(const struct fay_lsp_stream *stream)
{
	size_t left = stream->used - stream->begin;
	const char *begin = stream->bytes + stream->begin;
	const char *end = left ? memmem(begin, left, "\r\n\r\n", 4) : NULL;
	return end ? (size_t)(end - begin) + 4 : 0;
}

/* The header's length of what follows; false: it says none. */
static bool read_length(const char *header, size_t size, uint64_t *length)
{
	static const char name[] = "Content-Length:";
	bool found = false;
	for (const char *line = header, *end; line < header + size; line = end + 2) {
		end = memmem(line, (size_t)(header + size - line), "\r\n", 2);
		if (strncasecmp(line, name, strlen(name)) != 0)
			continue;
		const char *at = line + strlen(name);
		while (*at == ' ' || *at == '\t')
			at++;
		if (found || at == end || end - at > 18)
			return false;
		for (*length = 0; at < end; at++) {
			if (*at < '0' || *at > '9')
				return false;
			*length = *length * 10 + (uint64_t)(*at - '0');
		}
		found = true;
	}
	return found;
}

enum fay_lsp_read fay_lsp_read(struct fay_lsp_stream *stream, const char **text, size_t *size,
			       const char **why)
{
	size_t header;
	uint64_t length;
	while (!(header = header_size(stream))) {
		size_t left = stream->used - stream->begin;
		*why = "a header of more than 4096 bytes";
		if (left > FAY_LSP_HEADER_MAX)
			return LSP_BROKEN;
		*why = "the end of the input within a header";
		if (!fill(stream, left + 1))
			return left ? LSP_BROKEN : LSP_END;
	}
	*why = "a header of more than 4096 bytes";
	if (header > FAY_LSP_HEADER_MAX)
		return LSP_BROKEN;
	*why = "a header without one Content-Length";
	if (!read_length(stream->bytes + stream->begin, header, &length))
		return LSP_BROKEN;
	*why = "a message of more than 32 MiB";
	if (length > FAY_LSP_MESSAGE_MAX)
		return LSP_BROKEN;
	*why = "the end of the input within a message";
	if (stream->used - stream->begin < header + length && !fill(stream, header + length))
		return LSP_BROKEN;
	*text = stream->bytes + stream->begin + header;
	*size = length;
	stream->begin += header + length;
	return LSP_MESSAGE;
}

bool fay_lsp_is_waiting(const struct fay_lsp_stream *stream)
{
	struct pollfd in = { .fd = stream->in, .events = POLLIN };
	return stream->begin < stream->used || (poll(&in, 1, 0) > 0 && (in.revents & POLLIN));
}

static void write_all(struct fay_lsp_stream *stream, const char *bytes, size_t size)
{
	while (size && !stream->failed) {
		ssize_t written = write(stream->out, bytes, size);
		if (written > 0) {
			bytes += written;
			size -= (size_t)written;
		} else if (errno != EINTR) {
			stream->failed = true;
		}
	}
}

void fay_lsp_write(struct fay_lsp_stream *stream, const char *text, size_t size)
{
	char header[64];
	int length = snprintf(header, sizeof(header), "Content-Length: %zu\r\n\r\n", size);
	write_all(stream, header, (size_t)length);
	write_all(stream, text, size);
}
