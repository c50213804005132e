/* SPDX-License-Identifier: MIT */
/*
 * The text of a host interface: one declaration a line, of words. Each keyword has a function that
 * reads the words behind it. fay_read_interface() has the last word.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "verifier/reader/reader.h"

#define WORD FAY_HOST_NAME
#define INSTRUCTIONS 1000000u /* where the text has no limits */
#define STACK 4096u

struct name {
	char text[WORD];
};

struct text {
	const char *at, *end, *line, *word; /* end: of the line; word: where the last one began */
	unsigned number;
	struct fay_interface *to;
	struct name regions[FAY_INTERFACE_REGIONS], parameters[FAY_INTERFACE_PARAMETERS];
	bool open; /* a helper's arguments may follow */
	bool result;
	const char *wrong;
};

static bool bad(struct text *t, const char *what)
{
	if (!t->wrong)
		t->wrong = what;
	return false;
}

/* ---- words ---- */

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of the line; empty at its end. */
static bool word(struct text *t, struct name *w)
{
	size_t size = 0;

	while (t->at < t->end && blank(*t->at))
		t->at++;
	t->word = t->at;
	while (t->at < t->end && !blank(*t->at) && size + 1 < WORD)
		w->text[size++] = *t->at++;
	w->text[size] = 0;
	return size + 1 < WORD || bad(t, "the word is too long");
}

static bool is(const struct name *w, const char *text)
{
	return !strcmp(w->text, text);
}

static bool end(struct text *t)
{
	struct name w;

	return word(t, &w) && (!*w.text || bad(t, "something follows"));
}

static bool name(struct text *t, struct name *w)
{
	if (!word(t, w))
		return false;
	for (const char *c = w->text; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_')
			return bad(t, "a name has letters, digits and _ only");
	return *w->text || bad(t, "a name is missing");
}

/* An integer of 64 bits; *negative: signed. */
static bool integer(struct text *t, uint64_t *n, bool *negative)
{
	unsigned base = 10;
	struct name w;
	const char *c = w.text;

	if (!word(t, &w))
		return false;
	*n = 0;
	*negative = *c == '-';
	c += *negative;
	if (c[0] == '0' && c[1] == 'x') {
		base = 16;
		c += 2;
	}
	if (!*c)
		return bad(t, "a number is missing");
	for (; *c; c++) {
		unsigned digit = isdigit((unsigned char)*c) ? (unsigned)(*c - '0')
				 : *c >= 'a' && *c <= 'f'   ? (unsigned)(*c - 'a') + 10
							    : 16;

		if (digit >= base)
			return bad(t, "this is no number");
		if (__builtin_mul_overflow(*n, base, n) || __builtin_add_overflow(*n, digit, n))
			return bad(t, "the number has more than 64 bits");
	}
	if (*negative && *n > (uint64_t)1 << 63)
		return bad(t, "the number has more than 64 bits");
	*n = *negative ? 0 - *n : *n;
	return true;
}

static bool number(struct text *t, uint64_t most, uint64_t *n)
{
	bool negative;

	return integer(t, n, &negative) &&
	       ((!negative && *n <= most) || bad(t, "the number is out of range"));
}

static bool range(struct text *t, struct fay_interface_value *v)
{
	bool negative, signed_too;
	uint64_t lo;

	*v = (struct fay_interface_value){ .kind = FAY_VALUE_NUMBER };
	if (!integer(t, &lo, &negative) ||
	    (!negative && lo > INT64_MAX && bad(t, "the least number is out of range")) ||
	    !integer(t, &v->hi, &signed_too))
		return false;
	v->lo = (int64_t)lo;
	if (negative ? (!signed_too && v->hi > INT64_MAX) || (int64_t)v->hi < v->lo
		     : signed_too || v->hi < lo)
		return bad(t, "the greatest number is less than the least, or has another sign");
	return !t->wrong;
}

/* ---- names ---- */

static bool declare(struct text *t, struct name *names, uint32_t *count, uint32_t most)
{
	struct name w;

	if (!name(t, &w))
		return false;
	for (uint32_t i = 0; i < *count; i++)
		if (is(&names[i], w.text))
			return bad(t, "the name is taken");
	if (*count == most)
		return bad(t, "there are too many of them");
	names[(*count)++] = w;
	return true;
}

static bool region_of(struct text *t, uint8_t *region)
{
	struct name w;

	if (!name(t, &w))
		return false;
	for (uint32_t i = 0; i < t->to->region_count; i++)
		if (is(&t->regions[i], w.text)) {
			*region = (uint8_t)i;
			return true;
		}
	return bad(t, "no region of this name was declared");
}

/* Words for permissions, until the line ends. */
static bool permissions(struct text *t, uint8_t *mask)
{
	static const struct {
		const char *word;
		uint8_t bit;
	} all[] = { { "read", FAY_REGION_READ },
		    { "write", FAY_REGION_WRITE },
		    { "filled", FAY_REGION_FILLED },
		    { "constant", FAY_REGION_CONSTANT } };
	struct name w;

	for (;;) {
		unsigned i = 0;

		if (!word(t, &w))
			return false;
		if (!*w.text)
			return true;
		while (i < 4 && !is(&w, all[i].word))
			i++;
		if (i == 4 || *mask & all[i].bit)
			return bad(t, "read, write, filled or constant, each once, is wanted");
		*mask |= all[i].bit;
	}
}

/* ---- declarations ---- */

/* region NAME fixed|passed|local SIZE aligned N PERMISSION... */
static bool read_region(struct text *t)
{
	static const char *const extents[] = { NULL, "fixed", "passed", "local" };
	struct fay_interface_region *r = &t->to->region[t->to->region_count];
	uint64_t size, alignment;
	struct name w;

	if (!declare(t, t->regions, &t->to->region_count, FAY_INTERFACE_REGIONS) || !word(t, &w))
		return false;
	for (unsigned i = FAY_EXTENT_FIXED; i <= FAY_EXTENT_LOCAL; i++)
		if (is(&w, extents[i]))
			r->extent = (uint8_t)i;
	if (!r->extent)
		return bad(t, "fixed, passed or local is wanted");
	if (!number(t, FAY_INTERFACE_SIZE, &size) || !word(t, &w))
		return false;
	if (!is(&w, "aligned"))
		return bad(t, "aligned is wanted");
	if (!number(t, FAY_INTERFACE_ALIGNMENT, &alignment))
		return false;
	r->size = (uint32_t)size;
	r->alignment = (uint32_t)alignment;
	return permissions(t, &r->permission);
}

/* field REGION OFFSET SIZE PERMISSION...; they are kept in order */
static bool read_field(struct text *t)
{
	struct fay_interface_field f = { 0 }, *all = t->to->field;
	uint64_t offset, size;
	uint32_t at = t->to->field_count;

	if (at == FAY_INTERFACE_FIELDS)
		return bad(t, "there are too many of them");
	if (!region_of(t, &f.region) || !number(t, FAY_INTERFACE_SIZE, &offset) ||
	    !number(t, FAY_INTERFACE_SIZE, &size) || !permissions(t, &f.permission))
		return false;
	f.offset = (uint32_t)offset;
	f.size = (uint32_t)size;
	for (; at && (all[at - 1].region > f.region ||
		      (all[at - 1].region == f.region && all[at - 1].offset > f.offset));
	     at--)
		all[at] = all[at - 1];
	all[at] = f;
	t->to->field_count++;
	return true;
}

/* number LO HI | start REGION */
static bool read_plain(struct text *t, const struct name *kind, struct fay_interface_value *v)
{
	if (is(kind, "number"))
		return range(t, v) && end(t);
	if (!is(kind, "start"))
		return bad(t, "what it is, is not known");
	v->kind = FAY_VALUE_START;
	return region_of(t, &v->of) && end(t);
}

/* parameter NAME number LO HI | start REGION | size REGION LEAST */
static bool read_parameter(struct text *t)
{
	struct fay_interface_value *v = &t->to->parameter[t->to->parameter_count];
	struct name kind;
	uint64_t least;

	if (!declare(t, t->parameters, &t->to->parameter_count, FAY_INTERFACE_PARAMETERS) ||
	    !word(t, &kind))
		return false;
	if (!is(&kind, "size"))
		return read_plain(t, &kind, v);
	v->kind = FAY_VALUE_SIZE;
	if (!region_of(t, &v->of) || !number(t, FAY_INTERFACE_SIZE, &least))
		return false;
	v->lo = (int64_t)least;
	v->hi = t->to->region[v->of].size;
	return end(t);
}

/* helper NAME cost N [result LO HI] */
static bool read_helper(struct text *t)
{
	struct fay_interface_helper *h = &t->to->helper[t->to->helper_count];
	struct name w;
	uint64_t cost;

	if (t->to->helper_count == FAY_INTERFACE_HELPERS)
		return bad(t, "there are too many of them");
	if (!name(t, &w))
		return false;
	if (strlen(w.text) >= sizeof(h->name))
		return bad(t, "the name is too long");
	memcpy(h->name, w.text, strlen(w.text));
	t->to->helper_count++;
	t->open = true;
	if (!word(t, &w))
		return false;
	if (!is(&w, "cost"))
		return bad(t, "cost is wanted");
	if (!number(t, FAY_INTERFACE_COST, &cost) || !word(t, &w))
		return false;
	h->cost = (uint32_t)cost;
	if (!*w.text)
		return true;
	return (is(&w, "result") || bad(t, "result is wanted")) && range(t, &h->result) && end(t);
}

/* ends REGION */
static bool read_ends(struct text *t)
{
	uint8_t region;

	if (!t->open)
		return bad(t, "what a helper ends belongs behind it");
	if (!region_of(t, &region))
		return false;
	if (t->to->region[region].extent == FAY_EXTENT_LOCAL)
		return bad(t, "local state ends with its instance only");
	t->to->helper[t->to->helper_count - 1].ends |= 1u << region;
	return end(t);
}

/* argument number LO HI | start REGION | read|write BYTES | read|write by ARGUMENT */
static bool read_argument(struct text *t)
{
	struct fay_interface_value *v;
	struct name kind, w;
	const char *before;
	uint32_t at = 0;
	uint64_t n;

	if (!t->open)
		return bad(t, "an argument belongs behind its helper");
	v = t->to->helper[t->to->helper_count - 1].argument;
	while (at < FAY_INTERFACE_PARAMETERS && v[at].kind)
		at++;
	if (at == FAY_INTERFACE_PARAMETERS)
		return bad(t, "there are too many of them");
	v += at;
	if (!word(t, &kind))
		return false;
	if (!is(&kind, "read") && !is(&kind, "write"))
		return read_plain(t, &kind, v);
	v->kind = is(&kind, "read") ? FAY_VALUE_READ : FAY_VALUE_WRITE;
	before = t->at;
	if (!word(t, &w))
		return false;
	if (is(&w, "by")) {
		if (!number(t, FAY_INTERFACE_PARAMETERS, &n))
			return false;
		v->count = (uint8_t)n;
		return (n || bad(t, "the first argument is 1")) && end(t);
	}
	t->at = before;
	return number(t, FAY_INTERFACE_SIZE, &v->hi) && end(t);
}

static bool read_result(struct text *t)
{
	if (t->result)
		return bad(t, "there is a result already");
	t->result = true;
	return range(t, &t->to->result) && end(t);
}

/* limit instructions|stack N */
static bool read_limit(struct text *t)
{
	struct name w;
	uint64_t n;
	bool stack;

	if (!word(t, &w))
		return false;
	stack = is(&w, "stack");
	if (!stack && !is(&w, "instructions"))
		return bad(t, "instructions or stack is wanted");
	if (stack ? t->to->max_stack : t->to->max_instructions)
		return bad(t, "there is such a limit already");
	if (!number(t, stack ? UINT32_MAX : UINT64_MAX, &n))
		return false;
	if (stack)
		t->to->max_stack = (uint32_t)n;
	else
		t->to->max_instructions = n;
	return (n || bad(t, "a limit is above 0")) && end(t);
}

/* speculation confined */
static bool read_speculation(struct text *t)
{
	struct name w;

	if (!word(t, &w))
		return false;
	t->to->confined = 1;
	return (is(&w, "confined") || bad(t, "confined is wanted")) && end(t);
}

static bool read_line(struct text *t)
{
	static const struct {
		const char *word;
		bool (*read)(struct text *t);
	} all[] = { { "region", read_region },
		    { "field", read_field },
		    { "parameter", read_parameter },
		    { "helper", read_helper },
		    { "argument", read_argument },
		    { "result", read_result },
		    { "limit", read_limit },
		    { "ends", read_ends },
		    { "speculation", read_speculation } };
	struct name w;

	if (!word(t, &w))
		return false;
	if (!*w.text)
		return true;
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!is(&w, all[i].word))
			continue;
		t->open &= is(&w, "argument") || is(&w, "ends");
		return all[i].read(t);
	}
	return bad(t, "no declaration begins so");
}

static bool refuse(struct fay_interface *interface, unsigned line, unsigned column,
		   const char *what, char *message, size_t message_size)
{
	memset(interface, 0, sizeof(*interface));
	snprintf(message, message_size, "%u:%u: %s", line, column, what);
	return false;
}

bool fay_host_compile(const char *text, size_t size, struct fay_interface *interface,
		      struct fay_host_names *names, char *message, size_t message_size)
{
	struct text t = { .at = text, .to = interface };
	const char *stop = text + size;

	memset(interface, 0, sizeof(*interface));
	memcpy(interface->magic, FAY_INTERFACE_MAGIC, sizeof(interface->magic));
	if (size > FAY_HOST_TEXT)
		return refuse(interface, 1, 1, "the text has more than 64 KiB", message,
			      message_size);
	while (t.at < stop) {
		const char *newline = memchr(t.at, '\n', (size_t)(stop - t.at));
		const char *after = newline ? newline + 1 : stop, *comment;

		t.number++;
		t.line = t.word = t.at;
		t.end = newline ? newline : stop;
		comment = memchr(t.line, '#', (size_t)(t.end - t.line));
		if (comment)
			t.end = comment;
		if (memchr(t.line, 0, (size_t)(t.end - t.line)))
			bad(&t, "a byte that is no text");
		if (t.wrong || !read_line(&t))
			return refuse(interface, t.number, (unsigned)(t.word - t.line) + 1, t.wrong,
				      message, message_size);
		t.at = after;
	}
	if (!interface->max_instructions)
		interface->max_instructions = INSTRUCTIONS;
	if (!interface->max_stack)
		interface->max_stack = STACK;
	if (!fay_read_interface(interface))
		return refuse(interface, t.number, 1, "the declarations do not fit each other",
			      message, message_size);
	for (uint32_t i = 0; names && i < FAY_INTERFACE_REGIONS; i++)
		memcpy(names->region[i], t.regions[i].text, FAY_HOST_NAME);
	for (uint32_t i = 0; names && i < FAY_INTERFACE_PARAMETERS; i++)
		memcpy(names->parameter[i], t.parameters[i].text, FAY_HOST_NAME);
	return true;
}

void fay_host_policy(const struct fay_interface *interface, struct fay_policy *policy)
{
	fay_policy_default(policy);
	policy->max_instructions = interface->max_instructions;
	policy->max_stack = interface->max_stack;
	policy->allow_helpers = UINT64_MAX;
	policy->speculation_confined = interface->confined;
}
