/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of `fay serve`: serve.c (the command), queries.c (a process for each query),
 * http.c (who asks for results).
 *
 * Each query is traced by a process of its own, which writes pictures of its result into pipes.
 * This one keeps the last whole picture and answers from it. It never waits for who asks, and so
 * never keeps who traces waiting.
 */
#ifndef FAY_CLI_SERVE_PARTS_H
#define FAY_CLI_SERVE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "fay/error.h"

#define SERVE_QUERIES_MAX 64u
#define SERVE_NAME_SIZE 64u

/* The last whole picture of those that come out of a pipe. */
struct serve_feed {
	int fd;           /* -1: nothing more comes */
	const char *mark; /* behind each picture */
	char *text;       /* by now, of the one that is coming */
	size_t size, room;
	char *picture; /* NULL: none has come */
	size_t picture_size;
};

struct serve_query {
	char name[SERVE_NAME_SIZE]; /* of its metrics: fay_NAME_COLUMN */
	char *text;
	pid_t pid;      /* 0: it has ended */
	int code;       /* its exit code then */
	double updated; /* when its last picture came, s since the epoch; 0: never */
	struct serve_feed metrics, tables;
};

struct serve {
	struct serve_query queries[SERVE_QUERIES_MAX];
	size_t count;
	char *options[64]; /* of each trace, NULL behind the last */
	size_t option_count;
	const char *listen, *token_file, *certificate_file, *key_file;
	int socket;
	char address[128]; /* that it listens at */
	bool loopback;
	char *token, *certificate, *key; /* what is in these files; NULL: not given */
};

/* --- queries.c --- */

int serve_query_start(struct serve *serve, struct serve_query *query, struct fay_error *error);
/* Takes what has come, and notices its end; whether there is a new picture or it has ended. */
bool serve_query_look(struct serve_query *query);
void serve_query_end(struct serve_query *query);

/* --- http.c --- */

struct serve_http;
/* serve->socket, at serve->listen. */
int serve_http_listen(struct serve *serve, struct fay_error *error);
int serve_http_open(struct serve *serve, struct serve_http **http, struct fay_error *error);
/* To be waited for, no longer than so many ms; -1: as long as one likes. */
int serve_http_descriptor(struct serve_http *http, int *timeout);
void serve_http_answer(struct serve_http *http);
/* There are new pictures. */
void serve_http_changed(struct serve_http *http);
void serve_http_close(struct serve_http *http);

#endif
