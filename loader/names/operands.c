/* SPDX-License-Identifier: MIT */
/*
 *	arguments := [argument {" " argument}]
 *	argument  := ["-"] size "@" operand              "-" signed; size 1, 2, 4 or 8
 *	operand   := "$" sum | "%" register | ["&"] [sum] ["(" ["%" register] ["," "%" register
 *		  ["," scale]] ")"]                  "&" the address itself, which no note has
 *	sum       := ["-"] term {("+" | "-") term} at most one term is a symbol, and it is added
 *	term      := number | symbol
 *
 * The text is of a file that may be anything; every step consumes some of it, and what is not of
 * this form is a problem of the argument, not of the marker: a query that does not read it can be
 * served.
 */
#include "operands_private.h"

#include <string.h>

struct cursor {
	const char *at, *end;
};

static bool take(struct cursor *c, char expected)
{
	if (c->at == c->end || *c->at != expected)
		return false;
	c->at++;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_symbol_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
	       c == '.' || c == '$';
}

static int digit_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

/* Decimal, 0x hexadecimal or 0 octal; false if it is none or needs more than 64 bits. */
static bool take_number(struct cursor *c, uint64_t *value)
{
	unsigned base = 10;

	if (c->at == c->end || !is_digit(*c->at))
		return false;
	if (*c->at == '0' && c->end - c->at > 1 && (c->at[1] == 'x' || c->at[1] == 'X')) {
		base = 16;
		c->at += 2;
		if (c->at == c->end || digit_value(*c->at) >= 16)
			return false;
	} else if (*c->at == '0') {
		base = 8;
	}
	for (*value = 0; c->at < c->end && (unsigned)digit_value(*c->at) < base; c->at++)
		if (__builtin_mul_overflow(*value, (uint64_t)base, value) ||
		    __builtin_add_overflow(*value, (uint64_t)digit_value(*c->at), value))
			return false;
	return true;
}

static bool take_symbol(struct cursor *c, struct fay_parsed_operand *parsed)
{
	const char *start = c->at;

	while (c->at < c->end && is_symbol_char(*c->at))
		c->at++;
	if (c->at == start || parsed->symbol)
		return false;
	parsed->symbol = start;
	parsed->symbol_length = (size_t)(c->at - start);
	return true;
}

/* Wraps around as the assembler's arithmetic does. */
static bool take_sum(struct cursor *c, struct fay_parsed_operand *parsed)
{
	bool minus = take(c, '-');

	for (;;) {
		uint64_t number;

		if (c->at < c->end && is_digit(*c->at)) {
			if (!take_number(c, &number))
				return false;
			parsed->operand.value = (int64_t)((uint64_t)parsed->operand.value +
							  (minus ? -number : number));
		} else if (minus || !take_symbol(c, parsed)) {
			return false;
		}
		minus = take(c, '-');
		if (!minus && !take(c, '+'))
			return true;
	}
}

struct register_name {
	char name[5];
	uint8_t number, size;
	bool high_byte;
};

/* The numbered registers' names are made: r8, r8d, r8w, r8b. */
static bool numbered_register(const char *name, size_t length, struct register_name *found)
{
	unsigned number = length > 1 && is_digit(name[1]) ? (unsigned)(name[1] - '0') : 0;
	size_t at = 2;

	if (length < 2 || name[0] != 'r')
		return false;
	if (length > 2 && is_digit(name[2])) {
		number = number * 10 + (unsigned)(name[2] - '0');
		at = 3;
	}
	if (number < 8 || number > 15 || (name[1] == '0') || length > at + 1)
		return false;
	found->number = (uint8_t)number;
	found->size = length == at      ? 8
		      : name[at] == 'd' ? 4
		      : name[at] == 'w' ? 2
		      : name[at] == 'b' ? 1
					: 0;
	return found->size != 0;
}

static bool find_register(const char *name, size_t length, struct register_name *found)
{
	static const struct register_name names[] = {
		{ "rax", 0, 8, 0 }, { "eax", 0, 4, 0 }, { "ax", 0, 2, 0 },  { "al", 0, 1, 0 },
		{ "ah", 0, 1, 1 },  { "rcx", 1, 8, 0 }, { "ecx", 1, 4, 0 }, { "cx", 1, 2, 0 },
		{ "cl", 1, 1, 0 },  { "ch", 1, 1, 1 },  { "rdx", 2, 8, 0 }, { "edx", 2, 4, 0 },
		{ "dx", 2, 2, 0 },  { "dl", 2, 1, 0 },  { "dh", 2, 1, 1 },  { "rbx", 3, 8, 0 },
		{ "ebx", 3, 4, 0 }, { "bx", 3, 2, 0 },  { "bl", 3, 1, 0 },  { "bh", 3, 1, 1 },
		{ "rsp", 4, 8, 0 }, { "esp", 4, 4, 0 }, { "sp", 4, 2, 0 },  { "spl", 4, 1, 0 },
		{ "rbp", 5, 8, 0 }, { "ebp", 5, 4, 0 }, { "bp", 5, 2, 0 },  { "bpl", 5, 1, 0 },
		{ "rsi", 6, 8, 0 }, { "esi", 6, 4, 0 }, { "si", 6, 2, 0 },  { "sil", 6, 1, 0 },
		{ "rdi", 7, 8, 0 }, { "edi", 7, 4, 0 }, { "di", 7, 2, 0 },  { "dil", 7, 1, 0 },
	};

	*found = (struct register_name){ 0 };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strlen(names[i].name) == length && !memcmp(names[i].name, name, length)) {
			*found = names[i];
			return true;
		}
	return numbered_register(name, length, found);
}

/* "%name"; *rip is set for rip, which is no register of the table. */
static bool take_register(struct cursor *c, struct register_name *found, bool *rip)
{
	const char *start = c->at + 1;

	if (!take(c, '%'))
		return false;
	while (c->at < c->end && (is_digit(*c->at) || (*c->at >= 'a' && *c->at <= 'z')))
		c->at++;
	*rip = c->at - start == 3 && !memcmp(start, "rip", 3);
	return *rip || find_register(start, (size_t)(c->at - start), found);
}

static const char *parse_register(struct cursor *c, struct fay_operand *operand)
{
	struct register_name found;
	bool rip;

	if (!take_register(c, &found, &rip) || rip)
		return "is in a register that USDT probes do not use";
	operand->form = FAY_OPERAND_REGISTER;
	operand->base = found.number;
	operand->high_byte = found.high_byte;
	if (found.size < operand->size)
		operand->size = found.size;
	return NULL;
}

static const char malformed[] = "is not written as an operand";

static const char *parse_index(struct cursor *c, struct fay_operand *operand)
{
	struct register_name found;
	uint64_t scale;
	bool rip;

	if (!take_register(c, &found, &rip) || rip || found.size != 8 || found.number == 4)
		return malformed;
	operand->index = found.number;
	if (!take(c, ','))
		return NULL;
	if (!take_number(c, &scale) || (scale != 1 && scale != 2 && scale != 4 && scale != 8))
		return malformed;
	operand->scale = (uint8_t)scale;
	return NULL;
}

/* What stands in the parentheses, behind the first. */
static const char *parse_base(struct cursor *c, struct fay_parsed_operand *parsed)
{
	struct fay_operand *operand = &parsed->operand;
	const char *problem = NULL;
	struct register_name found;
	bool rip = false;

	if (c->at < c->end && *c->at == '%') {
		if (!take_register(c, &found, &rip) || (!rip && found.size != 8))
			return malformed;
		if (rip && !parsed->symbol)
			return "is relative to an instruction that the note does not name";
		if (!rip)
			operand->base = found.number;
	}
	if (!rip && take(c, ','))
		problem = parse_index(c, operand);
	if (problem || !take(c, ')'))
		return problem ? problem : malformed;
	return NULL;
}

static const char *parse_operand(struct cursor *c, struct fay_parsed_operand *parsed)
{
	struct fay_operand *operand = &parsed->operand;
	const char *problem = NULL;

	if (c->at < c->end && *c->at == '%')
		problem = parse_register(c, operand);
	else if (take(c, '$')) {
		operand->form = FAY_OPERAND_CONSTANT;
		problem = take_sum(c, parsed) ? NULL : malformed;
	} else {
		operand->form = take(c, '&') ? FAY_OPERAND_ADDRESS : FAY_OPERAND_MEMORY;
		if (c->at < c->end && *c->at != '(' && !take_sum(c, parsed))
			return malformed;
		if (take(c, '('))
			problem = parse_base(c, parsed);
	}
	return !problem && c->at != c->end ? malformed : problem;
}

static const char *parse_argument(struct cursor c, struct fay_parsed_operand *parsed)
{
	struct fay_operand *operand = &parsed->operand;
	uint64_t size;

	*parsed = (struct fay_parsed_operand){ .operand = { .base = FAY_OPERAND_NO_REGISTER,
							    .index = FAY_OPERAND_NO_REGISTER,
							    .scale = 1 } };
	operand->is_signed = take(&c, '-');
	if (!take_number(&c, &size) || (size != 1 && size != 2 && size != 4 && size != 8))
		return "has no size that is known";
	operand->size = (uint8_t)size;
	if (take(&c, 'f'))
		return "is a floating-point number, which event.arg does not hold";
	if (!take(&c, '@') || c.at == c.end)
		return malformed;
	return parse_operand(&c, parsed);
}

unsigned fay_operands_parse(const char *text, size_t length,
			    struct fay_parsed_operand parsed[FAY_MARKER_MAX_ARGUMENTS])
{
	const char *end = text + length;
	unsigned count = 0;

	while (text < end && count < FAY_MARKER_MAX_ARGUMENTS) {
		const char *space = memchr(text, ' ', (size_t)(end - text));
		const char *stop = space ? space : end;

		if (stop > text) {
			const char *problem =
				parse_argument((struct cursor){ text, stop }, &parsed[count]);

			parsed[count++].problem = problem;
		}
		text = space ? space + 1 : end;
	}
	return count;
}
