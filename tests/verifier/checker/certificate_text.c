/* SPDX-License-Identifier: MIT */
/* Certificates as text: see hostile.s.txt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "certificates.h"
#include "verifier/checker/walk.h"
#include "verifier/isa/decode.h"

#define WORDS 300

static const char *const registers[] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					 "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15" };

/* How each entry is written: L location, U number, S signed, R range (two numbers), * the rest. */
static const struct {
	const char *name, *fields;
} entries[] = {
	{ "forget", "L" },      { "registers", "U" },  { "number", "LUR" },
	{ "multiple", "LUSR" }, { "form", "LUS*" },    { "range", "LR" },
	{ "fact", "LLSSR" },    { "fill", "LUSSS" },   { "undefined", "U" },
	{ "vector", "UU" },     { "unwritten", "UU" }, { "kind", "#" }, /* any numbers */
};

struct line {
	char *word[WORDS];
	unsigned words, at;
	bool bad;
};

uint32_t sweep(const struct check_subject *s, uint32_t *starts, uint32_t most)
{
	uint32_t n = 0;
	struct fay_insn insn;

	for (uint64_t at = 0; at < s->text.size && n < most; at += insn.length) {
		enum fay_rule rule = fay_decode_bytes(s->text.bytes + at, s->text.size - at,
						      s->text.start + at, &insn);

		if (rule != FAY_RULE_NONE)
			break;
		starts[n++] = (uint32_t)at;
	}
	return n;
}

void put_header(const struct check_subject *s, bool confined, struct fay_bytes *out)
{
	uint8_t head[HEADER_SIZE] = { 'F', 'A', 'Y', 'C', FAY_CERTIFICATE_VERSION, confined };

	fay_read_fingerprint(s, head + 6);
	fay_bytes_put(out, head, sizeof(head));
}

static const char *next(struct line *l)
{
	if (l->at < l->words)
		return l->word[l->at++];
	l->bad = true;
	return "0";
}

static bool follows(struct line *l, const char *word)
{
	if (l->at == l->words || strcmp(l->word[l->at], word))
		return false;
	l->at++;
	return true;
}

/* Numbers beyond 64 bits are not needed; 2^N is one, too. */
static int64_t number(struct line *l)
{
	const char *w = next(l);
	bool minus = *w == '-';
	char *end;
	uint64_t n;

	if (!strncmp(w + minus, "2^", 2))
		n = (uint64_t)1 << (strtoul(w + minus + 2, &end, 10) & 63);
	else
		n = strtoull(w + minus, &end, 0);
	l->bad |= *end != '\0';
	return (int64_t)(minus ? -n : n);
}

/* A register, or sp-8:4, four bytes from there on. */
static uint64_t location(struct line *l)
{
	const char *w = next(l);
	unsigned at, size;

	for (unsigned i = 0; i < 16; i++)
		if (!strcmp(w, registers[i]))
			return i;
	if (sscanf(w, "sp-%u:%u", &at, &size) == 2 && at && size)
		return LOCATION_STACK + 4 * (uint64_t)(at - 1) + (uint64_t)__builtin_ctz(size);
	return strtoull(w, NULL, 0);
}

static void put_entry(struct line *l, struct fay_bytes *out)
{
	const char *name = next(l), *fields = NULL;
	int64_t lo;

	for (unsigned i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (!strcmp(name, entries[i].name)) {
			fields = entries[i].fields;
			if (*fields != '#')
				fay_bytes_number(out, i);
		}
	l->bad |= !fields;
	for (; fields && *fields; fields++) {
		switch (*fields) {
		case 'L': fay_bytes_number(out, location(l)); break;
		case 'U': fay_bytes_number(out, (uint64_t)number(l)); break;
		case 'S': fay_bytes_signed(out, number(l)); break;
		case 'R':
			lo = number(l);
			fay_bytes_signed(out, lo);
			fay_bytes_number(out, (uint64_t)number(l) - (uint64_t)lo);
			break;
		case '*': /* variable, factor, ... */
			fay_bytes_number(out, (l->words - l->at) / 2);
			while (l->at < l->words) {
				fay_bytes_number(out, (uint64_t)number(l));
				fay_bytes_signed(out, number(l));
			}
			break;
		default:
			while (l->at < l->words)
				fay_bytes_number(out, (uint64_t)number(l));
		}
	}
	l->bad |= l->at != l->words;
}

static void split(char *text, struct line *l)
{
	*l = (struct line){ .words = 0 };
	for (char *w = strtok(text, " \t"); w && l->words < WORDS; w = strtok(NULL, " \t"))
		l->word[l->words++] = w;
}

/*
 * node FIRST COUNT [join|head BODY MEASURE] [cond CC|value LOCATION BOUND] > TARGET...
 *
 * FIRST: number of the instruction in .text, or +OFFSET in bytes; targets are numbers of nodes.
 */
static unsigned put_node(struct line *l, const struct check_subject *s, uint32_t i, int64_t *before,
			 struct fay_bytes *out)
{
	static uint32_t starts[65536];
	uint32_t n = sweep(s, starts, 65536);
	struct fay_bytes loop = { 0 };
	unsigned flags = 0, kind = END_NATURAL;
	const char *first;
	uint64_t count, a = 0;
	int64_t address;

	next(l);
	first = next(l);
	if (*first == '+')
		address = strtoll(first + 1, NULL, 0);
	else
		address = strtoul(first, NULL, 0) < n ? starts[strtoul(first, NULL, 0)] : 0;
	count = (uint64_t)number(l);
	if (follows(l, "join"))
		flags = NODE_JOIN;
	if (follows(l, "head")) {
		flags |= NODE_HEAD;
		fay_bytes_number(&loop, (uint64_t)number(l));
		fay_bytes_number(&loop, (uint64_t)number(l));
	}
	if (follows(l, "cond")) {
		kind = END_CONDITION;
		a = (uint64_t)number(l);
	}
	l->bad |= !follows(l, ">");
	fay_bytes_number(out, count << 2 | flags);
	fay_bytes_signed(out, address - *before);
	*before = address;
	fay_bytes_number(out, (uint64_t)(l->words - l->at) << 2 | kind);
	if (kind != END_NATURAL)
		fay_bytes_number(out, a);
	while (l->at < l->words)
		fay_bytes_signed(out, number(l) - i);
	if (loop.size)
		fay_bytes_put(out, loop.at, loop.size);
	free(loop.at);
	return flags;
}

static void put_list(const struct fay_bytes *list, unsigned n, struct fay_bytes *out)
{
	fay_bytes_number(out, n);
	if (list->size)
		fay_bytes_put(out, list->at, list->size);
}

/* The nodes of a walk, which are then those of the next. */
static void put_walk(struct fay_bytes *nodes, unsigned count, struct fay_bytes *out)
{
	fay_bytes_number(out, count);
	if (nodes->size)
		fay_bytes_put(out, nodes->at, nodes->size);
	nodes->size = 0;
}

bool text_certificate(const struct check_subject *s, const char *text, struct fay_bytes *out)
{
	struct fay_bytes nodes = { 0 }, list = { 0 };
	unsigned flags = 0, in_list = 0, count = 0;
	int64_t before = 0;
	struct line l;
	bool bad = false, confined = strstr(text, "confined") || strstr(text, "second");

	put_header(s, confined, out);
	for (const char *p = text; *p; p += *p == '\n') {
		char copy[4096];
		size_t length = strcspn(p, "\n");

		snprintf(copy, sizeof(copy), "%.*s", (int)length, p);
		p += length;
		split(copy, &l);
		if (!l.words || !strcmp(l.word[0], "confined"))
			continue;
		if (!strcmp(l.word[0], "node") || !strcmp(l.word[0], "second")) {
			if (flags)
				put_list(&list, in_list, &nodes);
			list.size = in_list = flags = 0;
		}
		if (!strcmp(l.word[0], "second")) {
			put_walk(&nodes, count, out);
			count = 0;
			before = 0;
		} else if (!strcmp(l.word[0], "node")) {
			flags = put_node(&l, s, count++, &before, &nodes);
		} else {
			put_entry(&l, &list);
			in_list++;
		}
		bad |= l.bad;
	}
	if (flags)
		put_list(&list, in_list, &nodes);
	put_walk(&nodes, count, out);
	free(nodes.at);
	free(list.at);
	return !bad && count;
}
