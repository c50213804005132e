/* SPDX-License-Identifier: MIT */
/*
 * The last pictures over HTTP: /metrics for Prometheus, / for people. A page has no script and
 * loads nothing; it asks again by itself.
 *
 * Connections are few, and each ends if nothing moves on it for ten seconds: who asks and does not
 * read the answer costs the answer's memory, once for all that ask for it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cli/output/output.h"

#include "parts.h"

#define CONNECTIONS 32u
#define PATIENCE 10u /* s */
#define TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define TYPE_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define REALM "Basic realm=\"fay\", charset=\"UTF-8\""

enum answer { OPENMETRICS, TEXT, PAGE, ANSWERS };

struct serve_http {
	const struct serve *serve;
	struct MHD_Daemon *daemon;
	struct MHD_Response *answers[ANSWERS]; /* of the pictures there are; NULL: not made yet */
};

/* --- answers --- */

/* The format before OpenMetrics: a counter's name has its _total, and there are no units. */
static void put_as_text(FILE *out, const char *metrics)
{
	char counter[1024] = "";
	for (const char *line = metrics, *next; *line; line = next) {
		next = strchrnul(line, '\n');
		next += *next == '\n';
		size_t length = (size_t)(next - line), name = 0;
		if (!strncmp(line, "# TYPE ", 7) || !strncmp(line, "# HELP ", 7))
			name = strcspn(line + 7, " ");
		if (!strncmp(line, "# TYPE ", 7) && !strncmp(line + 7 + name, " counter", 8))
			snprintf(counter, sizeof(counter), "%.*s", (int)name, line + 7);
		if (!strncmp(line, "# UNIT ", 7))
			continue;
		if (name && strlen(counter) == name && !strncmp(counter, line + 7, name))
			fprintf(out, "%.7s%s_total%.*s", line, counter, (int)(length - 7 - name),
				line + 7 + name);
		else
			fwrite(line, length, 1, out);
	}
}

static void put_metrics(FILE *out, const struct serve *serve, bool text)
{
	for (size_t i = 0; i < serve->count; i++) {
		const struct serve_query *query = &serve->queries[i];
		if (!query->metrics.picture)
			continue;
		if (text)
			put_as_text(out, query->metrics.picture);
		else
			fputs(query->metrics.picture, out);
		fputc('\n', out);
	}
	fputs("# TYPE fay_query_running gauge\n"
	      "# HELP fay_query_running Whether the query still traces\n",
	      out);
	for (size_t i = 0; i < serve->count; i++)
		fprintf(out, "fay_query_running{query=\"%s\"} %d\n", serve->queries[i].name,
			serve->queries[i].pid != 0);
	fputs("# TYPE fay_query_updated_timestamp_seconds gauge\n", out);
	fputs(text ? "" : "# UNIT fay_query_updated_timestamp_seconds seconds\n", out);
	fputs("# HELP fay_query_updated_timestamp_seconds When its last result was made\n", out);
	for (size_t i = 0; i < serve->count; i++)
		if (serve->queries[i].updated > 0)
			fprintf(out, "fay_query_updated_timestamp_seconds{query=\"%s\"} %.3f\n",
				serve->queries[i].name, serve->queries[i].updated);
	fputs(text ? "" : "# EOF\n", out);
}

static void put_page(FILE *out, const struct serve *serve)
{
	fputs("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
	      "<meta name=\"viewport\" content=\"width=device-width\">"
	      "<meta http-equiv=\"refresh\" content=\"2\"><title>fay serve</title><style>"
	      ":root { color-scheme: light dark; font: 15px/1.4 sans-serif }"
	      "body { margin: 1rem auto; max-width: 70rem; padding: 0 1rem }"
	      "pre { overflow-x: auto; font: 13px/1.3 monospace } h2 { margin-top: 2rem }"
	      "</style><h1>Queries</h1><p><a href=\"/metrics\">/metrics</a></p>\n",
	      out);
	for (size_t i = 0; i < serve->count; i++) {
		const struct serve_query *query = &serve->queries[i];
		time_t when = (time_t)query->updated;
		char text[64] = "no result yet";
		struct tm tm;
		if (when && localtime_r(&when, &tm))
			strftime(text, sizeof(text), "%F %T", &tm);
		fprintf(out, "<h2>%s</h2><pre>", query->name);
		fay_write_html(out, query->text);
		fprintf(out, "</pre><p>%s, %s</p><pre>", query->pid ? "running" : "ended", text);
		fay_write_html(out, query->tables.picture ? query->tables.picture : "");
		fputs("</pre>\n", out);
	}
	fputs("</html>\n", out);
}

static struct MHD_Response *make(const struct serve *serve, enum answer answer)
{
	static const char *const types[] = { TYPE_OPENMETRICS, TYPE_TEXT, "text/html" };
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	if (answer == PAGE)
		put_page(out, serve);
	else
		put_metrics(out, serve, answer == TEXT);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	struct MHD_Response *made =
		MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
	if (!made) {
		free(text);
		return NULL;
	}
	MHD_add_response_header(made, "Content-Type", types[answer]);
	MHD_add_response_header(made, "Cache-Control", "no-store");
	MHD_add_response_header(made, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(made, "Content-Security-Policy",
				"default-src 'none'; style-src 'unsafe-inline'");
	return made;
}

/* --- requests --- */

/* In a time that does not tell how much of it is right. */
static bool is_token(const struct serve *serve, const char *given)
{
	size_t size = strlen(serve->token), length = strlen(given);
	unsigned char differs = size != length;
	for (size_t i = 0; i < size; i++)
		differs |= (unsigned char)(serve->token[i] ^ given[i < length ? i : length]);
	return !differs;
}

/* By a bearer's token, or, since browsers ask for one, as a password. */
static bool is_allowed(const struct serve *serve, struct MHD_Connection *connection)
{
	const char *given =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization");
	if (!serve->token)
		return true;
	if (given && !strncmp(given, "Bearer ", 7))
		return is_token(serve, given + 7);
	char *password = NULL, *user = MHD_basic_auth_get_username_password(connection, &password);
	bool allowed = password && is_token(serve, password);
	MHD_free(user);
	MHD_free(password);
	return allowed;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status)
{
	char text[64];
	int size =
		snprintf(text, sizeof(text), "%u %s\n", status, MHD_get_reason_phrase_for(status));
	struct MHD_Response *response =
		MHD_create_response_from_buffer((size_t)size, text, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	if (status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, "WWW-Authenticate", REALM);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	enum MHD_Result result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **request)
{
	struct serve_http *http = context;
	const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept");
	bool openmetrics = accept && strstr(accept, "application/openmetrics-text");
	if (!is_allowed(http->serve, connection))
		return refuse(connection, MHD_HTTP_UNAUTHORIZED);
	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED);
	if (strcmp(url, "/") && strcmp(url, "/metrics"))
		return refuse(connection, MHD_HTTP_NOT_FOUND);
	enum answer which = !strcmp(url, "/") ? PAGE : openmetrics ? OPENMETRICS : TEXT;
	if (!http->answers[which])
		http->answers[which] = make(http->serve, which);
	if (!http->answers[which])
		return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR);
	return MHD_queue_response(connection, MHD_HTTP_OK, http->answers[which]);
}

/* --- life --- */

/* HOST:PORT, where a host with colons is in brackets; without one it is this machine alone. */
static struct addrinfo *address_of(const char *listen)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *found = NULL;
	const char *colon = strrchr(listen, ':');
	char host[256];
	size_t length = colon ? (size_t)(colon - listen) : 0;
	if (!colon || !colon[1] || length >= sizeof(host))
		return NULL;
	memcpy(host, listen, length);
	host[length] = 0;
	if (*host == '[' && length > 2 && host[length - 1] == ']') {
		host[length - 1] = 0;
		memmove(host, host + 1, length - 1);
	}
	/* which takes the rest of a port that is too large */
	if (strspn(colon + 1, "0123456789") != strlen(colon + 1) || strlen(colon + 1) > 5 ||
	    atoi(colon + 1) > UINT16_MAX)
		return NULL;
	return getaddrinfo(*host ? host : "127.0.0.1", colon + 1, &hints, &found) ? NULL : found;
}

static bool is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

int serve_http_listen(struct serve *serve, struct fay_error *error)
{
	struct addrinfo *found = address_of(serve->listen);
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	char host[80], port[8];
	int yes = 1;
	if (!found)
		return fay_error_set(error, FAY_E_USAGE,
				     "--listen takes ADDRESS:PORT, such as 127.0.0.1:9464, not "
				     "'%s'",
				     serve->listen);
	serve->loopback = is_loopback(found->ai_addr);
	serve->socket = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(serve->socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	int failed = serve->socket < 0 || bind(serve->socket, found->ai_addr, found->ai_addrlen) ||
		     listen(serve->socket, CONNECTIONS) ||
		     getsockname(serve->socket, (struct sockaddr *)&address, &size);
	int why = errno;
	freeaddrinfo(found);
	if (failed)
		return fay_error_set(error, FAY_E_REFUSED, "cannot listen at %s: %s%s",
				     serve->listen, strerror(why),
				     why == EADDRINUSE ? "; --listen takes another port" : "");
	getnameinfo((struct sockaddr *)&address, size, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(serve->address, sizeof(serve->address), strchr(host, ':') ? "[%s]:%s" : "%s:%s",
		 host, port);
	return FAY_OK;
}

int serve_http_open(struct serve *serve, struct serve_http **http, struct fay_error *error)
{
	struct MHD_OptionItem tls[] = { { MHD_OPTION_HTTPS_MEM_CERT, 0, serve->certificate },
					{ MHD_OPTION_HTTPS_MEM_KEY, 0, serve->key },
					{ MHD_OPTION_END, 0, NULL } };
	struct serve_http *made = calloc(1, sizeof(*made));
	if (!made)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	made->serve = serve;
	made->daemon = MHD_start_daemon(MHD_USE_EPOLL | (serve->certificate ? MHD_USE_TLS : 0), 0,
					NULL, NULL, answer, made, MHD_OPTION_LISTEN_SOCKET,
					serve->socket, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
					MHD_OPTION_CONNECTION_TIMEOUT, PATIENCE, MHD_OPTION_ARRAY,
					serve->certificate ? tls : tls + 2, MHD_OPTION_END);
	if (!made->daemon) {
		free(made);
		return fay_error_set(error, FAY_E_REFUSED,
				     serve->certificate
					     ? "cannot serve with this certificate and key"
					     : "cannot serve");
	}
	*http = made;
	return FAY_OK;
}

int serve_http_descriptor(struct serve_http *http, int *timeout)
{
	MHD_UNSIGNED_LONG_LONG ms;
	*timeout =
		MHD_get_timeout(http->daemon, &ms) == MHD_YES ? (int)(ms < 1000 ? ms : 1000) : -1;
	return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

void serve_http_answer(struct serve_http *http)
{
	MHD_run(http->daemon);
}

void serve_http_changed(struct serve_http *http)
{
	for (unsigned i = 0; i < ANSWERS; i++) {
		if (http->answers[i])
			MHD_destroy_response(http->answers[i]);
		http->answers[i] = NULL;
	}
}

void serve_http_close(struct serve_http *http)
{
	if (!http)
		return;
	serve_http_changed(http);
	MHD_stop_daemon(http->daemon);
	free(http);
}
