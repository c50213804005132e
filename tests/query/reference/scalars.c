/* SPDX-License-Identifier: MIT */
#include "scalars.h"

#define DEPTH 2

static bool have(enum type type)
{
	static const unsigned needs[TYPES] = {
		[TIME] = HAS_TIME, [MODULE] = HAS_MODULE, [CALLER] = HAS_CALLER, [STACK] = HAS_STACK
	};
	return (events_have & needs[type]) == needs[type];
}

static enum type random_type(unsigned types)
{
	enum type type;
	if ((types & OF(INT)) && below(2))
		return INT;
	if ((types & OF(STACK)) && have(STACK) && below(4) == 0)
		return have(CALLER) && below(2) ? CALLER : STACK;
	do
		type = below(TYPES);
	while (!(types >> type & 1) || !have(type));
	return type;
}

struct scalar random_scalar(unsigned types, bool of_few)
{
	struct scalar s = { .type = random_type(types) };
	if (s.type == INT)
		s.tree = of_few ? random_category() : random_tree(false, DEPTH);
	else if (s.type == BOOL)
		s.tree = random_tree(true, DEPTH);
	else if (s.type == NAME)
		s.form = below(3) == 0;
	else if (s.type == STACK)
		s.form = below(3) ? 1 + below(EVENT_FRAMES) : 0;
	return s;
}

void free_scalar(struct scalar *s)
{
	free_tree(s->tree);
}

void print_scalar(FILE *out, const struct scalar *s)
{
	static const char *const texts[TYPES] = {
		[TIME] = "x.time",     [FUNCTION] = "x.function", [NAME] = "x.comm",
		[MODULE] = "x.module", [CALLER] = "x.Caller",     [STACK] = "x.UserStack"
	};
	if (s->tree)
		print_tree(out, s->tree);
	else if (s->type == NAME && s->form)
		fputs("(x.cpu > 1 ? x.comm : \"few\")", out);
	else if (s->type == STACK && s->form)
		fprintf(out, "x.Stack(%u)", s->form);
	else
		fputs(texts[s->type], out);
}

struct cell scalar_cell(const struct scalar *s, const struct fay_event *e)
{
	const char *name = s->form && e->cpu <= 1 ? "few" : e->comm;
	switch (s->type) {
	case TIME: return (struct cell){ .kind = WORD, .integer = (int64_t)e->time };
	case FUNCTION: return (struct cell){ .kind = WORD, .integer = (int64_t)e->function };
	case MODULE: return (struct cell){ .kind = WORD, .integer = (int64_t)e->module };
	case NAME: return string_cell(name, strlen(name));
	case CALLER: return (struct cell){ .kind = WORD, .integer = (int64_t)e->caller };
	case STACK: return string_cell(event_frames(e), 8 * (s->form ? s->form : EVENT_FRAMES));
	default: return integer_cell(evaluate(s->tree, e));
	}
}
