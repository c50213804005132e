/* SPDX-License-Identifier: MIT */
/*
 * C++ and Rust names as people write them, of symbols, and whether a pattern means one (C's too, of
 * functions that are there as clones alone). libstdc++
 * reads them, which is there wherever such a program is; it is loaded when the first one is met.
 *
 * A pattern is compared with the name and with the name and its arguments, so `shop::Cart::add` is
 * all overloads and `shop::Cart::add(int)` is one. What the compiler has made of a function beside
 * it (clones with constants put in) is the function, too; a part that it has split off is not,
 * since a call would count twice.
 */
#include <dlfcn.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"

/* bytes of a name that is looked into: it comes from the traced program, and the library recurses
 * on it */
#define LONGEST 1000u

/* How often a name may refer to an earlier part of itself, or to an argument of its template: each
 * such reference can double what is printed, and with names of other machines' programs somebody
 * else chooses them. */
#define REFERENCES_MAX 24u

/* __cxa_demangle: Itanium C++ ABI, chapter 3.4. status 0: done. The text is malloc'ed. */
static char *(*demangle)(const char *mangled, char *output, size_t *length, int *status);

static void load(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	if (library)
		demangle = dlsym(library, "__cxa_demangle");
}

/* S_, S12_, T_, T0_: chapter 5.1.10. */
static unsigned references(const char *name)
{
	unsigned count = 0;
	for (; *name; name++)
		if (*name == 'S' || *name == 'T')
			count += name[1 + strspn(name + 1,
						 "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")] == '_';
	return count;
}

/* Rust's names end in ::h and 16 digits that tell instances apart. */
static size_t without_hash(const char *text, size_t length)
{
	if (length > 19 && !strncmp(text + length - 19, "::h", 3) &&
	    strspn(text + length - 16, "0123456789abcdef") >= 16)
		return length - 19;
	return length;
}

char *fay_demangled(const char *symbol)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int status = -1;
	if (!strncmp(symbol, "_R", 2))
		return strlen(symbol) > LONGEST ? NULL : fay_demangled_rust(symbol);
	if (strncmp(symbol, "_Z", 2) != 0 || strlen(symbol) > LONGEST ||
	    references(symbol) > REFERENCES_MAX || pthread_once(&once, load) || !demangle)
		return NULL;
	/* LLVM tells what it has made known to other files apart. */
	const char *suffix = strstr(symbol, ".llvm.");
	char *text = NULL, *whole = suffix ? strndup(symbol, (size_t)(suffix - symbol)) : NULL;
	if (!suffix || whole)
		text = demangle(whole ? whole : symbol, NULL, NULL, &status);
	free(whole);
	if (text && status == 0) {
		if (without_hash(text, strlen(text)) < strlen(text))
			fay_demangled_unescape(text);
		return text;
	}
	free(text);
	return NULL;
}

/* --- its parts --- */

/* `operator<`, `operator()`: brackets that open nothing; how many bytes, 0 of anything else. */
static size_t operator_at(const char *text, size_t at)
{
	const size_t word = strlen("operator");
	if (strncmp(text + at, "operator", word) != 0 || (at && !strchr(": ", text[at - 1])))
		return 0;
	const char *symbol = text + at + word;
	return word + (!strncmp(symbol, "()", 2) ? 2 : strspn(symbol, "<>=-"));
}

/* The `>` of `fn(u8) -> u8`, which closes nothing */
static bool is_arrow(const char *text, size_t at)
{
	return at && text[at - 1] == '-';
}

/* Up to the bracket that opens the last ones at the outermost level, as in
 * `f<int (*)(int)>(char)`. */
size_t fay_demangled_end(const char *text)
{
	int depth = 0;
	size_t length = strlen(text), cut = length;
	for (size_t i = 0; i < length; i++) {
		i += operator_at(text, i);
		if (text[i] == '<' || text[i] == '(') {
			if (text[i] == '(' && depth == 0 && i &&
			    strncmp(text + i, "(anonymous namespace)", 21) != 0)
				cut = i;
			depth++;
		} else if (((text[i] == '>' && !is_arrow(text, i)) || text[i] == ')') && depth) {
			depth--;
		}
	}
	return without_hash(text, cut);
}

/* A template's name has its result before it, `void f<int>(int)`: behind the last space at the
 * outermost level, but those of `operator new`. */
static size_t begin_of_name(const char *text, size_t end)
{
	int depth = 0;
	size_t begin = 0;
	if (strstr(text, "thunk to ")) /* a function of its own, which jumps to the one */
		return 0;
	for (size_t i = 0; i < end && !operator_at(text, i); i++) {
		depth += (text[i] == '<' || text[i] == '(') -
			 ((text[i] == '>' && !is_arrow(text, i)) || text[i] == ')');
		if (text[i] == ' ' && !depth)
			begin = i + 1;
	}
	return begin;
}

/* `f[abi:cxx11]` is called f. */
static void drop_tags(char *text)
{
	char *tag, *end;
	while ((tag = strstr(text, "[abi:")) && (end = strchr(tag, ']')))
		memmove(tag, end + 1, strlen(end + 1) + 1);
}

static bool is_split_off(const char *symbol)
{
	return strstr(symbol, ".cold") || strstr(symbol, ".part");
}

/* A function of C of which there is such a clone: `name.isra.0`. */
static bool is_clone(const char *glob, const char *symbol)
{
	size_t length = strcspn(symbol, ".");
	return (!strncmp(symbol + length, ".isra.", 6) ||
		!strncmp(symbol + length, ".constprop.", 11)) &&
	       strlen(glob) == length && !memcmp(glob, symbol, length);
}

bool fay_demangled_matches(const char *glob, const char *symbol)
{
	if (is_split_off(symbol))
		return false;
	if (is_clone(glob, symbol))
		return true;
	char *text = fay_demangled(symbol);
	if (!text)
		return false;
	char *clone = strstr(text, " [clone ");
	if (clone)
		*clone = 0;
	drop_tags(text);
	size_t end = fay_demangled_end(text);
	char *name = text + begin_of_name(text, end);
	bool matches = !fnmatch(glob, name, 0);
	text[end] = 0;
	matches |= !fnmatch(glob, name, 0);
	free(text);
	return matches;
}
