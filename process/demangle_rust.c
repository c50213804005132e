/* SPDX-License-Identifier: MIT */
/*
 * Rust's names since its "v0" mangling (RFC 2603), `_RNv...`, as the source has them:
 * `shop::Cart::add`, `<shop::Cart as core::fmt::Display>::fmt`, `main::{closure#0}`. As in the
 * older mangling a function's own generic arguments are left out: all instances have the one name.
 *
 * The name comes from the traced program. Each step takes a byte of it or follows a reference back,
 * and there is a limit to steps, to how deep they nest and to what is written.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "process.h"

#define WRITTEN_MAX 2000u /* bytes */
#define STEPS_MAX 4000u
#define DEPTH_MAX 100u

struct reader {
	const char *at, *begin, *end;
	char *text;
	size_t written;
	unsigned steps, depth, silent;
	bool wrong;
};

static void path(struct reader *r, bool in_type);
static void type(struct reader *r);

static bool wrong(struct reader *r)
{
	r->wrong = true;
	return false;
}

static char next(struct reader *r)
{
	if (r->wrong || r->at == r->end || ++r->steps > STEPS_MAX)
		return wrong(r), 0;
	return *r->at++;
}

static bool take(struct reader *r, char c)
{
	if (r->wrong || r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static void put(struct reader *r, const char *text, size_t length)
{
	if (r->wrong || r->silent)
		return;
	if (length > WRITTEN_MAX - r->written) {
		wrong(r);
		return;
	}
	memcpy(r->text + r->written, text, length);
	r->written += length;
}

static void say(struct reader *r, const char *text)
{
	put(r, text, strlen(text));
}

/* Nothing above the limit of what is read or written is meant by a number here. */
static size_t decimal(struct reader *r)
{
	size_t value = 0;
	if (take(r, '0'))
		return 0;
	if (r->at == r->end || *r->at < '1' || *r->at > '9')
		return wrong(r), 0;
	while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && value < 100000)
		value = value * 10 + (size_t)(*r->at++ - '0');
	return value;
}

/* `_` is 0, `0_` is 1 and so on. */
static uint64_t base62(struct reader *r)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz"
				     "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	uint64_t value = 0;
	if (take(r, '_'))
		return 0;
	for (char c; (c = next(r)) != '_';) {
		const char *digit = c ? strchr(digits, c) : NULL;
		if (!digit || value > (UINT64_MAX - 62) / 62)
			return wrong(r), 0;
		value = value * 62 + (uint64_t)(digit - digits);
	}
	return value + 1;
}

static uint64_t disambiguator(struct reader *r)
{
	return take(r, 's') ? base62(r) + 1 : 0;
}

struct word {
	uint64_t number; /* tells apart what has the same name */
	const char *text;
	size_t length;
};

static struct word plain_identifier(struct reader *r)
{
	struct word word = { 0 };
	take(r, 'u');
	word.length = decimal(r);
	take(r, '_');
	if (r->wrong || word.length > (size_t)(r->end - r->at))
		return wrong(r), (struct word){ 0 };
	word.text = r->at;
	r->at += word.length;
	return word;
}

static struct word identifier(struct reader *r)
{
	uint64_t number = disambiguator(r);
	struct word word = plain_identifier(r);
	word.number = number;
	return word;
}

/* What is read next lies further before. */
static void again(struct reader *r, void (*what)(struct reader *r, bool in_type), bool in_type)
{
	const char *here = r->at - 1;
	uint64_t offset = base62(r);
	const char *behind = r->at;
	if (r->wrong || offset >= (uint64_t)(here - r->begin)) {
		wrong(r);
		return;
	}
	if (r->silent)
		return;
	r->at = r->begin + offset;
	what(r, in_type);
	r->at = behind;
}

static void any_type(struct reader *r, bool in_type)
{
	(void)in_type;
	type(r);
}

static void lifetime(struct reader *r)
{
	base62(r);
}

static void constant(struct reader *r, bool in_type)
{
	(void)in_type;
	char c = next(r);
	if (c == 'B') {
		again(r, constant, in_type);
	} else if (c == 'p') {
		say(r, "_");
	} else if (c >= 'a' && c <= 'z') {
		char digits[24], *end;
		size_t count = 0;
		if (take(r, 'n'))
			say(r, "-");
		for (char d; (d = next(r)) != '_' && !r->wrong;)
			if (count < sizeof(digits) - 1)
				digits[count++] = d;
		digits[count] = 0;
		unsigned long long value = strtoull(digits, &end, 16);
		if (*end || count > 16) {
			wrong(r);
			return;
		}
		if (c == 'b')
			say(r, value ? "true" : "false");
		else
			put(r, digits, (size_t)snprintf(digits, sizeof(digits), "%llu", value));
	} else {
		wrong(r);
	}
}

static void argument(struct reader *r)
{
	if (take(r, 'L'))
		lifetime(r), say(r, "'_");
	else if (take(r, 'K'))
		constant(r, true);
	else
		type(r);
}

/* up to `E`; how many there are */
static unsigned list(struct reader *r, void (*each)(struct reader *r))
{
	unsigned count = 0;
	for (; !take(r, 'E') && !r->wrong; count++) {
		say(r, count ? ", " : "");
		each(r);
	}
	return count;
}

static void unit(struct reader *r, const char *kind, struct word word)
{
	char number[24];
	if (!kind) {
		say(r, word.length ? "::" : "");
		put(r, word.text, word.length);
		return;
	}
	say(r, "::{");
	say(r, kind);
	if (word.length)
		say(r, ":");
	put(r, word.text, word.length);
	put(r, number,
	    (size_t)snprintf(number, sizeof(number), "#%llu}", (unsigned long long)word.number));
}

static void nested(struct reader *r, bool in_type)
{
	char space = next(r);
	path(r, in_type);
	struct word word = identifier(r);
	if (space >= 'A' && space <= 'Z')
		unit(r,
		     space == 'C'   ? "closure"
		     : space == 'S' ? "shim"
				    : (char[]){ space, 0 },
		     word);
	else if (space >= 'a' && space <= 'z')
		unit(r, NULL, word);
	else
		wrong(r);
}

/* Where an impl stands says nothing that its type does not. */
static void place_of_impl(struct reader *r)
{
	disambiguator(r);
	r->silent++;
	path(r, true);
	r->silent--;
}

/* `shop::Cart` of a path, `<[u8]>` of another type */
static void own_type(struct reader *r)
{
	bool named = r->at < r->end && strchr("CMXYNIB", *r->at);
	say(r, named ? "" : "<");
	type(r);
	say(r, named ? "" : ">");
}

static void path(struct reader *r, bool in_type)
{
	char c = next(r);
	if (++r->depth > DEPTH_MAX)
		wrong(r);
	switch (r->wrong ? 0 : c) {
	case 'C': {
		struct word crate = identifier(r);
		put(r, crate.text, crate.length);
		break;
	}
	case 'N': nested(r, in_type); break;
	case 'M':
		place_of_impl(r);
		own_type(r);
		break;
	case 'X':
	case 'Y':
		if (c == 'X')
			place_of_impl(r);
		say(r, "<");
		type(r);
		say(r, " as ");
		path(r, true);
		say(r, ">");
		break;
	case 'I':
		path(r, in_type);
		r->silent += !in_type;
		say(r, "<");
		list(r, argument);
		say(r, ">");
		r->silent -= !in_type;
		break;
	case 'B': again(r, path, in_type); break;
	default: wrong(r);
	}
	r->depth--;
}

/* --- types --- */

static const char *basic(char c)
{
	static const char *const names[26] = {
		"i8",    "bool", "char", "f64", "str",  "f32",  NULL,  "u8", "isize",
		"usize", NULL,   "i32",  "u32", "i128", "u128", "_",   NULL, NULL,
		"i16",   "u16",  "()",   "...", NULL,   "i64",  "u64", "!",
	};
	return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static void function(struct reader *r)
{
	if (take(r, 'G'))
		base62(r);
	say(r, take(r, 'U') ? "unsafe fn(" : "fn(");
	if (take(r, 'K') && !take(r, 'C'))
		plain_identifier(r);
	list(r, type);
	say(r, ")");
	if (take(r, 'u'))
		return;
	say(r, " -> ");
	type(r);
}

static void bound(struct reader *r)
{
	path(r, true);
	while (take(r, 'p')) {
		struct word word = plain_identifier(r);
		say(r, " with ");
		put(r, word.text, word.length);
		say(r, " = ");
		type(r);
	}
}

static void dynamic(struct reader *r)
{
	say(r, "dyn ");
	if (take(r, 'G'))
		base62(r);
	for (bool more = false; !take(r, 'E') && !r->wrong; more = true) {
		say(r, more ? " + " : "");
		bound(r);
	}
	if (take(r, 'L'))
		lifetime(r);
	else
		wrong(r);
}

static void tuple(struct reader *r)
{
	say(r, "(");
	say(r, list(r, type) == 1 ? ",)" : ")");
}

static void pointer(struct reader *r, char c)
{
	if ((c == 'R' || c == 'Q') && take(r, 'L'))
		lifetime(r);
	say(r, c == 'R' ? "&" : c == 'Q' ? "&mut " : c == 'P' ? "*const " : "*mut ");
	type(r);
}

static void type(struct reader *r)
{
	char c = next(r);
	if (++r->depth > DEPTH_MAX)
		wrong(r);
	switch (r->wrong ? 0 : c) {
	case 'A':
	case 'S':
		say(r, "[");
		type(r);
		if (c == 'A') {
			say(r, "; ");
			constant(r, true);
		}
		say(r, "]");
		break;
	case 'T': tuple(r); break;
	case 'R':
	case 'Q':
	case 'P':
	case 'O': pointer(r, c); break;
	case 'F': function(r); break;
	case 'D': dynamic(r); break;
	case 'B': again(r, any_type, true); break;
	default:
		if (basic(c)) {
			say(r, basic(c));
		} else if (!r->wrong) {
			r->at--;
			path(r, true);
		}
	}
	r->depth--;
}

char *fay_demangled_rust(const char *symbol)
{
	size_t length = strcspn(symbol, ".$");
	struct reader r = { .at = symbol + 2, .begin = symbol + 2, .end = symbol + length };
	if (strncmp(symbol, "_R", 2) != 0 || !(r.text = malloc(WRITTEN_MAX + 1)))
		return NULL;
	path(&r, false);
	if (!r.wrong && r.at < r.end) { /* the crate that asked for this instance */
		r.silent++;
		path(&r, true);
	}
	if (r.wrong || r.at != r.end || !r.written) {
		free(r.text);
		return NULL;
	}
	r.text[r.written] = 0;
	return r.text;
}

/* --- the older mangling: Itanium's, with escapes --- */

/* `$LT$` of what a C++ name cannot have; the text's length, 0 if there is none there */
static size_t escape(const char *text, char *means)
{
	static const struct {
		const char *text;
		char means;
	} escapes[] = { { "$SP$", '@' }, { "$BP$", '*' }, { "$RF$", '&' }, { "$LT$", '<' },
			{ "$GT$", '>' }, { "$LP$", '(' }, { "$RP$", ')' }, { "$C$", ',' } };
	for (size_t i = 0; i < sizeof(escapes) / sizeof(*escapes); i++) {
		*means = escapes[i].means;
		if (!strncmp(text, escapes[i].text, strlen(escapes[i].text)))
			return strlen(escapes[i].text);
	}
	if (strncmp(text, "$u", 2) != 0)
		return 0;
	char *end;
	unsigned long value =
		strspn(text + 2, "0123456789abcdef") == 2 ? strtoul(text + 2, &end, 16) : 0;
	*means = (char)value;
	return value >= ' ' && value < 0x7f && *end == '$' ? 5 : 0;
}

void fay_demangled_unescape(char *text)
{
	char *to = text;
	for (const char *from = text; *from;) {
		char means;
		size_t length = escape(from, &means);
		bool starts = from == text || from[-1] == ':';
		if (length) {
			*to++ = means;
			from += length;
		} else if (!strncmp(from, "..", 2)) {
			*to++ = ':';
			*to++ = ':';
			from += 2;
		} else if (starts && *from == '_' && from[1] == '$') {
			from++;
		} else {
			*to++ = *from++;
		}
	}
	*to = 0;
}
