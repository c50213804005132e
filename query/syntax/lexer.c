/* SPDX-License-Identifier: MIT */
/*
 * Text to tokens. Keywords are contextual, as in C#: `from`, `where` and the rest come out as names
 * and the parser decides. Identifiers are ASCII; strings and comments may hold any bytes.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "syntax.h"

/* Longest first among operators with a common beginning. `->`: what the kernel's sources write for
 * a member behind a pointer. */
static const struct {
	char text[4];
	enum fay_operator op;
} operators[] = {
	{ ">>>", OPERATOR_SHR_LOGICAL }, { "<<", OPERATOR_SHL },
	{ ">>", OPERATOR_SHR },          { "<=", OPERATOR_LE },
	{ ">=", OPERATOR_GE },           { "==", OPERATOR_EQ },
	{ "!=", OPERATOR_NE },           { "=>", OPERATOR_ARROW },
	{ "&&", OPERATOR_AND },          { "||", OPERATOR_OR },
	{ "(", OPERATOR_OPEN },          { ")", OPERATOR_CLOSE },
	{ "{", OPERATOR_OPEN_BRACE },    { "}", OPERATOR_CLOSE_BRACE },
	{ ",", OPERATOR_COMMA },         { ".", OPERATOR_DOT },
	{ ";", OPERATOR_SEMICOLON },     { "?", OPERATOR_QUESTION },
	{ ":", OPERATOR_COLON },         { "=", OPERATOR_ASSIGN },
	{ "|", OPERATOR_BIT_OR },        { "^", OPERATOR_BIT_XOR },
	{ "&", OPERATOR_BIT_AND },       { "<", OPERATOR_LT },
	{ "[", OPERATOR_OPEN_BRACKET },  { "]", OPERATOR_CLOSE_BRACKET },
	{ "->", OPERATOR_DOT },          { ">", OPERATOR_GT },
	{ "+", OPERATOR_ADD },           { "-", OPERATOR_SUB },
	{ "*", OPERATOR_MUL },           { "/", OPERATOR_DIV },
	{ "%", OPERATOR_MOD },           { "!", OPERATOR_NOT },
	{ "~", OPERATOR_BIT_NOT },
};
#define OPERATORS (sizeof(operators) / sizeof(operators[0]))

const char *fay_operator_text(enum fay_operator op)
{
	for (size_t i = 0; i < OPERATORS; i++)
		if (operators[i].op == op)
			return operators[i].text;
	return "?";
}

struct lexer {
	struct fay_query *query;
	const char *text;
	uint32_t at, size;
	uint32_t last_end; /* of the token before: where the text is said to end */
};

static struct fay_span span_of(uint32_t start, uint32_t end)
{
	return (struct fay_span){ start, end };
}

static bool starts(const struct lexer *lexer, const char *word)
{
	return strncmp(lexer->text + lexer->at, word, strlen(word)) == 0;
}

static bool skip_blanks(struct lexer *lexer)
{
	for (;;) {
		if (lexer->at < lexer->size && strchr(" \t\r\n\f\v", lexer->text[lexer->at])) {
			lexer->at++;
		} else if (starts(lexer, "//")) {
			while (lexer->at < lexer->size && lexer->text[lexer->at] != '\n')
				lexer->at++;
		} else if (starts(lexer, "/*")) {
			const char *end = strstr(lexer->text + lexer->at + 2, "*/");
			if (!end) {
				fay_query_fail(lexer->query, FAY_E_USAGE,
					       span_of(lexer->at, lexer->at + 2),
					       "this comment has no `*/`");
				return false;
			}
			lexer->at = (uint32_t)(end - lexer->text) + 2;
		} else {
			return true;
		}
	}
}

static bool is_name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool lex_name(struct lexer *lexer, struct fay_token *token)
{
	uint32_t start = lexer->at;
	while (is_name_byte(lexer->text[lexer->at]))
		lexer->at++;
	token->kind = TOKEN_NAME;
	token->span = span_of(start, lexer->at);
	if (lexer->at - start > FAY_QUERY_MAX_NAME) {
		fay_query_fail(lexer->query, FAY_E_LIMIT, token->span,
			       "a name may have at most %u characters", FAY_QUERY_MAX_NAME);
		return false;
	}
	token->string = fay_query_copy(lexer->query, lexer->text + start, lexer->at - start);
	return token->string != NULL;
}

/* Durations are nanoseconds, sizes are bytes. */
static const struct {
	const char *name;
	uint64_t factor;
} units[] = {
	{ "ns", 1 },         { "us", 1000 },         { "ms", 1000000 },
	{ "s", 1000000000 }, { "min", 60000000000 }, { "h", 3600000000000 },
	{ "KiB", 1 << 10 },  { "MiB", 1 << 20 },     { "GiB", 1 << 30 },
	{ "kB", 1000 },      { "MB", 1000000 },      { "GB", 1000000000 },
};

/* The unit behind a number makes it an integer: 5ms, 1.5s, 16KiB. true: there is one; *fits: the
 * result has 63 bits. */
static bool lex_unit(struct lexer *lexer, struct fay_token *token, bool *fits)
{
	const char *text = lexer->text + lexer->at;
	size_t length = 0;
	while (is_name_byte(text[length]))
		length++;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strlen(units[i].name) != length || memcmp(units[i].name, text, length) != 0)
			continue;
		uint64_t value = token->integer;
		double real = token->real * (double)units[i].factor;
		if (token->kind == TOKEN_REAL) {
			*fits = real < 9e18;
			value = *fits ? (uint64_t)(real + 0.5) : 0;
		} else {
			*fits = !__builtin_mul_overflow(value, units[i].factor, &value) &&
				value <= INT64_MAX;
		}
		token->kind = TOKEN_INTEGER;
		token->integer = value;
		lexer->at += (uint32_t)length;
		return true;
	}
	return false;
}

static void fail_unit(struct lexer *lexer, const struct fay_token *token, uint32_t at)
{
	const char *names[sizeof(units) / sizeof(units[0])];
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		names[i] = units[i].name;
	const char *unit = fay_query_copy(lexer->query, lexer->text + at, lexer->at - at);
	if (unit)
		fay_query_fail(
			lexer->query, FAY_E_USAGE, token->span,
			"unknown unit `%.40s`: there are ns us ms s min h, KiB MiB GiB, kB MB GB%s",
			unit,
			fay_query_did_you_mean(lexer->query, unit, names,
					       sizeof(names) / sizeof(names[0])));
}

/* The number from `start` on, without its separators. false: it is larger than any that there is,
 * or there is no memory. */
static bool read_real(struct lexer *lexer, uint32_t start, double *value)
{
	char *digits = fay_query_alloc(lexer->query, lexer->at - start + 1u);
	size_t length = 0;
	for (uint32_t at = start; digits && at < lexer->at; at++)
		if (lexer->text[at] != '_')
			digits[length++] = lexer->text[at];
	*value = digits ? strtod(digits, NULL) : 0;
	return digits && isfinite(*value);
}

static bool lex_number(struct lexer *lexer, struct fay_token *token)
{
	uint32_t start = lexer->at;
	const char *text = lexer->text + start;
	unsigned base = 10;
	bool overflow = false;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		token->hexadecimal = true;
		lexer->at += 2;
	}
	uint32_t digits = lexer->at;
	for (;; lexer->at++) {
		unsigned char c = (unsigned char)lexer->text[lexer->at];
		if (c == '_' && lexer->at > digits)
			continue; /* C#'s digit separator */
		if (base == 16 ? !isxdigit(c) : !isdigit(c))
			break;
		unsigned digit = (unsigned)(isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
		if (__builtin_mul_overflow(token->integer, base, &token->integer) ||
		    __builtin_add_overflow(token->integer, digit, &token->integer))
			overflow = true;
	}
	token->kind = TOKEN_INTEGER;
	bool empty = lexer->at == digits;
	if (base == 10 && lexer->text[lexer->at] == '.' &&
	    isdigit((unsigned char)lexer->text[lexer->at + 1])) {
		lexer->at++;
		while (isdigit((unsigned char)lexer->text[lexer->at]))
			lexer->at++;
		token->kind = TOKEN_REAL;
		overflow = !read_real(lexer, start, &token->real);
	}
	bool fits = true;
	if (base == 10 && !empty && lex_unit(lexer, token, &fits))
		overflow |= !fits;
	uint32_t unit =
		base == 10 && !empty && is_name_byte(lexer->text[lexer->at]) ? lexer->at : 0;
	while (is_name_byte(lexer->text[lexer->at])) {
		lexer->at++;
		empty = true; /* letters glued to the number */
	}
	token->span = span_of(start, lexer->at);
	if (unit)
		fail_unit(lexer, token, unit);
	else if (empty)
		fay_query_fail(lexer->query, FAY_E_USAGE, token->span, "this is not a number");
	else if (overflow)
		fay_query_fail(lexer->query, FAY_E_USAGE, token->span,
			       "this number does not fit into 64 bits");
	return !empty && !overflow;
}

static bool lex_string(struct lexer *lexer, struct fay_token *token)
{
	static const char escapes[] = "\"\"\\\\''n\nt\tr\r0\0";
	uint32_t start = lexer->at++;
	size_t end = lexer->at;
	while (end < lexer->size && lexer->text[end] != '"' && lexer->text[end] != '\n')
		end += lexer->text[end] == '\\' && end + 1 < lexer->size ? 2 : 1;
	if (end >= lexer->size || lexer->text[end] != '"') {
		fay_query_fail(lexer->query, FAY_E_USAGE, span_of(start, (uint32_t)end),
			       "this string has no closing quote");
		return false;
	}
	char *bytes = fay_query_alloc(lexer->query, end - start);
	if (!bytes)
		return false;
	while (lexer->at < end) {
		char c = lexer->text[lexer->at++];
		if (c == '\\') {
			const char *escape = NULL;
			for (size_t i = 0; i + 1 < sizeof(escapes); i += 2)
				if (escapes[i] == lexer->text[lexer->at])
					escape = &escapes[i + 1];
			if (!escape || !*escape) {
				fay_query_fail(lexer->query, FAY_E_USAGE,
					       span_of(lexer->at - 1, lexer->at + 1),
					       "unknown escape in a string");
				return false;
			}
			c = *escape;
			lexer->at++;
		}
		bytes[token->length++] = c;
	}
	lexer->at = (uint32_t)end + 1;
	token->kind = TOKEN_STRING;
	token->span = span_of(start, lexer->at);
	token->string = bytes;
	return true;
}

static bool lex_operator(struct lexer *lexer, struct fay_token *token)
{
	for (size_t i = 0; i < OPERATORS; i++) {
		if (!starts(lexer, operators[i].text))
			continue;
		token->kind = TOKEN_OPERATOR;
		token->op = operators[i].op;
		token->span = span_of(lexer->at, lexer->at + (uint32_t)strlen(operators[i].text));
		lexer->at = token->span.end;
		return true;
	}
	unsigned char c = (unsigned char)lexer->text[lexer->at];
	struct fay_span span = span_of(lexer->at, lexer->at + 1);
	if (c == '\'')
		fay_query_fail(lexer->query, FAY_E_USAGE, span, "strings are in double quotes");
	else if (c > ' ' && c < 0x7f)
		fay_query_fail(lexer->query, FAY_E_USAGE, span, "unexpected character `%c`", c);
	else
		fay_query_fail(lexer->query, FAY_E_USAGE, span, "unexpected byte 0x%02x", c);
	return false;
}

static bool lex_one(struct lexer *lexer, struct fay_token *token)
{
	if (!skip_blanks(lexer))
		return false;
	char c = lexer->text[lexer->at];
	if (lexer->at >= lexer->size) {
		token->kind = TOKEN_END;
		token->span = span_of(lexer->last_end, lexer->last_end);
		return true;
	}
	if (isalpha((unsigned char)c) || c == '_')
		return lex_name(lexer, token);
	if (isdigit((unsigned char)c))
		return lex_number(lexer, token);
	if (c == '"')
		return lex_string(lexer, token);
	return lex_operator(lexer, token);
}

struct fay_token *fay_query_lex(struct fay_query *query)
{
	struct lexer lexer = { query, query->text, 0, query->size, 0 };
	size_t count = 0, capacity = 256;
	struct fay_token *tokens = fay_query_alloc(query, capacity * sizeof(*tokens));
	while (tokens) {
		if (!lex_one(&lexer, &tokens[count]))
			return NULL;
		lexer.last_end = tokens[count].span.end;
		if (tokens[count++].kind == TOKEN_END)
			return tokens;
		if (count < capacity)
			continue;
		capacity *= 2;
		struct fay_token *more = fay_query_alloc(query, capacity * sizeof(*tokens));
		if (more)
			memcpy(more, tokens, count * sizeof(*tokens));
		tokens = more;
	}
	return NULL;
}
