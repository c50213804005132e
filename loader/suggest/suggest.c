/* SPDX-License-Identifier: MIT */
/*
 * "Did you mean": what to say when a pattern matches nothing. The nearest names win, by edit
 * distance without regard to case; a name that merely begins as the wanted one does counts as near,
 * and so does the same name in another module. When the name is known but cannot be traced (an
 * indirect function, a variable, an import), that is said instead.
 */
#include "suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "loader/names/target.h"

/* The nearest of the names offered. */
#define NEAREST_MAX 3u
struct nearest {
	char wanted[256];
	size_t count;
	struct {
		char text[320];
		unsigned distance;
	} best[NEAREST_MAX];
};

/* Edit distance (insert, delete, replace, swap neighbours), case-insensitive, cut off above
 * `limit`. Both at most 255 bytes. */
static unsigned edit_distance(const char *left, size_t left_size, const char *right,
			      size_t right_size, unsigned limit)
{
	unsigned rows[3][257]; /* this row and the two above it, by i modulo 3 */
	for (size_t j = 0; j <= right_size; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= left_size; i++) {
		unsigned *row = rows[i % 3], *up = rows[(i - 1) % 3], *two_up = rows[(i + 1) % 3];
		unsigned best = row[0] = (unsigned)i;
		int c = tolower((unsigned char)left[i - 1]);
		for (size_t j = 1; j <= right_size; j++) {
			int d = tolower((unsigned char)right[j - 1]);
			unsigned distance = up[j - 1] + (c != d);
			unsigned change = (up[j] < row[j - 1] ? up[j] : row[j - 1]) + 1;
			if (change < distance)
				distance = change;
			if (i > 1 && j > 1 && c == tolower((unsigned char)right[j - 2]) &&
			    d == tolower((unsigned char)left[i - 2]) &&
			    two_up[j - 2] + 1 < distance)
				distance = two_up[j - 2] + 1;
			row[j] = distance;
			if (distance < best)
				best = distance;
		}
		if (best > limit)
			return limit + 1;
	}
	return rows[left_size % 3][right_size];
}

/* `shown` is what to print for it; NULL: the name itself. */
static void offer(struct nearest *nearest, const char *name, size_t length, const char *shown)
{
	size_t wanted = strlen(nearest->wanted);
	unsigned limit = 1 + (unsigned)wanted / 3, distance;
	if (!length || length > 255 || !wanted)
		return;
	/* A longer name that begins the same way is worth a mention after the near ones. */
	if (wanted >= 3 && length > wanted && !strncasecmp(name, nearest->wanted, wanted))
		distance = 2 + (unsigned)(length - wanted > 40 ? 40 : length - wanted) / 4;
	else if ((length > wanted ? length - wanted : wanted - length) > limit)
		return;
	else
		distance = edit_distance(nearest->wanted, wanted, name, length, limit);
	if (distance > limit)
		return;
	char text[320];
	snprintf(text, sizeof(text), "%.*s", (int)(shown ? strlen(shown) : length),
		 shown ? shown : name);
	for (size_t i = 0; i < nearest->count; i++)
		if (!strcmp(nearest->best[i].text, text))
			return;
	size_t at = nearest->count;
	while (at > 0 && nearest->best[at - 1].distance > distance)
		at--;
	if (at == NEAREST_MAX)
		return;
	if (nearest->count < NEAREST_MAX)
		nearest->count++;
	memmove(&nearest->best[at + 1], &nearest->best[at],
		(nearest->count - at - 1) * sizeof(nearest->best[0]));
	nearest->best[at].distance = distance;
	memcpy(nearest->best[at].text, text, sizeof(text));
	/* What is much further off than the best only distracts. */
	while (nearest->best[nearest->count - 1].distance > 2 * nearest->best[0].distance + 1)
		nearest->count--;
}

/* "; did you mean `a`, `b` or `c`?" or "". */
static void print_nearest(const struct nearest *nearest, char *text, size_t size)
{
	size_t used = 0;
	text[0] = 0;
	for (size_t i = 0; i < nearest->count && used < size; i++) {
		const char *before = i == 0                    ? "; did you mean "
				     : i + 1 == nearest->count ? " or "
							       : ", ";
		used += (size_t)snprintf(text + used, size - used, "%s`%s`", before,
					 nearest->best[i].text);
	}
	if (nearest->count && used < size)
		snprintf(text + used, size - used, "?");
}

static void print_modules(const struct fay_target *target, char *text, size_t size)
{
	size_t used = 0;
	text[0] = 0;
	for (size_t i = 0; i < target->module_count; i++) {
		const char *name = target->modules[i].name;
		if (used + strlen(name) + 20 > size) {
			snprintf(text + used, size - used, ", ... (%zu)", target->module_count);
			return;
		}
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", name);
	}
}

static int no_module(struct fay_target *target, const char *module, struct fay_error *error)
{
	struct nearest nearest = { 0 };
	char hint[1024], list[900];
	snprintf(nearest.wanted, sizeof(nearest.wanted), "%s", module);
	for (size_t i = 0; i < target->module_count; i++)
		for (size_t j = 0; j < target->modules[i].name_count; j++)
			offer(&nearest, target->modules[i].names[j],
			      strlen(target->modules[i].names[j]), target->modules[i].name);
	print_nearest(&nearest, hint, sizeof(hint));
	print_modules(target, list, sizeof(list));
	return fay_error_set(error, FAY_E_USAGE, "no module `%.255s` in %s%s\nmodules: %s", module,
			     target->title, hint, list);
}

/*
 * `Ledger::post` of `_ZN6Ledger4postEil`: names with their lengths before them (Itanium C++ ABI,
 * chapter 5.1.3), without what else there may be; of Rust's symbols without the hash behind them.
 * Returns the length; `last`: where the last name begins.
 */
static size_t source_name(const char *symbol, size_t size, char text[256], size_t *last)
{
	size_t at = 2, used = 0, length;
	if (size < 4 || symbol[0] != '_' || symbol[1] != 'Z')
		return 0;
	bool nested = symbol[at] == 'N';
	at += nested;
	for (*last = 0; at < size && isdigit((unsigned char)symbol[at]); at += length) {
		for (length = 0; at < size && isdigit((unsigned char)symbol[at]) && length < 256;
		     at++)
			length = 10 * length + (size_t)(symbol[at] - '0');
		if (!length || length > size - at || used + 2 + length >= 256)
			return 0;
		if (used && length == 17 && symbol[at] == 'h')
			continue; /* a hash */
		used += (size_t)snprintf(text + used, 256 - used, "%s", used ? "::" : "");
		*last = used;
		memcpy(text + used, symbol + at, length);
		used += length;
		if (!nested)
			break;
	}
	text[used] = 0;
	return used;
}

/* The name in the source, by which functions are asked for, too: whole, or the last part alone. */
static void offer_source(struct nearest *nearest, const struct fay_symbol *symbol)
{
	char name[256];
	size_t last, length = source_name(symbol->name, symbol->length, name, &last);
	if (!length)
		return;
	offer(nearest, name, length, NULL);
	if (last)
		offer(nearest, name + last, length - last, name);
}

/* What else is known under the name that was asked for. */
struct other_kinds {
	const char *ifunc, *object, *import; /* modules in which it is one */
	size_t functions;                    /* with a symbol, in the modules asked for */
};

static void look_through(struct fay_target *target, struct fay_module *module, bool asked,
			 const char *function, struct nearest *nearest, struct other_kinds *kinds)
{
	struct fay_object *object = fay_module_object(target, module);
	size_t wanted = strlen(function);
	for (size_t i = 0; object && i < object->symbol_count; i++) {
		const struct fay_symbol *symbol = &object->symbols[i];
		bool same = symbol->length == wanted && !memcmp(symbol->name, function, wanted);
		if (symbol->kind == FAY_SYMBOL_FUNCTION) {
			char shown[320];
			kinds->functions += asked && !symbol->unnamed;
			/* The very name, yet no match: an old version of an indirect function. */
			if (asked == same)
				continue;
			snprintf(shown, sizeof(shown), "%s!%.*s", module->name, (int)symbol->length,
				 symbol->name);
			offer(nearest, symbol->name, symbol->length, asked ? NULL : shown);
			if (asked)
				offer_source(nearest, symbol);
		} else if (same && asked && symbol->kind != FAY_SYMBOL_PART) {
			const char **slot = symbol->kind == FAY_SYMBOL_IFUNC    ? &kinds->ifunc
					    : symbol->kind == FAY_SYMBOL_OBJECT ? &kinds->object
										: &kinds->import;
			*slot = module->name;
		}
	}
}

/* Behind the template's or the call's arguments, if some begin here. */
static const char *skip_arguments(const char *readable)
{
	unsigned open = 0;
	for (; *readable && (open || *readable != ':'); readable++) {
		if (*readable == '<' || *readable == '(')
			open++;
		else if (open && (*readable == '>' || *readable == ')'))
			open--;
	}
	return readable;
}

/*
 * `app::Cache<int>::get`, as debuggers show it, as a pattern of symbols: `_[ZR]*3app*5Cache*3get*`.
 * Each name has its length before it (Itanium C++ ABI, chapter 5.1.3; Rust's symbols have it, too).
 * Globs, operators, constructors and destructors are left open.
 */
static void print_symbols_of(const char *readable, char *text, size_t size)
{
	const char *before = "";
	size_t used = (size_t)snprintf(text, size, "_[ZR]*"), before_length = 0;
	while (*readable && used + 64 < size) {
		size_t length = strcspn(readable, ":<(");
		bool constructor = length == before_length && !strncmp(readable, before, length);
		if (length && length < 48 && !constructor &&
		    strcspn(readable, "*?[\\~ ") >= length && strncmp(readable, "operator", 8) != 0)
			used += (size_t)snprintf(text + used, size - used, "%zu%.*s*", length,
						 (int)length, readable);
		before = readable;
		before_length = length;
		readable = skip_arguments(readable + length);
		readable += strspn(readable, ":");
	}
}

static void print_reason(const struct other_kinds *kinds, const char *function, char *text,
			 size_t size)
{
	const char *plt = strstr(function, "@plt");
	char symbols[300];

	text[0] = 0;
	if (strstr(function, "::")) {
		print_symbols_of(function, symbols, sizeof(symbols));
		snprintf(text, size,
			 "; C++ and Rust functions are named as in the source, with their "
			 "namespaces, or by their symbols, which `fay list` shows: try `%s`",
			 symbols);
	} else if (plt && !plt[4])
		snprintf(text, size,
			 "; entries of the procedure linkage table are not functions: trace the "
			 "function called, e.g. `*!%.*s`",
			 (int)(plt - function), function);
	else if (kinds->ifunc)
		snprintf(text, size,
			 "; `%s` in %s is an indirect function (IFUNC): which of several bodies "
			 "runs is chosen when the "
			 "program starts, so the name has no one address; trace the body, e.g. "
			 "`%s!*%s*`",
			 function, kinds->ifunc, kinds->ifunc, function);
	else if (kinds->object)
		snprintf(text, size, "; `%s` in %s is a variable, not a function", function,
			 kinds->object);
	else if (kinds->import)
		snprintf(text, size, "; %s only imports `%s`", kinds->import, function);
	else if (!kinds->functions && (!strcmp(function, "*") || !strcmp(function, "fn_*")))
		snprintf(text, size,
			 ": it has neither symbols (stripped) nor an unwind table, by which "
			 "functions are found");
	else if (!kinds->functions)
		snprintf(text, size,
			 ": no function there has a symbol (stripped); those of the unwind table "
			 "are `fn_*`, and its -dbgsym package, if there is one, brings the names");
}

/* How many copies there are of a function that was inlined wherever it is called. */
static size_t count_copies(struct fay_target *target, const char *module, const char *function)
{
	struct fay_function_list copies;
	char pattern[600];
	snprintf(pattern, sizeof(pattern), "%s!@inlined %s", module, function);
	if (strpbrk(function, "*?[;@") || fay_target_find_markers(target, pattern, &copies, NULL))
		return 0;
	size_t count = copies.count;
	fay_function_list_deinit(&copies);
	return count;
}

/* A name without what stands before it in the source: `get` of `app::Cache::get`. */
static void print_outer(struct fay_target *target, const char *module, const char *function,
			char *text, size_t size)
{
	struct fay_function_list found;
	char pattern[600];
	snprintf(pattern, sizeof(pattern), "%.255s!*::%.255s", module, function);
	if (strpbrk(function, "[;@:") || fay_target_find(target, pattern, &found, NULL))
		return;
	snprintf(text, size,
		 "; C++ and Rust functions are named as in the source, with their namespaces: "
		 "`*::%.255s` finds %zu",
		 function, found.count);
	fay_function_list_deinit(&found);
}

static int no_function(struct fay_target *target, const char *module, const char *function,
		       struct fay_error *error)
{
	struct nearest nearest = { 0 };
	struct other_kinds kinds = { 0 };
	char hint[1024], reason[700], unreadable[400] = "";
	size_t matched = 0;
	const char *in = NULL;
	snprintf(nearest.wanted, sizeof(nearest.wanted), "%s", function);
	for (size_t i = 0; i < target->module_count; i++) {
		struct fay_module *candidate = &target->modules[i];
		bool asked = fay_module_matches(candidate, module);
		look_through(target, candidate, asked, function, &nearest, &kinds);
		if (!asked)
			continue;
		matched++;
		in = candidate->name;
		if (candidate->unreadable)
			snprintf(unreadable, sizeof(unreadable), "\nnot searched: %s",
				 candidate->unreadable);
	}
	if (!matched)
		return no_module(target, module, error);
	if (kinds.ifunc)
		nearest.count = 0;
	print_nearest(&nearest, hint, sizeof(hint));
	print_reason(&kinds, function, reason, sizeof(reason));
	if (*hint && strstr(function, "::"))
		*reason = 0; /* the name is as in the source, and known */
	size_t copies = matched == 1 ? count_copies(target, module, function) : 0;
	if (copies)
		snprintf(reason, sizeof(reason),
			 "; it was inlined, at %zu place%s, which a query counts that asks for "
			 "`Inlined`",
			 copies, copies == 1 ? "" : "s");
	if (matched > 1)
		in = module;
	if (!*reason && !*hint)
		print_outer(target, module, function, reason, sizeof(reason));
	if (!*reason && !*hint && fay_target_pid(target) > 0)
		snprintf(hint, sizeof(hint), "; `fay list -p %d '%.255s!*'` shows what there is",
			 (int)fay_target_pid(target), in);
	return fay_error_set(error, FAY_E_USAGE, "no function `%.255s` in %s of %s%s%s%s", function,
			     in, target->title, reason, hint, unreadable);
}

/* The message for a pattern that matched nothing: the nearest names, and which modules have markers
 * at all. */
static int no_marker(struct fay_target *target, const char *module, const char *pattern,
		     struct fay_error *error)
{
	struct nearest nearest = { 0 };
	char hint[1024], with[512] = "";
	size_t used = 0;
	bool cut_short = false;

	snprintf(nearest.wanted, sizeof(nearest.wanted), "%s", pattern);
	for (size_t i = 0; i < target->module_count; i++) {
		struct fay_object *object = fay_module_object(target, &target->modules[i]);
		bool asked = fay_module_matches(&target->modules[i], module);

		if (!object)
			continue;
		fay_object_read_markers(object);
		cut_short |= asked && object->markers_cut_short;
		if (object->marker_count &&
		    used + strlen(target->modules[i].name) + 3 < sizeof(with))
			used += (size_t)snprintf(with + used, sizeof(with) - used, "%s%s",
						 used ? ", " : "", target->modules[i].name);
		for (size_t k = 0; k < object->marker_count; k++) {
			char name[2 * FAY_MARKER_MAX_STRING + 2], shown[320];

			snprintf(name, sizeof(name), "%s:%s", object->markers[k].provider,
				 object->markers[k].name);
			snprintf(shown, sizeof(shown), "%.100s!%.200s", target->modules[i].name,
				 name);
			offer(&nearest, name, strlen(name), asked ? NULL : shown);
		}
	}
	print_nearest(&nearest, hint, sizeof(hint));
	return fay_error_set(
		error, FAY_E_USAGE,
		"no USDT probe `%.255s` in module `%.255s` of %s%s%s\nmodules with USDT probes: %s",
		pattern, module, target->title, hint,
		cut_short ? "; its notes are malformed, so not all were read" : "",
		used ? with : "none");
}

void fay_suggest(struct fay_target *target, struct fay_error *error)
{
	/* a copy: looking for other names makes it anew */
	const struct fay_unmatched unmatched = target->unmatched;
	char plain[sizeof(error->message)];

	snprintf(plain, sizeof(plain), FAY_NO_MATCH, target->title, unmatched.module,
		 unmatched.name);
	if (error->code != FAY_E_USAGE || strcmp(error->message, plain) != 0)
		return;
	if (unmatched.markers)
		no_marker(target, unmatched.module, unmatched.name, error);
	else
		no_function(target, unmatched.module, unmatched.name, error);
}
