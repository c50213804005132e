/* SPDX-License-Identifier: MIT */
/* JSON (RFC 8259) of a client, who is not believed: no recursion, and bounds on what is kept. */
#include <stdlib.h>
#include <string.h>

#include "parts.h"

struct reader {
	struct fay_json *json;
	size_t at;
	uint32_t open[FAY_LSP_DEPTH_MAX]; /* arrays and objects, the innermost last */
	size_t depth;
};

static int peek(const struct reader *r)
{
	return r->at < r->json->size ? (unsigned char)r->json->text[r->at] : -1;
}

static void skip_space(struct reader *r)
{
	while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\n' || peek(r) == '\r')
		r->at++;
}

static struct fay_json_value *add(struct reader *r, enum fay_json_kind kind, size_t begin)
{
	struct fay_json *json = r->json;
	if (json->count == FAY_LSP_VALUES_MAX)
		return NULL;
	if (json->count == json->room) {
		uint32_t room = json->room ? 2 * json->room : 64;
		struct fay_json_value *values = realloc(json->values, room * sizeof(*values));
		if (!values)
			return NULL;
		json->values = values;
		json->room = room;
	}
	struct fay_json_value *value = &json->values[json->count++];
	*value = (struct fay_json_value){ kind, (uint32_t)begin, (uint32_t)begin, json->count };
	return value;
}

static int hex(const char *at)
{
	int value = 0;
	for (unsigned i = 0; i < 4; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *digit =
			at[i] ? strchr(digits, at[i] | (at[i] >= 'A' ? 0x20 : 0)) : NULL;
		if (!digit)
			return -1;
		value = value * 16 + (int)(digit - digits);
	}
	return value;
}

static bool read_string(struct reader *r)
{
	const struct fay_json *json = r->json;
	struct fay_json_value *value = add(r, JSON_STRING, ++r->at);
	if (!value)
		return false;
	for (; peek(r) != '"'; r->at++) {
		if (peek(r) < 0x20)
			return false; /* the end, too */
		if (peek(r) != '\\')
			continue;
		r->at++;
		if (peek(r) <= 0 || !strchr("\"\\/bfnrtu", peek(r)))
			return false;
		if (peek(r) == 'u' && (json->size - r->at < 5 || hex(json->text + r->at + 1) < 0))
			return false;
	}
	value->end = (uint32_t)r->at++;
	return true;
}

static bool read_digits(struct reader *r)
{
	size_t begin = r->at;
	while (peek(r) >= '0' && peek(r) <= '9')
		r->at++;
	return r->at > begin;
}

static bool read_number(struct reader *r)
{
	struct fay_json_value *value = add(r, JSON_NUMBER, r->at);
	if (!value)
		return false;
	r->at += peek(r) == '-';
	bool zero = peek(r) == '0';
	size_t begin = r->at;
	if (!read_digits(r) || (zero && r->at > begin + 1))
		return false;
	if (peek(r) == '.' && (r->at++, !read_digits(r)))
		return false;
	if (peek(r) == 'e' || peek(r) == 'E') {
		r->at++;
		r->at += peek(r) == '+' || peek(r) == '-';
		if (!read_digits(r))
			return false;
	}
	value->end = (uint32_t)r->at;
	return true;
}

static bool read_word(struct reader *r)
{
	static const char *const words[] = { "null", "true", "false" };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t length = strlen(words[i]);
		if (r->json->size - r->at < length ||
		    memcmp(r->json->text + r->at, words[i], length) != 0)
			continue;
		struct fay_json_value *value = add(r, i ? JSON_BOOL : JSON_NULL, r->at);
		r->at += length;
		if (value)
			value->end = (uint32_t)r->at;
		return value;
	}
	return false;
}

static bool read_key(struct reader *r)
{
	skip_space(r);
	if (peek(r) != '"' || !read_string(r))
		return false;
	skip_space(r);
	return peek(r) == ':' && ++r->at;
}

/* A value that has no others in it, or the begin of one that has: *opened. */
static bool read_value(struct reader *r, bool *opened)
{
	skip_space(r);
	int c = peek(r);
	*opened = c == '[' || c == '{';
	if (c == '"')
		return read_string(r);
	if (c == '-' || (c >= '0' && c <= '9'))
		return read_number(r);
	if (!*opened)
		return read_word(r);
	if (r->depth == FAY_LSP_DEPTH_MAX || !add(r, c == '[' ? JSON_ARRAY : JSON_OBJECT, r->at++))
		return false;
	r->open[r->depth++] = r->json->count - 1;
	return true;
}

/* Behind a value: ends what ends there; false: the text is off. *more: another value follows. */
static bool read_behind(struct reader *r, bool opened, bool *more)
{
	while (r->depth) {
		struct fay_json_value *outer = &r->json->values[r->open[r->depth - 1]];
		bool is_object = outer->kind == JSON_OBJECT;
		skip_space(r);
		*more = true;
		if (peek(r) == (is_object ? '}' : ']')) {
			outer->end = (uint32_t)++r->at;
			outer->next = r->json->count;
			r->depth--;
			opened = false;
			continue;
		}
		if (!opened && (peek(r) != ',' || !++r->at))
			return false;
		return !is_object || read_key(r);
	}
	*more = false;
	return true;
}

bool fay_json_parse(struct fay_json *json, const char *text, size_t size)
{
	struct reader r = { .json = json };
	bool more = true, opened;
	*json = (struct fay_json){ .text = text, .size = size };
	if (size > FAY_LSP_MESSAGE_MAX)
		return false;
	while (more)
		if (!read_value(&r, &opened) || !read_behind(&r, opened, &more))
			return false;
	skip_space(&r);
	return r.at == size;
}

void fay_json_deinit(struct fay_json *json)
{
	free(json->values);
	*json = (struct fay_json){ 0 };
}

static char *put_utf8(char *out, unsigned c)
{
	if (c < 0x80) {
		*out++ = (char)c;
		return out;
	}
	if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		*out++ = (char)(0xf0 | c >> 18);
		*out++ = (char)(0x80 | (c >> 12 & 0x3f));
		*out++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*out++ = (char)(0x80 | (c & 0x3f));
	return out;
}

/* An escape of UTF-16 behind its `u`; half a pair is U+FFFD. */
static const char *read_unit(const char *at, const char *end, unsigned *c)
{
	*c = (unsigned)hex(at);
	at += 4;
	if (*c < 0xd800 || *c > 0xdfff)
		return at;
	int low = *c < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u' ? hex(at + 2) : -1;
	if (low < 0xdc00 || low > 0xdfff) {
		*c = 0xfffd;
		return at;
	}
	*c = 0x10000 + ((*c - 0xd800) << 10) + ((unsigned)low - 0xdc00);
	return at + 6;
}

char *fay_json_bytes(const struct fay_json *json, const struct fay_json_value *string, size_t *size)
{
	static const char escapes[] = "\"\"\\\\//b\bf\fn\nr\rt\t"; /* what stands, what is meant */
	char *bytes = NULL, *out;
	if (string && string->kind == JSON_STRING)
		bytes = malloc(string->end - string->begin + 1u); /* an escape is longer */
	if (!bytes)
		return NULL;
	out = bytes;
	const char *at = json->text + string->begin, *end = json->text + string->end;
	while (at < end) {
		unsigned c = 0;
		if (*at != '\\') {
			*out++ = *at++;
			continue;
		}
		at += 2;
		if (at[-1] == 'u') {
			at = read_unit(at, end, &c);
			out = put_utf8(out, c);
			continue;
		}
		for (size_t i = 0; escapes[i]; i += 2)
			if (escapes[i] == at[-1])
				*out++ = escapes[i + 1];
	}
	*out = 0;
	*size = (size_t)(out - bytes);
	return bytes;
}

/* Clients escape more than they must: Neovim each slash. */
bool fay_json_is(const struct fay_json *json, const struct fay_json_value *string, const char *text)
{
	size_t length = strlen(text), size;
	if (!string || string->kind != JSON_STRING)
		return false;
	const char *raw = json->text + string->begin;
	if (!memchr(raw, '\\', string->end - string->begin))
		return string->end - string->begin == length && !memcmp(raw, text, length);
	char *bytes = fay_json_bytes(json, string, &size);
	bool same = bytes && size == length && !memcmp(bytes, text, length);
	free(bytes);
	return same;
}

const struct fay_json_value *fay_json_member(const struct fay_json *json,
					     const struct fay_json_value *object, const char *key)
{
	if (!object || object->kind != JSON_OBJECT)
		return NULL;
	for (const struct fay_json_value *at = object + 1, *end = json->values + object->next;
	     at < end; at = json->values + at[1].next)
		if (fay_json_is(json, at, key))
			return at + 1;
	return NULL;
}

bool fay_json_count(const struct fay_json *json, const struct fay_json_value *number,
		    uint32_t *count)
{
	uint64_t value = 0;
	if (!number || number->kind != JSON_NUMBER || number->end - number->begin > 10)
		return false;
	for (const char *at = json->text + number->begin; at < json->text + number->end; at++) {
		if (*at < '0' || *at > '9')
			return false;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	*count = (uint32_t)value;
	return value < 1u << 31;
}
