/* SPDX-License-Identifier: MIT */
/*
 * Tokens to a syntax tree, by recursive descent; binary operators by precedence climbing.
 *
 * Grammar (C#'s, cut to what FayLINQ has):
 *
 *   query      = expression [";"]
 *   expression = comprehension | lambda | conditional
 *   comprehension = "from" NAME "in" expression { clause } ("select" expression | "group" .. "by" ..)
 *   clause     = "where" expression | "let" NAME "=" expression
 *              | "join" NAME "in" expression "on" expression "equals" expression "within" expression
 *              | ("group" expression "by" expression | "select" expression) "into" NAME
 *   lambda     = (NAME | "(" NAME ")") "=>" expression
 *   postfix    = primary { ("." | "->") NAME | "[" expression "]" | "(" [expression {"," expression}] ")" }
 *   primary    = literal | NAME | "(" expression ")" | "new" "{" [NAME "="] expression {","..} "}"
 */
#include <string.h>

#include "syntax.h"

struct parser {
	struct fay_query *query;
	struct fay_token *token; /* the next one */
	uint32_t last_end;	 /* of the token before */
	unsigned nesting;
};

static struct fay_node *parse_expression(struct parser *parser);

static void advance(struct parser *parser)
{
	parser->last_end = parser->token->span.end;
	if (parser->token->kind != TOKEN_END)
		parser->token++;
}

static bool at_operator(const struct parser *parser, enum fay_operator op)
{
	return parser->token->kind == TOKEN_OPERATOR && parser->token->op == op;
}

static bool token_is_word(const struct fay_token *token, const char *word)
{
	return token->kind == TOKEN_NAME && strcmp(token->string, word) == 0;
}

static bool at_word(const struct parser *parser, const char *word)
{
	return token_is_word(parser->token, word);
}

static bool accept(struct parser *parser, enum fay_operator op)
{
	if (!at_operator(parser, op))
		return false;
	advance(parser);
	return true;
}

static bool accept_word(struct parser *parser, const char *word)
{
	if (!at_word(parser, word))
		return false;
	advance(parser);
	return true;
}

/* The next token as a message shows it. */
static const char *describe(struct parser *parser)
{
	const struct fay_token *token = parser->token;
	const char *text = "the end of the query";
	if (token->kind == TOKEN_NAME)
		text = fay_query_format(parser->query, "`%s`", token->string);
	else if (token->kind == TOKEN_OPERATOR)
		text = fay_query_format(parser->query, "`%s`", fay_operator_text(token->op));
	else if (token->kind == TOKEN_STRING)
		text = "a string";
	else if (token->kind != TOKEN_END)
		text = "a number";
	return text ? text : "";
}

static bool expect(struct parser *parser, enum fay_operator op, const char *where)
{
	if (accept(parser, op))
		return true;
	fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span,
		       "expected `%s` %s, found %s", fay_operator_text(op), where,
		       describe(parser));
	return false;
}

/* After a dot every word is a name: structures have members called `in` and `from`. */
static const char *expect_member(struct parser *parser, struct fay_span *span)
{
	const struct fay_token *token = parser->token;
	*span = token->span;
	if (token->kind != TOKEN_NAME)
		return fay_query_fail(parser->query, FAY_E_USAGE, token->span, "expected a name after `.`, found %s", describe(parser));
	advance(parser);
	return token->string;
}

static const char *expect_name(struct parser *parser, const char *what, struct fay_span *span)
{
	static const char *const reserved[] = {"from", "in",  "where", "let",  "group", "by",
					       "into", "select", "new", "true", "false"};
	const char *name = NULL;
	if (parser->token->kind == TOKEN_NAME) {
		name = parser->token->string;
		for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
			if (strcmp(name, reserved[i]) == 0)
				return fay_query_fail(parser->query, FAY_E_USAGE,
						      parser->token->span,
						      "expected %s, but `%s` is a keyword", what,
						      name);
	}
	*span = parser->token->span;
	if (!name)
		return fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span,
				      "expected %s, found %s", what, describe(parser));
	advance(parser);
	return name;
}

static struct fay_node *new_node(struct parser *parser, enum fay_node_kind kind, uint32_t start)
{
	struct fay_node *node = fay_query_alloc(parser->query, sizeof(*node));
	if (node) {
		node->kind = kind;
		node->span = (struct fay_span){start, parser->last_end};
		node->depth = 1;
	}
	return node;
}

/* Closes the node after its children: span end and depth. */
static struct fay_node *finish(struct parser *parser, struct fay_node *node)
{
	struct fay_node *children[] = {node->a, node->b, node->c};
	for (unsigned i = 0; i < 3; i++)
		if (children[i] && children[i]->depth >= node->depth)
			node->depth = children[i]->depth + 1;
	for (struct fay_argument *item = node->items; item; item = item->next)
		if (item->value->depth >= node->depth)
			node->depth = item->value->depth + 1;
	for (struct fay_clause *clause = node->clauses; clause; clause = clause->next) {
		struct fay_node *parts[] = {clause->a, clause->b, clause->c, clause->d};
		for (unsigned i = 0; i < 4; i++)
			if (parts[i] && parts[i]->depth >= node->depth)
				node->depth = parts[i]->depth + 1;
	}
	node->span.end = parser->last_end;
	if (node->depth > FAY_QUERY_MAX_DEPTH)
		return fay_query_fail(parser->query, FAY_E_LIMIT, node->span,
				      "an expression may be %u operators deep",
				      FAY_QUERY_MAX_DEPTH);
	return node;
}

static bool enter(struct parser *parser)
{
	if (++parser->nesting <= FAY_QUERY_MAX_NESTING)
		return true;
	fay_query_fail(parser->query, FAY_E_LIMIT, parser->token->span,
		       "more than %u levels of nesting", FAY_QUERY_MAX_NESTING);
	return false;
}

/* "(" read: arguments up to and with ")". */
static struct fay_node *parse_call(struct parser *parser, struct fay_node *callee)
{
	struct fay_node *node = new_node(parser, NODE_CALL, callee->span.start);
	if (!node)
		return NULL;
	node->a = callee;
	struct fay_argument **tail = &node->items;
	if (!accept(parser, OPERATOR_CLOSE)) {
		do {
			struct fay_argument *item = fay_query_alloc(parser->query, sizeof(*item));
			if (!item || !(item->value = parse_expression(parser)))
				return NULL;
			*tail = item;
			tail = &item->next;
			node->item_count++;
		} while (accept(parser, OPERATOR_COMMA));
		if (!expect(parser, OPERATOR_CLOSE, "after the arguments"))
			return NULL;
	}
	return finish(parser, node);
}

/* "new" read. */
static struct fay_node *parse_new(struct parser *parser, uint32_t start)
{
	struct fay_node *node = new_node(parser, NODE_NEW, start);
	if (!node || !expect(parser, OPERATOR_OPEN_BRACE, "after `new`"))
		return NULL;
	struct fay_argument **tail = &node->items;
	while (!at_operator(parser, OPERATOR_CLOSE_BRACE)) {
		struct fay_argument *item = fay_query_alloc(parser->query, sizeof(*item));
		if (!item)
			return NULL;
		if (parser->token->kind == TOKEN_NAME &&
		    parser->token[1].kind == TOKEN_OPERATOR &&
		    parser->token[1].op == OPERATOR_ASSIGN) {
			item->name = expect_name(parser, "a column's name", &item->name_span);
			if (!item->name)
				return NULL;
			advance(parser);
		}
		if (!(item->value = parse_expression(parser)))
			return NULL;
		*tail = item;
		tail = &item->next;
		node->item_count++;
		if (!accept(parser, OPERATOR_COMMA))
			break;
	}
	if (!expect(parser, OPERATOR_CLOSE_BRACE, "after the members"))
		return NULL;
	node = finish(parser, node);
	if (node && !node->items)
		return fay_query_fail(parser->query, FAY_E_USAGE, node->span,
				      "`new { }` has no members");
	return node;
}

static struct fay_node *parse_clause_body(struct parser *parser, struct fay_clause *clause)
{
	clause->a = parse_expression(parser);
	return clause->a;
}

/* `into NAME` after group or select; false on error. */
static bool parse_into(struct parser *parser, struct fay_clause *clause)
{
	if (!accept_word(parser, "into"))
		return true;
	clause->name = expect_name(parser, "a name after `into`", &clause->name_span);
	return clause->name != NULL;
}

static bool parse_group(struct parser *parser, struct fay_clause *clause)
{
	clause->kind = CLAUSE_GROUP;
	if (!parse_clause_body(parser, clause))
		return false;
	if (!accept_word(parser, "by")) {
		fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span,
			       "expected `by` and a key after `group`, found %s", describe(parser));
		return false;
	}
	clause->b = parse_expression(parser);
	return clause->b && parse_into(parser, clause);
}

static bool parse_let(struct parser *parser, struct fay_clause *clause)
{
	clause->kind = CLAUSE_LET;
	clause->name = expect_name(parser, "a name after `let`", &clause->name_span);
	return clause->name && expect(parser, OPERATOR_ASSIGN, "after the name") &&
	       parse_clause_body(parser, clause);
}

static bool expect_word(struct parser *parser, const char *word, const char *what)
{
	if (accept_word(parser, word))
		return true;
	fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span, "expected `%s` and %s, found %s", word, what,
		       describe(parser));
	return false;
}

/* "join" read. */
static bool parse_join(struct parser *parser, struct fay_clause *clause)
{
	const struct {
		const char *word, *what;
		struct fay_node **part;
	} parts[] = {
		{"in", "the other source", &clause->a},
		{"on", "a key of what is there, as in `on a.tid equals b.tid within 5ms`", &clause->b},
		{"equals", "the key of what is joined", &clause->c},
		{"within", "how far apart in time two events may be, as in `within 5ms`: streams do not end, so a join needs a bound", &clause->d},
	};
	clause->kind = CLAUSE_JOIN;
	clause->name = expect_name(parser, "a name after `join`", &clause->name_span);
	for (size_t i = 0; clause->name && i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!expect_word(parser, parts[i].word, parts[i].what) || !(*parts[i].part = parse_expression(parser)))
			return false;
	}
	if (!clause->name || !at_word(parser, "into"))
		return clause->name != NULL;
	fay_query_fail(parser->query, FAY_E_REFUSED, parser->token->span,
		       "`into` after a join is not supported yet: group the pairs, as in `group b by a.time into g`");
	return false;
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
	static const char *const known[] = {"where",   "let",  "join", "group",   "select",
					    "orderby", "take", "skip", "distinct"};
	const struct fay_token *token = parser->token;
	if (at_operator(parser, OPERATOR_ASSIGN)) {
		fay_query_fail(parser->query, FAY_E_USAGE, token->span,
			       "unexpected `=`; did you mean `==`?");
		return false;
	}
	if (token_is_word(token, "from")) {
		fay_query_fail(parser->query, FAY_E_REFUSED, token->span,
			       "a second `from` would pair every event with every other; a join says which: "
			       "`join b in cluster.Function(\"libc!write\") on a.tid equals b.tid within 5ms`");
		return false;
	}
	const char *hint = token->kind == TOKEN_NAME
				   ? fay_query_did_you_mean(parser->query, token->string, known,
							    sizeof(known) / sizeof(known[0]))
				   : "";
	fay_query_fail(parser->query, FAY_E_USAGE, token->span,
		       "expected `where`, `let`, `join`, `group` or `select`, found %s%s",
		       describe(parser), hint);
	return false;
}

/* One clause (`orderby`: as many as it has keys). *last: only `take`, `skip` and `distinct` may follow it. */
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
		fine = parse_group(parser, clause);
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

static struct fay_node *parse_comprehension(struct parser *parser)
{
	struct fay_node *node = new_node(parser, NODE_QUERY, parser->token->span.start);
	struct fay_clause *from = fay_query_alloc(parser->query, sizeof(*from));
	if (!node || !from)
		return NULL;
	from->span = parser->token->span;
	advance(parser);
	from->kind = CLAUSE_FROM;
	from->name = expect_name(parser, "a name after `from`", &from->name_span);
	if (!from->name)
		return NULL;
	if (!accept_word(parser, "in"))
		return fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span,
				      "expected `in`, found %s", describe(parser));
	if (!parse_clause_body(parser, from))
		return NULL;
	node->clauses = from;
	bool last = false;
	struct fay_clause **tail = &from->next;
	while (!last || at_word(parser, "take") || at_word(parser, "skip") || at_word(parser, "distinct")) {
		*tail = parse_clause(parser, &last);
		if (!*tail)
			return NULL;
		while (*tail)
			tail = &(*tail)->next;
	}
	return finish(parser, node);
}

static struct fay_node *parse_literal(struct parser *parser)
{
	struct fay_token *token = parser->token;
	enum fay_node_kind kind = token->kind == TOKEN_INTEGER ? NODE_INTEGER
				  : token->kind == TOKEN_REAL  ? NODE_REAL
							       : NODE_STRING;
	advance(parser);
	struct fay_node *node = new_node(parser, kind, token->span.start);
	if (!node)
		return NULL;
	node->integer = token->integer;
	node->real = token->real;
	node->name = token->string;
	node->length = token->length;
	/* 2^63 is in order only as the operand of a unary minus, which looks at it first. */
	if (kind == NODE_INTEGER && !token->hexadecimal && token->integer > INT64_MAX)
		return fay_query_fail(parser->query, FAY_E_USAGE, token->span,
				      "this number does not fit into a signed 64-bit integer");
	return node;
}

static struct fay_node *parse_name(struct parser *parser)
{
	struct fay_token *token = parser->token;
	advance(parser);
	if (strcmp(token->string, "new") == 0)
		return parse_new(parser, token->span.start);
	bool truth = strcmp(token->string, "true") == 0;
	bool boolean = truth || strcmp(token->string, "false") == 0;
	struct fay_node *node =
		new_node(parser, boolean ? NODE_BOOL : NODE_NAME, token->span.start);
	if (node) {
		node->name = token->string;
		node->integer = truth;
	}
	return node;
}

static struct fay_node *parse_primary(struct parser *parser)
{
	switch (parser->token->kind) {
	case TOKEN_NAME:
		return parse_name(parser);
	case TOKEN_INTEGER:
	case TOKEN_REAL:
	case TOKEN_STRING:
		return parse_literal(parser);
	default:
		break;
	}
	if (accept(parser, OPERATOR_OPEN)) {
		struct fay_node *node = parse_expression(parser);
		if (!node || !expect(parser, OPERATOR_CLOSE, "to close the bracket"))
			return NULL;
		return node;
	}
	return fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span,
			      "expected an expression, found %s", describe(parser));
}

static struct fay_node *parse_index(struct parser *parser, struct fay_node *object)
{
	struct fay_node *node = new_node(parser, NODE_INDEX, object->span.start);
	if (!node)
		return NULL;
	node->a = object;
	node->b = parse_expression(parser);
	return node->b && expect(parser, OPERATOR_CLOSE_BRACKET, "to close the index") ? finish(parser, node) : NULL;
}

static struct fay_node *parse_postfix(struct parser *parser)
{
	struct fay_node *node = parse_primary(parser);
	while (node) {
		if (accept(parser, OPERATOR_OPEN)) {
			node = parse_call(parser, node);
		} else if (accept(parser, OPERATOR_OPEN_BRACKET)) {
			node = parse_index(parser, node);
		} else if (accept(parser, OPERATOR_DOT)) {
			struct fay_node *member =
				new_node(parser, NODE_MEMBER, node->span.start);
			if (!member)
				return NULL;
			member->a = node;
			member->name = expect_member(parser, &member->name_span);
			node = member->name ? finish(parser, member) : NULL;
		} else {
			return node;
		}
	}
	return NULL;
}

static struct fay_node *parse_unary(struct parser *parser)
{
	struct fay_token *token = parser->token;
	if (!at_operator(parser, OPERATOR_SUB) && !at_operator(parser, OPERATOR_ADD) &&
	    !at_operator(parser, OPERATOR_NOT) && !at_operator(parser, OPERATOR_BIT_NOT))
		return parse_postfix(parser);
	if (!enter(parser))
		return NULL;
	advance(parser);
	struct fay_node *node;
	if (token->op == OPERATOR_SUB && parser->token->kind == TOKEN_INTEGER &&
	    parser->token->integer == (uint64_t)1 << 63 && !parser->token->hexadecimal) {
		advance(parser);
		node = new_node(parser, NODE_INTEGER, token->span.start);
		if (node)
			node->integer = (uint64_t)1 << 63;
	} else {
		node = new_node(parser, NODE_UNARY, token->span.start);
		if (!node)
			return NULL;
		node->op = token->op;
		node->a = parse_unary(parser);
		node = node->a ? finish(parser, node) : NULL;
	}
	parser->nesting--;
	return node;
}

static unsigned precedence(enum fay_operator op)
{
	switch (op) {
	case OPERATOR_OR:
		return 1;
	case OPERATOR_AND:
		return 2;
	case OPERATOR_BIT_OR:
		return 3;
	case OPERATOR_BIT_XOR:
		return 4;
	case OPERATOR_BIT_AND:
		return 5;
	case OPERATOR_EQ:
	case OPERATOR_NE:
		return 6;
	case OPERATOR_LT:
	case OPERATOR_LE:
	case OPERATOR_GT:
	case OPERATOR_GE:
		return 7;
	case OPERATOR_SHL:
	case OPERATOR_SHR:
	case OPERATOR_SHR_LOGICAL:
		return 8;
	case OPERATOR_ADD:
	case OPERATOR_SUB:
		return 9;
	case OPERATOR_MUL:
	case OPERATOR_DIV:
	case OPERATOR_MOD:
		return 10;
	default:
		return 0;
	}
}

/* Operators of at least `least`; recursion is at most ten deep. */
static struct fay_node *parse_binary(struct parser *parser, unsigned least)
{
	struct fay_node *left = parse_unary(parser);
	while (left && parser->token->kind == TOKEN_OPERATOR) {
		enum fay_operator op = parser->token->op;
		unsigned level = precedence(op);
		if (level == 0 || level < least)
			break;
		advance(parser);
		struct fay_node *node = new_node(parser, NODE_BINARY, left->span.start);
		if (!node)
			return NULL;
		node->op = op;
		node->a = left;
		node->b = parse_binary(parser, level + 1);
		left = node->b ? finish(parser, node) : NULL;
	}
	return left;
}

static bool at_lambda(const struct parser *parser)
{
	const struct fay_token *t = parser->token;
	if (t->kind == TOKEN_NAME)
		return t[1].kind == TOKEN_OPERATOR && t[1].op == OPERATOR_ARROW;
	return at_operator(parser, OPERATOR_OPEN) && t[1].kind == TOKEN_NAME &&
	       t[2].kind == TOKEN_OPERATOR && t[2].op == OPERATOR_CLOSE &&
	       t[3].kind == TOKEN_OPERATOR && t[3].op == OPERATOR_ARROW;
}

static struct fay_node *parse_lambda(struct parser *parser)
{
	struct fay_node *node = new_node(parser, NODE_LAMBDA, parser->token->span.start);
	if (!node)
		return NULL;
	bool bracket = accept(parser, OPERATOR_OPEN);
	node->name = expect_name(parser, "a parameter's name", &node->name_span);
	if (!node->name)
		return NULL;
	if (bracket)
		advance(parser);
	advance(parser); /* => */
	node->a = parse_expression(parser);
	return node->a ? finish(parser, node) : NULL;
}

static struct fay_node *parse_conditional(struct parser *parser)
{
	struct fay_node *condition = parse_binary(parser, 1);
	if (!condition || !accept(parser, OPERATOR_QUESTION))
		return condition;
	struct fay_node *node = new_node(parser, NODE_COND, condition->span.start);
	if (!node)
		return NULL;
	node->a = condition;
	node->b = parse_expression(parser);
	if (!node->b || !expect(parser, OPERATOR_COLON, "of `? :`"))
		return NULL;
	node->c = parse_expression(parser);
	return node->c ? finish(parser, node) : NULL;
}

static struct fay_node *parse_expression(struct parser *parser)
{
	if (!enter(parser))
		return NULL;
	struct fay_node *node;
	if (at_word(parser, "from") && parser->token[1].kind == TOKEN_NAME)
		node = parse_comprehension(parser);
	else if (at_lambda(parser))
		node = parse_lambda(parser);
	else
		node = parse_conditional(parser);
	parser->nesting--;
	return node;
}

struct fay_node *fay_query_parse(struct fay_query *query)
{
	struct fay_token *tokens = fay_query_lex(query);
	if (!tokens)
		return NULL;
	struct parser parser = {.query = query, .token = tokens};
	if (tokens->kind == TOKEN_END)
		return fay_query_fail(query, FAY_E_USAGE, tokens->span, "the query is empty");
	struct fay_node *node = parse_expression(&parser);
	if (!node)
		return NULL;
	accept(&parser, OPERATOR_SEMICOLON);
	if (parser.token->kind == TOKEN_END)
		return node;
	if (at_operator(&parser, OPERATOR_ASSIGN))
		return fay_query_fail(query, FAY_E_USAGE, parser.token->span,
				      "unexpected `=`; did you mean `==`?");
	return fay_query_fail(query, FAY_E_USAGE, parser.token->span,
			      "the query should end here, but there is %s", describe(&parser));
}
