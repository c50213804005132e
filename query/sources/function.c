/* SPDX-License-Identifier: MIT */
/*
 * Arguments and results of a program's functions by name and type. They come from the debug
 * information of the file that the traced process has mapped, or that will be run: who plans the
 * query says which file that is (struct fay_query_options). It is looked for when a name is met
 * that no event has by itself.
 */
#include <bpf/btf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "query/debug/debug.h"
#include "sources.h"

struct fay_function_source {
	struct fay_types types; /* program NULL: nothing is known */
	const char *name;
	const char *reason; /* why nothing is known; NULL: nothing was asked */
	/* there are inlined copies alone, whose parameters and locals are known */
	bool copies;
	/* of a line, and of these: what stands behind the `;` of the probe's pattern, and is
	 * event.arg[] */
	const char *words[6];
	uint32_t word_count;
};

/* The pattern of the function's inlined copies. */
static const char *copies_of(struct fay_checked *checked)
{
	const char *bang = strchr(checked->pattern, '!');
	return fay_query_format(checked->exprs.query, "%.*s!@inlined %s",
				(int)(bang - checked->pattern), checked->pattern, bang + 1);
}

static int open_debug(struct fay_checked *checked, const struct fay_query_function *found,
		      struct fay_debug_function **function, struct fay_error *error)
{
	const char *bang = strchr(checked->pattern, '!');
	if (checked->function->copies)
		return fay_debug_line_open(
			found->fd, found->path,
			fay_query_format(checked->exprs.query, "inlined %s", bang + 1), function,
			error);
	return checked->kind == SOURCE_LINE
		       ? fay_debug_line_open(found->fd, found->path, bang + 2, function, error)
		       : fay_debug_function_open(found->fd, found->path, found->address,
						 found->name, function, error);
}

/* Opens the debug information of the one function that the pattern means; the reason why not in
 * *error. */
static int open_function(struct fay_checked *checked, struct fay_query_function *found,
			 struct fay_error *error)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_query_options *options = query->options;
	found->process = checked->process;
	int code = options->find(options->find_context, checked->pattern, found, error);
	if (code == FAY_E_USAGE && checked->kind == SOURCE_ENTRY) {
		const char *copies = copies_of(checked);
		struct fay_error unused = { 0 };
		checked->function->copies =
			copies && !options->find(options->find_context, copies, found, &unused);
		code = checked->function->copies ? FAY_OK : code;
	}
	if (code)
		return code;
	if (found->count > 1 && checked->kind != SOURCE_LINE && !checked->function->copies)
		code = fay_error_set(error, FAY_E_REFUSED,
				     "%zu functions match, and names are known for one at a time",
				     found->count);
	else if (query->function_count == FAY_QUERY_MAX_FUNCTIONS)
		code = fay_error_set(error, FAY_E_LIMIT,
				     "debug information is read for at most %u functions",
				     FAY_QUERY_MAX_FUNCTIONS);
	else
		code = open_debug(checked, found, &query->functions[query->function_count], error);
	close(found->fd);
	if (!code)
		query->function_count++;
	return code;
}

/* What is known of the traced function; tried once. */
static struct fay_function_source *function_of(struct fay_checked *checked)
{
	struct fay_query *query = checked->exprs.query;
	bool has_functions = checked->domain == DOMAIN_USER &&
			     checked->kind & (SOURCE_ENTRY | SOURCE_RETURN | SOURCE_LINE);
	if (checked->function || !has_functions || !query->options || !query->options->find)
		return checked->function;
	struct fay_function_source *function = fay_query_alloc(query, sizeof(*function));
	struct fay_query_function *found = function ? fay_query_alloc(query, sizeof(*found)) : NULL;
	struct fay_error error = { 0 };
	if (!found)
		return NULL;
	checked->function = function;
	if (open_function(checked, found, &error)) {
		function->reason = fay_query_format(query, "%s", error.message);
	} else {
		function->types.program = query->functions[query->function_count - 1];
		function->name = found->name;
	}
	return function;
}

static struct fay_value_node *value_of_argument(struct fay_checked *checked,
						const struct fay_node *node,
						struct fay_function_source *function,
						const struct fay_debug_argument *argument)
{
	struct fay_place place = { .types = &function->types,
				   .offset = argument->index,
				   .name = argument->name };
	if (argument->why)
		return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, node->name_span,
				      "argument `%s` of `%s` %s", argument->name, function->name,
				      argument->why);
	if (argument->by_address) {
		place.address = fay_expr_named_arg(
			&checked->exprs,
			(struct fay_access){ .offset = argument->index, .bytes = 8 },
			argument->name);
		place.offset = 0;
		place.name = "";
		if (!place.address)
			return NULL;
	}
	return fay_check_typed_value(checked, node, &place, argument->type);
}

/* --- variables that are seen from a line --- */

/* The number of the argument that the word is; -1 with the error recorded. */
static int argument_of_word(struct fay_checked *checked, struct fay_span span,
			    struct fay_function_source *function, const char *word)
{
	struct fay_query *query = checked->exprs.query;
	uint32_t number = 0;
	while (number < function->word_count && strcmp(function->words[number], word))
		number++;
	if (number < function->word_count)
		return (int)number;
	if (number == sizeof(function->words) / sizeof(function->words[0]))
		return fay_query_fail(query, FAY_E_LIMIT, span,
				      "a query may look at %u variables of a line; one that is "
				      "computed counts for up to three",
				      number)
			       ? 0
			       : -1;
	const char *pattern = function->copies ? checked->pattern /* fay_check_inlined() */
					       : fay_query_format(query, "%s%s%s", checked->pattern,
								  number ? "," : ";", word);
	if (!pattern)
		return -1;
	if (strlen(pattern) >= FAY_IMAGE_MAX_STRING)
		return fay_query_fail(query, FAY_E_LIMIT, span,
				      "a line, with the names of the variables that are asked for, "
				      "may have at most %u bytes",
				      FAY_IMAGE_MAX_STRING - 1)
			       ? 0
			       : -1;
	function->words[function->word_count++] = word;
	checked->pattern = pattern;
	query->typed = true;
	return (int)number;
}

static bool has_address(const struct fay_function_source *function, uint32_t type)
{
	const struct btf *btf = fay_debug_function_types(function->types.program);
	const struct btf_type *shape = btf__type_by_id(btf, fay_btf_strip(btf, type));
	return btf_is_composite(shape) || btf_is_array(shape);
}

/* Asks for the variable, or its address: the number of the argument that is its value, or the first
 * of a program's words; -1 with the error recorded. */
static int ask_for(struct fay_checked *checked, struct fay_span span,
		   struct fay_function_source *function, const char *name, bool address,
		   struct fay_debug_words *words)
{
	const char *mark = address ? "&" : "";
	int first = -1;
	*words = (struct fay_debug_words){ 0 };
	if (checked->kind == SOURCE_LINE)
		*words = fay_debug_line_words(function->types.program, name, address);
	checked->computes_calls |= words->calls;
	for (uint32_t i = 0; i == 0 || i < words->count; i++) {
		const char *word =
			words->count
				? fay_query_format(checked->exprs.query, "%u#%s%s", i, mark, name)
				: fay_query_format(checked->exprs.query, "%s%s", mark, name);
		int number = word ? argument_of_word(checked, span, function, word) : -1;
		if (number < 0)
			return -1;
		first = i ? first : number;
	}
	return first;
}

/* Of a structure or an array there is the address. */
static struct fay_value_node *variable(struct fay_checked *checked, const struct fay_node *node,
				       struct fay_function_source *function)
{
	uint32_t type;
	if (!fay_debug_line_variable(function->types.program, node->name, &type))
		return NULL;
	bool address = has_address(function, type);
	struct fay_debug_words words;
	int number = ask_for(checked, node->name_span, function, node->name, address, &words);
	struct fay_place place = { .types = &function->types,
				   .offset = (uint32_t)number,
				   .words = words.count,
				   .calls = words.calls,
				   .name = node->name };
	if (number < 0)
		return NULL;
	if (address) {
		place.address = fay_expr_named_arg(&checked->exprs,
						   (struct fay_access){ .offset = place.offset,
									.bytes = 8,
									.words = place.words,
									.calls = place.calls },
						   node->name);
		place.offset = 0;
		place.words = 0;
		place.name = "";
		if (!place.address)
			return NULL;
	}
	return fay_check_typed_value(checked, node, &place, type);
}

/* Not 0 where the variable has a value. */
static const struct fay_expr *known(struct fay_checked *checked, const struct fay_node *at,
				    struct fay_function_source *function, uint32_t type)
{
	bool address = has_address(function, type);
	struct fay_debug_words words =
		fay_debug_line_words(function->types.program, at->name, address);
	int number;
	if (words.count) {
		number = ask_for(checked, at->span, function, at->name, address, &words);
	} else {
		const char *word = fay_query_format(checked->exprs.query, "?%s", at->name);
		number = word ? argument_of_word(checked, at->span, function, word) : -1;
	}
	if (number < 0)
		return NULL;
	return fay_expr_named_arg(&checked->exprs,
				  (struct fay_access){ .offset = (uint32_t)number,
						       .bytes = 8,
						       .words = words.count,
						       .calls = words.calls,
						       .known = words.count },
				  fay_query_format(checked->exprs.query, "Known(%s)", at->name));
}

struct fay_value_node *fay_check_known(struct fay_checked *checked, const struct fay_node *call)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_node *at = call->item_count == 1 ? call->items->value : NULL;
	struct fay_function_source *function = function_of(checked);
	uint32_t type;
	if (!at || at->kind != NODE_STRING || checked->kind != SOURCE_LINE)
		return fay_query_fail(query, FAY_E_USAGE, call->span,
				      "`Known` takes the name of a variable that is seen from a "
				      "line: `Known(\"count\")`");
	if (!function || !function->types.program)
		return fay_query_fail(query, FAY_E_REFUSED, at->span, "%s",
				      function ? fay_check_function_reason(checked)
					       : "variables are not known here");
	if (!fay_debug_line_variable(function->types.program, at->name, &type))
		return fay_query_fail(query, FAY_E_USAGE, at->span, "no variable `%s` here; %s",
				      at->name, fay_check_argument_list(checked));
	const struct fay_expr *there = known(checked, at, function, type);
	const struct fay_expr *zero = there ? fay_expr_int(&checked->exprs, TYPE_INT, 0) : NULL;
	return zero ? fay_check_scalar(checked, fay_expr_make(&checked->exprs, call->span, EXPR_NE,
							      TYPE_BOOL, there, zero, NULL))
		    : NULL;
}

struct fay_value_node *fay_check_function_argument(struct fay_checked *checked,
						   const struct fay_node *node)
{
	struct fay_function_source *function = function_of(checked);
	uint32_t count;
	if (!function || !function->types.program)
		return NULL;
	if (checked->kind == SOURCE_LINE || function->copies)
		return variable(checked, node, function);
	const struct fay_debug_argument *arguments =
		fay_debug_function_arguments(function->types.program, &count);
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(arguments[i].name, node->name))
			continue;
		checked->return_arguments |= checked->kind == SOURCE_RETURN;
		checked->exprs.query->typed = true;
		return value_of_argument(checked, node, function, &arguments[i]);
	}
	return NULL;
}

struct fay_value_node *fay_check_function_result(struct fay_checked *checked,
						 const struct fay_node *node,
						 const struct fay_expr *word)
{
	struct fay_function_source *function =
		strpbrk(checked->pattern, "*?[") ? NULL : function_of(checked);
	uint32_t type;
	if (!function || !function->types.program ||
	    !fay_debug_function_result(function->types.program, &type))
		return fay_check_scalar(checked, word);
	if (!type)
		return fay_query_fail(checked->exprs.query, FAY_E_REFUSED, node->name_span,
				      "`%s` returns nothing", function->name);
	struct fay_value_node *value =
		fay_check_typed_result(checked, node, &function->types, word, type);
	/* something is read there */
	checked->exprs.query->typed |= value && value->expr->type == TYPE_STRING;
	return value;
}

size_t fay_check_function_names(const struct fay_checked *checked, const char **names, size_t max)
{
	const struct fay_function_source *function = checked->function;
	uint32_t count = 0;
	if (!function || !function->types.program)
		return 0;
	if (checked->kind == SOURCE_LINE || function->copies)
		return fay_debug_line_names(function->types.program, names, max);
	const struct fay_debug_argument *arguments =
		fay_debug_function_arguments(function->types.program, &count);
	for (uint32_t i = 0; i < count && i < max; i++)
		names[i] = arguments[i].name;
	return count < max ? count : max;
}

/* Names of the event's own arguments, of a program's function, a tracepoint or a function of the
 * kernel; *of: what has them, NULL: they are not known. */
static size_t argument_names(const struct fay_checked *checked, const char **names, size_t max,
			     const char **of)
{
	const struct fay_kernel_source *kernel = checked->kernel;
	const struct fay_function_source *function = checked->function;
	*of = NULL;
	if (!kernel) {
		*of = function && function->types.program ? function->name : NULL;
		const char *asked = strchr(checked->pattern, '!');
		if (*of && (*of)[0] == '_' && ((*of)[1] == 'Z' || (*of)[1] == 'R') && asked)
			*of = asked + 1; /* a symbol that nobody reads */
		return fay_check_function_names(checked, names, max);
	}
	if (kernel->argument_count)
		*of = kernel->count ? kernel->points[0].name : strchr(checked->pattern, '!') + 1;
	for (size_t i = 0; i < kernel->argument_count && i < max; i++)
		names[i] = kernel->arguments[i].name;
	return kernel->argument_count;
}

const char *fay_check_argument_list(const struct fay_checked *checked)
{
	const char *names[FAY_DEBUG_ARGUMENTS_MAX], *of;
	char list[512] = "";
	size_t count = argument_names(checked, names, FAY_DEBUG_ARGUMENTS_MAX, &of), used = 0;
	if (!of)
		return "";
	for (size_t i = 0; i < count && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s`%s`", i ? ", " : "",
					 names[i]);
	const char *what = checked->kind == SOURCE_LINE ? "variables" : "arguments";
	return fay_query_format(checked->exprs.query, "`%s` has %s%s%s%s", of,
				count ? "the " : "no ", what, count ? " " : "", list);
}

const char *fay_check_function_reason(const struct fay_checked *checked)
{
	const struct fay_function_source *function = checked->function;
	return function && !function->types.program
		       ? fay_query_format(checked->exprs.query, "%s are not known by name: %s",
					  checked->kind == SOURCE_LINE ? "variables" : "arguments",
					  function->reason)
		       : "";
}

struct fay_value_node *fay_check_caller(struct fay_checked *checked, const struct fay_node *node)
{
	struct fay_query *query = checked->exprs.query;
	if (!fay_check_has_caller(checked))
		return fay_query_fail(query, FAY_E_USAGE, node->name_span,
				      "`Caller` is known of calls of a program's function: use "
				      "cluster.Function(...) or cluster.Return(...) as the source");
	checked->uses_caller = true;
	return fay_check_scalar(checked, fay_expr_caller(&checked->exprs));
}

/* The word for the parameter that event.arg[number] is, in a copy; NULL with the error recorded. */
static const char *word_of_parameter(struct fay_checked *checked, uint32_t number)
{
	struct fay_query *query = checked->exprs.query;
	const struct fay_function_source *function = function_of(checked);
	uint32_t count = 0;
	if (function && function->copies && number < function->word_count)
		return function->words[number];
	const struct fay_debug_argument *arguments =
		function && function->types.program && !function->copies
			? fay_debug_function_arguments(function->types.program, &count)
			: NULL;
	for (uint32_t i = 0; i < count; i++)
		if (!arguments[i].why && arguments[i].index == number)
			return fay_query_format(query, "%s%s", arguments[i].by_address ? "&" : "",
						arguments[i].name);
	return fay_query_fail(query, FAY_E_REFUSED, checked->source,
			      "argument %u of inlined copies is known by its name only%s%s", number,
			      function && function->reason ? ": " : "",
			      function && function->reason ? function->reason : "");
}

bool fay_check_inlined(struct fay_checked *checked)
{
	struct fay_query *query = checked->exprs.query;
	if (!checked->uses_inlined)
		return true;
	if (checked->join || checked->uses_caller)
		return fay_query_fail(query, FAY_E_REFUSED, checked->source,
				      "`Inlined` does not go with %s",
				      checked->join ? "joins"
						    : "`Caller`: inlined copies have none") != NULL;
	const char *pattern = copies_of(checked);
	for (uint32_t i = 0; pattern && checked->exprs.arguments >> i; i++) {
		const char *word =
			checked->exprs.arguments >> i & 1 ? word_of_parameter(checked, i) : "";
		pattern = word ? fay_query_format(query, "%s%s%s", pattern, i ? "," : ";", word)
			       : NULL;
	}
	if (pattern && strlen(pattern) >= FAY_IMAGE_MAX_STRING)
		return fay_query_fail(query, FAY_E_LIMIT, checked->source,
				      "a function's pattern, with the names of the parameters "
				      "that are asked for of inlined copies, may have at most %u "
				      "bytes",
				      FAY_IMAGE_MAX_STRING - 1) != NULL;
	checked->inlined = pattern;
	return pattern != NULL;
}

bool fay_check_calls(struct fay_checked *checked)
{
	const char *line = checked->computes_calls ? strstr(checked->pattern, "!@line ") : NULL;
	if (!line || checked->join)
		return true;
	int module = (int)(line - checked->pattern);
	const char *place = line + strlen("!@line ");
	checked->calls = fay_query_format(checked->exprs.query, "%.*s!@calls %.*s", module,
					  checked->pattern, (int)strcspn(place, ";"), place);
	return checked->calls != NULL;
}
