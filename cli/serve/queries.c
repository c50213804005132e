/* SPDX-License-Identifier: MIT */
/* The processes that trace, and the pictures that come from them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/trace/trace.h"

#include "parts.h"

#define PICTURE_MAX (64u << 20) /* bytes */
#define READ_SIZE (64u << 10)

/* In the new process. */
static int trace(const struct serve *serve, struct serve_query *query, int metrics, int tables)
{
	char prefix[SERVE_NAME_SIZE + 8], name[] = "fay serve",
					  openmetrics[] = "--format=openmetrics",
					  *arguments[80] = { name, openmetrics };
	size_t count = 2;
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	/* A trace that nobody reads any more is over; and there is nobody to answer questions. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(nothing, STDIN_FILENO);
	dup2(nothing, STDOUT_FILENO);
	close(nothing);
	close(serve->socket);
	for (size_t i = 0; i < serve->count; i++) {
		if (serve->queries[i].metrics.fd >= 0)
			close(serve->queries[i].metrics.fd);
		if (serve->queries[i].tables.fd >= 0)
			close(serve->queries[i].tables.fd);
	}
	for (size_t i = 0; i < serve->option_count; i++)
		arguments[count++] = serve->options[i];
	arguments[count++] = query->text;
	snprintf(prefix, sizeof(prefix), "fay_%s", query->name);
	const struct fay_trace_feed feed = { prefix, fdopen(metrics, "w"), fdopen(tables, "w") };
	return feed.metrics && feed.tables ? fay_trace_feed((int)count, arguments, &feed)
					   : FAY_E_INTERNAL;
}

static int open_feed(struct serve_feed *feed, const char *mark, int *end, struct fay_error *error)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return fay_error_set(error, FAY_E_INTERNAL, "no pipe: %s", strerror(errno));
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	feed->fd = ends[0];
	feed->mark = mark;
	*end = ends[1];
	return FAY_OK;
}

int serve_query_start(struct serve *serve, struct serve_query *query, struct fay_error *error)
{
	int metrics = -1, tables = -1;
	if (open_feed(&query->metrics, "\n# EOF\n", &metrics, error))
		return error->code;
	if (open_feed(&query->tables, "\f", &tables, error)) {
		close(metrics);
		return error->code;
	}
	fflush(NULL);
	query->pid = fork();
	if (!query->pid)
		exit(trace(serve, query, metrics, tables));
	int why = errno;
	close(metrics);
	close(tables);
	if (query->pid > 0)
		return FAY_OK;
	query->pid = 0;
	return fay_error_set(error, FAY_E_INTERNAL, "no process: %s", strerror(why));
}

static void close_feed(struct serve_feed *feed)
{
	close(feed->fd);
	feed->fd = -1;
}

/* The last picture that is whole, of those in the text. */
static bool take_pictures(struct serve_feed *feed)
{
	size_t length = strlen(feed->mark);
	bool taken = false;
	for (char *end; (end = memmem(feed->text, feed->size, feed->mark, length)); taken = true) {
		size_t used = (size_t)(end - feed->text) + length;
		free(feed->picture);
		feed->picture_size = (size_t)(end - feed->text);
		feed->picture = strndup(feed->text, feed->picture_size);
		memmove(feed->text, feed->text + used, feed->size - used);
		feed->size -= used;
	}
	return taken;
}

/* What is there by now; whether a picture was among it. */
static bool read_feed(struct serve_feed *feed, const char *name)
{
	ssize_t got = 1;
	while (feed->fd >= 0 && got > 0) {
		if (feed->room - feed->size < READ_SIZE) {
			size_t room = feed->room * 2 + READ_SIZE;
			char *text = room <= PICTURE_MAX ? realloc(feed->text, room) : NULL;
			if (!text) {
				fprintf(stderr, "fay serve: a result of '%s' is too large\n", name);
				close_feed(feed);
				return false;
			}
			feed->text = text;
			feed->room = room;
		}
		got = read(feed->fd, feed->text + feed->size, READ_SIZE);
		feed->size += got > 0 ? (size_t)got : 0;
	}
	if (feed->fd >= 0 && (!got || (errno != EAGAIN && errno != EINTR)))
		close_feed(feed);
	return feed->text && take_pictures(feed);
}

bool serve_query_look(struct serve_query *query)
{
	bool tables = read_feed(&query->tables, query->name),
	     metrics = read_feed(&query->metrics, query->name), running = query->pid != 0;
	int status;
	if (metrics) {
		struct timespec now;
		clock_gettime(CLOCK_REALTIME, &now);
		query->updated = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	}
	/* Its last picture has come once the pipe is at its end. */
	if (running && query->metrics.fd < 0 && waitpid(query->pid, &status, WNOHANG) > 0) {
		query->pid = 0;
		query->code = WIFEXITED(status) ? WEXITSTATUS(status) : FAY_E_INTERNAL;
	}
	return tables || metrics || running != (query->pid != 0);
}

void serve_query_end(struct serve_query *query)
{
	if (query->pid)
		kill(query->pid, SIGTERM);
}
