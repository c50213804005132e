/* SPDX-License-Identifier: MIT */
/* Comprehensions: `from` and the clauses behind it, as the grammar in parser.c has them. */
#include "parser_private.h"

static struct fay_node *parse_clause_body(struct parser *parser, struct fay_clause *clause)
{
	clause->a = fay_parse_expression(parser);
	return clause->a;
}

/* `into NAME` after group or select; false on error. */
static bool parse_into(struct parser *parser, struct fay_clause *clause)
{
	if (!accept_word(parser, "into"))
		return true;
	clause->name = fay_parse_expect_name(parser, "a name after `into`", &clause->name_span);
	return clause->name != NULL;
}

static bool parse_group(struct parser *parser, struct fay_clause *clause)
{
	clause->kind = CLAUSE_GROUP;
	if (at_word(parser, "by")) {
		fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span,
			       "`group` says what is put into groups: `group x by KEY into g`");
		return false;
	}
	if (!parse_clause_body(parser, clause))
		return false;
	if (!accept_word(parser, "by")) {
		fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span,
			       "expected `by` and a key after `group`, found %s",
			       fay_parse_describe(parser));
		return false;
	}
	clause->b = fay_parse_expression(parser);
	return clause->b && parse_into(parser, clause);
}

/* Groups without a name end the query. */
static bool expect_named(struct parser *parser, const struct fay_clause *clause)
{
	static const char *const behind[] = {
		"where", "let", "join", "group", "orderby", "select"
	};
	for (size_t i = 0; !clause->name && i < sizeof(behind) / sizeof(behind[0]); i++) {
		if (!at_word(parser, behind[i]))
			continue;
		fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span,
			       "groups need a name for `%s` to use them: `group ... by ... into g "
			       "select new { g.Key, n = g.Count() }`",
			       behind[i]);
		return false;
	}
	return true;
}

static bool parse_let(struct parser *parser, struct fay_clause *clause)
{
	clause->kind = CLAUSE_LET;
	clause->name = fay_parse_expect_name(parser, "a name after `let`", &clause->name_span);
	return clause->name && fay_parse_expect(parser, OPERATOR_ASSIGN, "after the name") &&
	       parse_clause_body(parser, clause);
}

static bool expect_word(struct parser *parser, const char *word, const char *what)
{
	if (accept_word(parser, word))
		return true;
	fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span,
		       "expected `%s` and %s, found %s", word, what, fay_parse_describe(parser));
	return false;
}

/* "join" read. */
static bool parse_join(struct parser *parser, struct fay_clause *clause)
{
	const struct {
		const char *word, *what;
		struct fay_node **part;
	} parts[] = {
		{ "in", "the other source", &clause->a },
		{ "on", "a key of what is there, as in `on a.tid equals b.tid within 5ms`",
		  &clause->b },
		{ "equals", "the key of what is joined", &clause->c },
		{ "within",
		  "how far apart in time two events may be, as in `within 5ms`: streams do not "
		  "end, so a join needs a bound",
		  &clause->d },
	};
	clause->kind = CLAUSE_JOIN;
	clause->name = fay_parse_expect_name(parser, "a name after `join`", &clause->name_span);
	for (size_t i = 0; clause->name && i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!expect_word(parser, parts[i].word, parts[i].what) ||
		    !(*parts[i].part = fay_parse_expression(parser)))
			return false;
	}
	if (!clause->name || !accept_word(parser, "into"))
		return clause->name != NULL;
	struct fay_span span;
	clause->into = fay_parse_expect_name(parser, "a name after `into`", &span);
	return clause->into != NULL;
}

/* "orderby" read: one clause for each key. */
static bool parse_orderby(struct parser *parser, struct fay_clause *clause)
{
	clause->kind = CLAUSE_ORDER;
	for (;;) {
		if (!parse_clause_body(parser, clause))
			return false;
		clause->descending = accept_word(parser, "descending");
		if (!clause->descending)
			accept_word(parser, "ascending");
		if (!accept(parser, OPERATOR_COMMA))
			return true;
		clause->next = fay_query_alloc(parser->query, sizeof(*clause));
		if (!clause->next)
			return false;
		clause = clause->next;
		clause->kind = CLAUSE_THEN;
		clause->span = parser->token->span;
	}
}

static bool unknown_clause(struct parser *parser)
{
	static const char *const known[] = { "where",   "let",  "join", "group",   "select",
					     "orderby", "take", "skip", "distinct" };
	const struct fay_token *token = parser->token;
	if (at_operator(parser, OPERATOR_ASSIGN)) {
		fay_query_fail(parser->query, FAY_E_USAGE, token->span,
			       "unexpected `=`; did you mean `==`?");
		return false;
	}
	if (token_is_word(token, "from")) {
		fay_query_fail(parser->query, FAY_E_REFUSED, token->span,
			       "a second `from` would pair every event with every other; a join "
			       "says which: "
			       "`join b in cluster.Function(\"libc!write\") on a.tid equals b.tid "
			       "within 5ms`");
		return false;
	}
	const char *hint = token->kind == TOKEN_NAME
				   ? fay_query_did_you_mean(parser->query, token->string, known,
							    sizeof(known) / sizeof(known[0]))
				   : "";
	fay_query_fail(parser->query, FAY_E_USAGE, token->span,
		       "expected `where`, `let`, `join`, `group` or `select`, found %s%s",
		       fay_parse_describe(parser), hint);
	return false;
}

/* One clause (`orderby`: as many as it has keys). *last: only `take`, `skip` and `distinct` may
 * follow it. */
static struct fay_clause *parse_clause(struct parser *parser, bool *last)
{
	struct fay_clause *clause = fay_query_alloc(parser->query, sizeof(*clause));
	bool fine;
	if (!clause)
		return NULL;
	clause->span = parser->token->span;
	if (accept_word(parser, "where")) {
		clause->kind = CLAUSE_WHERE;
		fine = parse_clause_body(parser, clause) != NULL;
	} else if (accept_word(parser, "let")) {
		fine = parse_let(parser, clause);
	} else if (accept_word(parser, "join")) {
		fine = parse_join(parser, clause);
	} else if (accept_word(parser, "group")) {
		fine = parse_group(parser, clause) && expect_named(parser, clause);
		*last = !clause->name;
	} else if (accept_word(parser, "select")) {
		clause->kind = CLAUSE_SELECT;
		fine = parse_clause_body(parser, clause) && parse_into(parser, clause);
		*last = !clause->name;
	} else if (accept_word(parser, "orderby")) {
		fine = parse_orderby(parser, clause);
	} else if (at_word(parser, "take") || at_word(parser, "skip")) {
		clause->kind = accept_word(parser, "take") ? CLAUSE_TAKE : CLAUSE_SKIP;
		if (clause->kind == CLAUSE_SKIP)
			advance(parser);
		fine = parse_clause_body(parser, clause) != NULL;
	} else if (accept_word(parser, "distinct")) {
		clause->kind = CLAUSE_DISTINCT;
		fine = true;
	} else {
		fine = unknown_clause(parser);
	}
	return fine ? clause : NULL;
}

struct fay_node *fay_parse_comprehension(struct parser *parser)
{
	struct fay_node *node = fay_parse_node(parser, NODE_QUERY, parser->token->span.start);
	struct fay_clause *from = fay_query_alloc(parser->query, sizeof(*from));
	if (!node || !from)
		return NULL;
	from->span = parser->token->span;
	advance(parser);
	from->kind = CLAUSE_FROM;
	from->name = fay_parse_expect_name(parser, "a name after `from`", &from->name_span);
	if (!from->name)
		return NULL;
	if (!accept_word(parser, "in"))
		return fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span,
				      "expected `in`, found %s", fay_parse_describe(parser));
	if (!parse_clause_body(parser, from))
		return NULL;
	node->clauses = from;
	bool last = false;
	struct fay_clause **tail = &from->next;
	while (!last || at_word(parser, "take") || at_word(parser, "skip") ||
	       at_word(parser, "distinct")) {
		*tail = parse_clause(parser, &last);
		if (!*tail)
			return NULL;
		while (*tail)
			tail = &(*tail)->next;
	}
	return fay_parse_finish(parser, node);
}
