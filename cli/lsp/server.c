/* SPDX-License-Identifier: MIT */
/*
 * `fay lsp`: a language server for query files, by LSP 3.17 on standard input and output. One
 * message is answered after the other; a document is checked when no further message waits, so that
 * who types is not behind what was typed.
 *
 * What a client sends is not believed: a message that is no JSON or no request is answered by the
 * error that JSON-RPC has for it, and one whose end cannot be known ends the server.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/options/options.h"
#include "process/process.h"

#include "lsp.h"
#include "parts.h"

enum { /* of JSON-RPC and LSP */
       PARSE_ERROR = -32700,
       INVALID_REQUEST = -32600,
       METHOD_NOT_FOUND = -32601,
       INVALID_PARAMS = -32602,
       NOT_INITIALIZED = -32002,
};

#define ID_MAX 256u /* bytes of a request's name */

struct server {
	struct fay_lsp_stream stream;
	struct fay_lsp_target target;
	struct fay_lsp_documents documents;
	bool initialized, shut_down, over;
};

/* What is spoken of: a request or a notification. */
struct message {
	struct fay_json json;
	const struct fay_json_value *method, *params;
	char id[ID_MAX + 1]; /* as it stands in the message; "": a notification */
};

/* --- answers --- */

struct answer {
	FILE *out;
	char *text;
	size_t size;
};

static FILE *answer_begin(struct answer *answer)
{
	*answer = (struct answer){ 0 };
	answer->out = open_memstream(&answer->text, &answer->size);
	if (!answer->out) {
		fputs("fay lsp: out of memory\n", stderr);
		exit(FAY_E_LIMIT);
	}
	fputs("{\"jsonrpc\":\"2.0\",", answer->out);
	return answer->out;
}

static void answer_send(struct server *server, struct answer *answer)
{
	fputs("}", answer->out);
	if (!fclose(answer->out))
		fay_lsp_write(&server->stream, answer->text, answer->size);
	free(answer->text);
}

static void refuse(struct server *server, const char *id, int code, const char *why)
{
	struct answer answer;
	FILE *out = answer_begin(&answer);
	fprintf(out, "\"id\":%s,\"error\":{\"code\":%d,\"message\":", *id ? id : "null", code);
	fay_json_string(out, why, strlen(why));
	fputs("}", out);
	answer_send(server, &answer);
}

/* For the user's log. */
static void complain(struct server *server, const char *why)
{
	struct answer answer;
	FILE *out = answer_begin(&answer);
	fputs("\"method\":\"window/logMessage\",\"params\":{\"type\":2,\"message\":", out);
	fay_json_string(out, why, strlen(why));
	fputs("}", out);
	answer_send(server, &answer);
}

static void publish(struct server *server, const struct fay_lsp_document *document, bool closed)
{
	struct answer answer;
	FILE *out = answer_begin(&answer);
	fputs("\"method\":\"textDocument/publishDiagnostics\",\"params\":{\"uri\":", out);
	fay_json_string(out, document->uri, strlen(document->uri));
	fputs(",\"diagnostics\":", out);
	if (closed)
		fputs("[]", out);
	else
		fay_lsp_put_diagnostics(out, &server->target, document);
	fputs("}", out);
	answer_send(server, &answer);
}

static void check_all(struct server *server)
{
	for (size_t i = 0; i < server->documents.count; i++) {
		struct fay_lsp_document *document = server->documents.items[i];
		if (document->dirty)
			publish(server, document, false);
		document->dirty = false;
	}
}

/* --- notifications --- */

/* The URI of params.textDocument, malloc'ed; NULL: there is none. */
static char *uri_of(const struct message *message)
{
	const struct fay_json *json = &message->json;
	size_t size;
	char *uri = fay_json_bytes(
		json,
		fay_json_member(json, fay_json_member(json, message->params, "textDocument"),
				"uri"),
		&size);
	if (uri && (size > FAY_LSP_URI_MAX || strlen(uri) != size)) {
		free(uri);
		uri = NULL;
	}
	return uri;
}

static struct fay_lsp_document *document_of(struct server *server, const struct message *message)
{
	char *uri = uri_of(message);
	struct fay_lsp_document *document =
		uri ? fay_lsp_document_find(&server->documents, uri) : NULL;
	free(uri);
	return document;
}

static void put_text(struct server *server, const struct message *message,
		     const struct fay_json_value *string)
{
	size_t size = 0;
	char *uri = uri_of(message), *text = fay_json_bytes(&message->json, string, &size);
	if (!uri || !text) {
		complain(server, "a file without URI or text was left out");
		free(uri);
		free(text);
	} else if (!fay_lsp_document_put(&server->documents, uri, text, size)) {
		complain(server, "more than 256 files are open: this one is not checked");
	}
}

static void did_open(struct server *server, const struct message *message)
{
	const struct fay_json *json = &message->json;
	put_text(server, message,
		 fay_json_member(json, fay_json_member(json, message->params, "textDocument"),
				 "text"));
}

static void did_change(struct server *server, const struct message *message)
{
	const struct fay_json *json = &message->json;
	const struct fay_json_value *changes =
		fay_json_member(json, message->params, "contentChanges");
	const struct fay_json_value *last = NULL;
	if (!document_of(server, message)) {
		complain(server, "a file that is not open was changed");
		return;
	}
	if (changes && changes->kind == JSON_ARRAY)
		for (const struct fay_json_value *at = changes + 1;
		     at < json->values + changes->next; at = json->values + at->next)
			last = at;
	if (fay_json_member(json, last, "range"))
		complain(server, "a change of a part was left out: the whole text is asked for");
	else if (last)
		put_text(server, message, fay_json_member(json, last, "text"));
}

static void did_close(struct server *server, const struct message *message)
{
	struct fay_lsp_document *document = document_of(server, message);
	if (!document)
		return;
	publish(server, document, true);
	fay_lsp_document_remove(&server->documents, document);
}

static void leave(struct server *server, const struct message *message)
{
	(void)message;
	server->over = true;
}

/* --- requests --- */

static void put_initialize(FILE *out)
{
	fputs("{\"capabilities\":{\"positionEncoding\":\"utf-16\","
	      "\"textDocumentSync\":{\"openClose\":true,\"change\":1},"
	      "\"completionProvider\":{\"triggerCharacters\":[\".\",\"\\\"\",\"!\"]},"
	      "\"hoverProvider\":true,\"definitionProvider\":true},"
	      "\"serverInfo\":{\"name\":\"fay\",\"version\":\"" FAY_VERSION "\"}}",
	      out);
}

/* The byte that params.position says. */
static bool read_position(const struct message *message, const struct fay_lsp_document *document,
			  size_t *at)
{
	const struct fay_json *json = &message->json;
	const struct fay_json_value *position = fay_json_member(json, message->params, "position");
	uint32_t line, column;
	if (!fay_json_count(json, fay_json_member(json, position, "line"), &line) ||
	    !fay_json_count(json, fay_json_member(json, position, "character"), &column))
		return false;
	*at = fay_lsp_offset(document, line, column);
	return true;
}

enum asked { COMPLETION, HOVER, DEFINITION };

static void answer_at(struct server *server, const struct message *message, enum asked asked)
{
	struct fay_lsp_document *document = document_of(server, message);
	struct answer answer;
	size_t at;
	if (!document) {
		refuse(server, message->id, INVALID_PARAMS, "no open file has this URI");
		return;
	}
	if (!read_position(message, document, &at)) {
		refuse(server, message->id, INVALID_PARAMS, "a position is missing");
		return;
	}
	FILE *out = answer_begin(&answer);
	fprintf(out, "\"id\":%s,\"result\":", message->id);
	if (asked == DEFINITION)
		fay_lsp_put_definition(out, document, at);
	else if (asked == COMPLETION)
		fay_lsp_put_completion(out, &server->target, document, at);
	else
		fay_lsp_put_hover(out, &server->target, document, at);
	answer_send(server, &answer);
}

static void complete(struct server *server, const struct message *message)
{
	answer_at(server, message, COMPLETION);
}

static void hover(struct server *server, const struct message *message)
{
	answer_at(server, message, HOVER);
}

static void define(struct server *server, const struct message *message)
{
	answer_at(server, message, DEFINITION);
}

static void initialize(struct server *server, const struct message *message)
{
	struct answer answer;
	if (server->initialized) {
		refuse(server, message->id, INVALID_REQUEST, "initialize may come once");
		return;
	}
	server->initialized = true;
	FILE *out = answer_begin(&answer);
	fprintf(out, "\"id\":%s,\"result\":", message->id);
	put_initialize(out);
	answer_send(server, &answer);
}

static void shut_down(struct server *server, const struct message *message)
{
	struct answer answer;
	check_all(server);
	server->shut_down = true;
	fprintf(answer_begin(&answer), "\"id\":%s,\"result\":null", message->id);
	answer_send(server, &answer);
}

/* --- messages --- */

static const struct method {
	const char *name;
	bool request;
	void (*answer)(struct server *server, const struct message *message);
} methods[] = {
	{ "initialize", true, initialize },
	{ "shutdown", true, shut_down },
	{ "textDocument/completion", true, complete },
	{ "textDocument/hover", true, hover },
	{ "textDocument/definition", true, define },
	{ "exit", false, leave },
	{ "textDocument/didOpen", false, did_open },
	{ "textDocument/didChange", false, did_change },
	{ "textDocument/didClose", false, did_close },
};

static const struct method *find_method(const struct message *message)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (fay_json_is(&message->json, message->method, methods[i].name))
			return &methods[i];
	return NULL;
}

/* Its parts; false: it is no message of JSON-RPC. One without a method answers a request, of which
 * there are none. */
static bool read_message(struct message *message)
{
	const struct fay_json *json = &message->json;
	const struct fay_json_value *id = fay_json_member(json, json->values, "id");
	message->method = fay_json_member(json, json->values, "method");
	message->params = fay_json_member(json, json->values, "params");
	if (id) {
		size_t quote = id->kind == JSON_STRING, length = id->end - id->begin + 2 * quote;
		if ((!quote && id->kind != JSON_NUMBER) || length > ID_MAX)
			return false;
		memcpy(message->id, json->text + id->begin - quote, length);
	}
	return fay_json_is(json, fay_json_member(json, json->values, "jsonrpc"), "2.0") &&
	       (message->method ? message->method->kind == JSON_STRING : id != NULL);
}

static void dispatch(struct server *server, const struct message *message)
{
	const struct method *method = find_method(message);
	bool is_request = *message->id;
	if (!message->method)
		return;
	if (method && method->answer == leave)
		leave(server, message);
	else if (!server->initialized && !(method && method->answer == initialize)) {
		if (is_request)
			refuse(server, message->id, NOT_INITIALIZED, "initialize comes first");
	} else if (server->shut_down) {
		if (is_request)
			refuse(server, message->id, INVALID_REQUEST, "after shutdown");
	} else if (method && method->request == is_request) {
		method->answer(server, message);
	} else if (is_request) {
		refuse(server, message->id, method ? INVALID_REQUEST : METHOD_NOT_FOUND,
		       method ? "a notification has no id" : "there is no such method here");
	} else if (method) {
		refuse(server, "", INVALID_REQUEST, "a request has an id");
	}
}

static void take(struct server *server, const char *text, size_t size)
{
	struct message message = { 0 };
	if (!fay_json_parse(&message.json, text, size))
		refuse(server, "", PARSE_ERROR,
		       "no JSON, or more than 64 levels or 262144 values of it");
	else if (!read_message(&message))
		refuse(server, "", INVALID_REQUEST, "no message of JSON-RPC 2.0");
	else
		dispatch(server, &message);
	fay_json_deinit(&message.json);
}

static int serve(struct server *server)
{
	const char *text, *why;
	size_t size;
	enum fay_lsp_read read = LSP_END;
	while (!server->over && !server->stream.failed &&
	       (read = fay_lsp_read(&server->stream, &text, &size, &why)) == LSP_MESSAGE) {
		take(server, text, size);
		if (!server->over && !fay_lsp_is_waiting(&server->stream))
			check_all(server);
	}
	while (server->documents.count)
		fay_lsp_document_remove(&server->documents, server->documents.items[0]);
	free(server->stream.bytes);
	if (read == LSP_BROKEN) {
		refuse(server, "", PARSE_ERROR, why);
		fprintf(stderr, "fay lsp: the client sent %s\n", why);
		return FAY_E_USAGE;
	}
	return server->over && server->shut_down ? FAY_OK : FAY_E_REFUSED;
}

/* What else would write to standard output, or read from standard input, is not to disturb the
 * messages. */
static bool take_streams(struct fay_lsp_stream *stream)
{
	int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
	stream->in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	stream->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	bool fine = none >= 0 && stream->in >= 0 && stream->out >= 0 &&
		    dup2(none, STDIN_FILENO) >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
	if (none > STDERR_FILENO)
		close(none);
	return fine;
}

static const char usage[] =
	"usage: fay lsp [-p PID | --comm NAME] [--extend]\n"
	"  a language server for query files (.linq) on standard input and output:\n"
	"  mistakes, completion, and what words, expressions and queries mean. Editors\n"
	"  start it.\n"
	"  -p, --comm: functions and arguments are known as in these processes\n"
	"  --extend: C files that queries name are compiled, to know their functions\n";

int fay_lsp_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "pid", required_argument, NULL, 'p' }, { "comm", required_argument, NULL, 'c' },
		{ "extend", no_argument, NULL, 'e' },    { "stdio", no_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },      { 0 }
	};
	struct server server = { .target.comm = "" };
	int option;
	char *end;
	optind = 1;
	while ((option = fay_cli_getopt(argc, argv, "p:h", options)) != -1) {
		if (option == 'h' || option == '?') {
			fputs(usage, option == 'h' ? stdout : stderr);
			return option == 'h' ? FAY_OK : FAY_E_USAGE;
		}
		if (option == 'c')
			server.target.comm = optarg;
		server.target.extend |= option == 'e';
		if (option != 'p')
			continue;
		server.target.pid = (pid_t)strtol(optarg, &end, 10);
		if (server.target.pid <= 0 || *end || !fay_process_of_thread(server.target.pid)) {
			fprintf(stderr, "fay: there is no process %s\n", optarg);
			return FAY_E_REFUSED;
		}
	}
	if (optind != argc || (*server.target.comm && server.target.pid)) {
		fputs(usage, stderr);
		return FAY_E_USAGE;
	}
	signal(SIGPIPE, SIG_IGN);
	if (!take_streams(&server.stream)) {
		fprintf(stderr, "fay lsp: standard input and output are needed: %m\n");
		return FAY_E_INTERNAL;
	}
	return serve(&server);
}
