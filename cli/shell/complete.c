/* SPDX-License-Identifier: MIT */
/*
 * What the word at the cursor can become.
 *
 * Within a query the checker says: the word is replaced by one that means nothing, the query is
 * brought to an end, and the names among which "did you mean" would look are those that may stand
 * there. So completion knows what queries know, arguments by name and members of structures
 * included. Within a string it is what the source before it names: functions of the target, system
 * calls and so on.
 */
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/queries/queries.h"
#include "fay/bpf.h"
#include "fay/clock.h"
#include "fay/query.h"

#include "parts.h"

#define MARK "_fay_completes"
#define BRACKETS 64u
#define TRACEPOINTS_MAX 8192u

void fay_completion_add(struct fay_completion *completion, const char *name, const char *prefix)
{
	if (strncmp(name, prefix, strlen(prefix)))
		return;
	if (completion->count == completion->room) {
		size_t room = completion->room ? 2 * completion->room : 64;
		char **names = realloc(completion->names, room * sizeof(*names));
		if (!names)
			return;
		completion->names = names;
		completion->room = room;
	}
	char *copy = strdup(name);
	if (!copy)
		return;
	fay_printable(copy);
	completion->names[completion->count++] = copy;
}

void fay_completion_deinit(struct fay_completion *completion)
{
	for (size_t i = 0; i < completion->count; i++)
		free(completion->names[i]);
	free(completion->names);
	*completion = (struct fay_completion){ 0 };
}

/* --- what the cursor stands in --- */

struct place {
	const char *string;  /* behind its quote; NULL: the cursor is in none */
	char open[BRACKETS]; /* brackets, the innermost last */
	size_t depth;
	bool comment;
};

static const char *end_of_string(const char *at)
{
	while (*at && *at != '"')
		at += *at == '\\' && at[1] ? 2 : 1;
	return at;
}

static const char *end_of_comment(const char *at)
{
	const char *end = at[1] == '*' ? strstr(at + 2, "*/") : strchr(at, '\n');
	return end ? end + (at[1] == '*' ? 2 : 1) : NULL;
}

static struct place find_place(const char *text)
{
	struct place place = { 0 };
	for (const char *at = text; *at; at++) {
		if (*at == '/' && (at[1] == '/' || at[1] == '*')) {
			at = end_of_comment(at);
			place.comment = !at;
			if (!at)
				break;
			at--;
		} else if (*at == '"') {
			place.string = at + 1;
			at = end_of_string(at + 1);
			if (!*at)
				break;
			place.string = NULL;
		} else if (strchr("([{", *at) && place.depth < BRACKETS) {
			place.open[place.depth++] = *at;
		} else if (strchr(")]}", *at) && place.depth) {
			place.depth--;
		}
	}
	return place;
}

/* Blanks and comments before a query. */
static size_t blank_length(const char *text)
{
	const char *at = text + strspn(text, " \t\r\n");
	while (*at == '/' && (at[1] == '/' || at[1] == '*')) {
		at = end_of_comment(at);
		if (!at)
			return strlen(text);
		at += strspn(at, " \t\r\n");
	}
	return (size_t)(at - text);
}

/* --- names in strings --- */

static struct fay_target *open_target(const struct fay_shell *shell)
{
	struct fay_target *target = NULL;
	struct fay_error error;
	pid_t pid = shell->pid;
	if (!pid && *shell->target && !fay_process_find_comm(shell->target, &pid, 1))
		pid = 0;
	return pid && !fay_target_open_pid(pid, &target, &error) ? target : NULL;
}

static bool is_known(const struct fay_completion *completion, const char *name)
{
	for (size_t i = completion->count; i-- > 0;)
		if (!strcmp(completion->names[i], name))
			return true;
	return false;
}

/* "module!function", of USDT probes "module!provider:name": first modules, then what one has. */
static void complete_functions(const struct fay_shell *shell, const char *text, const char *word,
			       bool markers, struct fay_completion *completion)
{
	const char *bang = strchr(word, '!');
	char pattern[600];
	struct fay_function_list list;
	struct fay_error error;
	struct fay_target *target = strpbrk(word, "*?[") ? NULL : open_target(shell);
	if (!target)
		return;
	snprintf(pattern, sizeof(pattern), bang ? "%s*" : "%s*!*", word);
	if (markers ? fay_target_find_markers(target, pattern, &list, &error)
		    : fay_target_find(target, pattern, &list, &error)) {
		fay_target_close(target);
		return;
	}
	completion->begin = (size_t)((bang ? bang + 1 : word) - text);
	for (size_t i = 0; i < list.count; i++) {
		char module[300];
		snprintf(module, sizeof(module), "%s!", list.items[i].module);
		if (bang)
			fay_completion_add(completion, list.items[i].name, bang + 1);
		else if (!is_known(completion, module))
			fay_completion_add(completion, module, word);
	}
	fay_function_list_deinit(&list);
	fay_target_close(target);
}

static void complete_processes(const char *word, bool numbers, struct fay_completion *completion)
{
	char name[FAY_COMM_SIZE], number[16];
	pid_t pid;
	DIR *proc = opendir("/proc");
	while (fay_process_next(proc, &pid)) {
		snprintf(number, sizeof(number), "%d", pid);
		if (numbers)
			fay_completion_add(completion, number, word);
		if (fay_process_name(pid, name) && !is_known(completion, name))
			fay_completion_add(completion, name, word);
	}
	if (proc)
		closedir(proc);
}

static void complete_syscalls(const char *word, struct fay_completion *completion)
{
	size_t count;
	const struct fay_syscall *calls = fay_syscalls(&count);
	for (size_t i = 0; i < count; i++)
		fay_completion_add(completion, calls[i].name, word);
}

static void complete_tracepoints(const char *word, struct fay_completion *completion)
{
	const char **names = calloc(TRACEPOINTS_MAX, sizeof(*names));
	const struct btf *btf;
	struct fay_error error;
	if (names && !fay_btf_open(getenv("FAY_BTF"), &btf, &error)) {
		size_t count = fay_btf_tracepoints(btf, names, TRACEPOINTS_MAX);
		for (size_t i = 0; i < count && i < TRACEPOINTS_MAX; i++)
			fay_completion_add(completion, names[i], word);
		fay_btf_close(btf);
	}
	free(names);
}

/* Whether the string is the first argument of that. */
static bool is_argument_of(const char *text, const char *string, const char *function)
{
	size_t length = strlen(function);
	const char *at = string - 1; /* its quote */
	while (at > text && isspace((unsigned char)at[-1]))
		at--;
	return at > text && at[-1] == '(' && (size_t)(at - 1 - text) >= length &&
	       !strncmp(at - 1 - length, function, length);
}

static void complete_string(const struct fay_shell *shell, const char *text, const char *string,
			    struct fay_completion *completion)
{
	completion->begin = (size_t)(string - text);
	if (is_argument_of(text, string, "Function") || is_argument_of(text, string, "Return"))
		complete_functions(shell, text, string, false, completion);
	else if (is_argument_of(text, string, "Usdt"))
		complete_functions(shell, text, string, true, completion);
	else if (is_argument_of(text, string, "Syscall"))
		complete_syscalls(string, completion);
	else if (is_argument_of(text, string, "Tracepoint"))
		complete_tracepoints(string, completion);
	else if (is_argument_of(text, string, "process"))
		complete_processes(string, false, completion);
	else
		completion->files = is_argument_of(text, string, "file");
}

/* --- names in queries --- */

struct asking {
	struct fay_completion *completion;
	const char *prefix;
	bool told; /* the checker has come to the word */
};

static void take(void *context, const char *word, const char *const *names, size_t count)
{
	struct asking *asking = context;
	size_t length = strlen(word), mark = strlen(MARK);
	if (length < mark || strcmp(word + length - mark, MARK))
		return;
	asking->told = true;
	for (size_t i = 0; i < count; i++)
		if (!is_known(asking->completion, names[i]))
			fay_completion_add(asking->completion, names[i], asking->prefix);
}

static void ask(const struct fay_shell *shell, const char *query, struct asking *asking)
{
	const char *comm = shell->target;
	struct fay_function_search functions = fay_shell_functions(shell, &comm);
	const struct fay_query_options options = { .now = fay_realtime(),
						   .find = fay_search_function,
						   .find_context = &functions,
						   .candidates = take,
						   .candidates_context = asking };
	struct fay_plan *plan = NULL;
	struct fay_error error;
	if (!fay_query_plan_with(query, &options, &plan, &error))
		fay_plan_destroy(plan);
}

static void complete_word(const struct fay_shell *shell, const char *text,
			  const struct place *place, struct fay_completion *completion)
{
	/* that bring a query to its end, whose last word is a field, a key, a group's element or a
	 * method */
	static const char *const ends[] = { "", " select 1", " into g select 1",
					    " by 1 into g select 1" };
	const char *word = text + completion->begin;
	struct asking asking = { completion, word, false };
	char closing[BRACKETS + 1];
	char *query;
	for (size_t i = 0; i < place->depth; i++) {
		char open = place->open[place->depth - 1 - i];
		closing[i] = open == '(' ? ')' : open == '[' ? ']' : '}';
	}
	closing[place->depth] = 0;
	for (unsigned called = 0; called < 2; called++) {
		asking.told = false;
		for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]) && !asking.told; i++) {
			if (asprintf(&query, "%s" MARK "%s%s%s", text, called ? "()" : "", closing,
				     ends[i]) < 0)
				return;
			ask(shell, query, &asking);
			free(query);
		}
	}
	if (blank_length(text) == completion->begin)
		fay_completion_add(completion, "from", word);
}

/* --- commands --- */

static void complete_examples(const char *word, struct fay_completion *completion)
{
	struct fay_examples examples;
	struct fay_error error;
	if (fay_examples_read(&examples, &error))
		return;
	for (size_t i = 0; i < examples.count; i++)
		fay_completion_add(completion, examples.items[i].name, word);
	fay_examples_deinit(&examples);
}

/* Words of a command's line; its query, if it has one, is completed as any other. */
static bool complete_command(const char *text, struct fay_completion *completion)
{
	const char *space = strchr(text, ' '), *name;
	const char *word = space ? space + strspn(space, " ") : text;
	completion->begin = (size_t)(word - text);
	for (size_t i = 0; !space && (name = fay_shell_command_name(i)); i++)
		fay_completion_add(completion, name, text);
	if (space && !strncmp(text, ".target ", 8))
		complete_processes(word, true, completion);
	if (space && (!strncmp(text, ".examples ", 10) || !strncmp(text, ".run ", 5)))
		complete_examples(word, completion);
	completion->files =
		!strncmp(text, ".save ", 6) || (!strncmp(text, ".run ", 5) && !completion->count);
	return strncmp(text, ".explain ", 9) != 0;
}

void fay_shell_complete(const struct fay_shell *shell, const char *text,
			struct fay_completion *completion)
{
	if (*text == '.' && complete_command(text, completion))
		return;
	const char *query = *text == '.' ? strchr(text, ' ') : text;
	struct place place = find_place(query);
	if (place.comment)
		return;
	if (place.string) {
		complete_string(shell, query, place.string, completion);
	} else {
		completion->begin = strlen(query);
		while (completion->begin && (isalnum((unsigned char)query[completion->begin - 1]) ||
					     query[completion->begin - 1] == '_'))
			completion->begin--;
		complete_word(shell, query, &place, completion);
	}
	completion->begin += (size_t)(query - text);
}
