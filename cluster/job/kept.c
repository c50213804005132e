/* SPDX-License-Identifier: MIT */
/* Partials that were sent, kept until the root, or the stream that stands for it, has them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fay/clock.h"

#include "job_parts.h"

#define RESEND_BYTES (256u << 10) /* of one tick */
/* at most, once the query has ended: the asking side waits */
#define RESEND_FINAL (5 * SECOND)

static void charge(struct fay_job *job, size_t size)
{
	uint64_t now = fay_monotonic();
	if (!job->limits.bytes_per_second)
		return;
	job->budget_at = job->budget_at > now ? job->budget_at : now;
	job->budget_at += size * SECOND / job->limits.bytes_per_second;
}

void fay_job_send(struct fay_job *job, uint64_t to, const void *bytes, size_t size)
{
	char subject[64];
	snprintf(subject, sizeof(subject), "fay.1.a.%016" PRIx64, to);
	fay_bus_send(job->bus, to ? subject : job->up, bytes, size);
	charge(job, size);
}

void fay_job_send_kept(struct fay_job *job, const struct fay_kept *kept)
{
	char reply[96];
	if (!job->stored) {
		fay_job_send(job, 0, kept->bytes, kept->size);
		return;
	}
	snprintf(reply, sizeof(reply), "%s%" PRIu64, job->reply, kept->sequence);
	fay_bus_send_for_reply(job->bus, job->up, reply, kept->bytes, kept->size);
	charge(job, kept->size);
}

bool fay_job_keep(struct fay_job *job, uint64_t window)
{
	if (job->kept_count == job->kept_room) {
		size_t room = job->kept_room ? 2 * job->kept_room : 64;
		struct fay_kept *grown = realloc(job->kept, room * sizeof(*grown));
		if (!grown)
			return false;
		job->kept = grown;
		job->kept_room = room;
	}
	uint8_t *copy = malloc(job->out.size);
	if (!copy)
		return false;
	memcpy(copy, job->out.bytes, job->out.size);
	job->kept[job->kept_count++] =
		(struct fay_kept){ .sequence = job->sequence,
				   .window = window,
				   .sent = fay_bus_connected(job->bus) ? fay_monotonic() : 0,
				   .bytes = copy,
				   .size = job->out.size };
	job->kept_bytes += job->out.size;
	return true;
}

void fay_job_acknowledge(struct fay_job *job, uint64_t window, uint64_t sequence)
{
	size_t count = 0;
	while (count < job->kept_count &&
	       (job->kept[count].window <= window || job->kept[count].sequence <= sequence)) {
		job->kept_bytes -= job->kept[count].size;
		free(job->kept[count++].bytes);
	}
	if (!count)
		return;
	job->kept_count -= count;
	memmove(job->kept, job->kept + count, job->kept_count * sizeof(*job->kept));
}

/* JSON, with an error or with the name of the stream.
 * Nobody there to store it: an empty one. */
void fay_job_receive_stored(struct fay_job *job)
{
	struct fay_message message;
	while (job->stored && fay_bus_next(job->stored, 0, &message)) {
		const char *number = strrchr(message.subject, '.');
		uint64_t sequence = number ? strtoull(number + 1, NULL, 10) : 0;
		bool stored = message.size &&
			      memmem(message.bytes, message.size, "\"stream\"", 8) &&
			      !memmem(message.bytes, message.size, "\"error\"", 7);
		fay_message_done(&message);
		for (size_t i = 0; stored && i < job->kept_count; i++) {
			if (job->kept[i].sequence != sequence)
				continue;
			job->kept_bytes -= job->kept[i].size;
			free(job->kept[i].bytes);
			job->kept_count--;
			memmove(job->kept + i, job->kept + i + 1,
				(job->kept_count - i) * sizeof(*job->kept));
			job->heard = fay_monotonic();
			break;
		}
	}
}

static uint64_t resend_patience(const struct fay_job *job)
{
	uint64_t patience = SECOND + 4 * job->window; /* FAY_ROOT_SILENCE() is longer */
	return job->final && patience > RESEND_FINAL ? RESEND_FINAL : patience;
}

void fay_job_resend(struct fay_job *job)
{
	uint64_t now = fay_monotonic(), patience = resend_patience(job),
		 connections = fay_bus_connections(job->bus);
	size_t sent = 0;
	if (!fay_bus_connected(job->bus))
		return;
	for (size_t i = 0; connections != job->connections && i < job->kept_count; i++)
		job->kept[i].sent = 0;
	job->connections = connections;
	for (size_t i = 0; i < job->kept_count && i < FAY_LEDGER_AHEAD && sent < RESEND_BYTES;
	     i++) {
		struct fay_kept *kept = &job->kept[i];
		if (kept->sent && now - kept->sent < patience)
			continue;
		fay_job_send_kept(job, kept);
		kept->sent = now;
		sent += kept->size;
		job->resent++;
	}
}
