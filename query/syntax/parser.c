/* SPDX-License-Identifier: MIT */
/*
 * Tokens to a syntax tree, by recursive descent; binary operators by precedence climbing.
 *
 * Grammar (C#'s, cut to what FayLINQ has):
 *
 *   query      = { "extend" STRING [";"] } expression [";"]
 *   expression = comprehension | lambda | conditional
 *   comprehension = "from" NAME "in" expression { clause } ("select" expression | "group" .. "by"
 *     ..)
 *   clause     = "where" expression | "let" NAME "=" expression | "join" NAME "in" expression "on"
 *		expression "equals" expression "within" expression ["into" NAME] | ("group"
 *		expression "by" expression | "select" expression) "into" NAME
 *   lambda     = (NAME | "(" NAME ")") "=>" expression
 *   postfix    = primary { ("." | "->") NAME | "[" expression "]" | "(" [expression {","
 *		expression}] ")" }
 *   primary    = literal | NAME | "(" expression ")" | "new" "{" [NAME "="] expression {","..} "}"
 */
#include "parser_private.h"

const char *fay_parse_describe(struct parser *parser)
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

bool fay_parse_expect(struct parser *parser, enum fay_operator op, const char *where)
{
	if (accept(parser, op))
		return true;
	fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span,
		       "expected `%s` %s, found %s%s", fay_operator_text(op), where,
		       fay_parse_describe(parser),
		       at_operator(parser, OPERATOR_ASSIGN) ? "; did you mean `==`?" : "");
	return false;
}

/* After a dot every word is a name: structures have members called `in` and `from`. */
static const char *expect_member(struct parser *parser, struct fay_span *span)
{
	const struct fay_token *token = parser->token;
	*span = token->span;
	if (token->kind != TOKEN_NAME)
		return fay_query_fail(parser->query, FAY_E_USAGE, token->span,
				      "expected a name after `.`, found %s",
				      fay_parse_describe(parser));
	advance(parser);
	return token->string;
}

const char *fay_parse_expect_name(struct parser *parser, const char *what, struct fay_span *span)
{
	static const char *const reserved[] = { "from", "in",     "where", "let",  "group", "by",
						"into", "select", "new",   "true", "false" };
	const char *name = NULL;
	if (parser->token->kind == TOKEN_NAME) {
		name = parser->token->string;
		for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
			if (strcmp(name, reserved[i]) == 0)
				return fay_query_fail(
					parser->query, FAY_E_USAGE, parser->token->span,
					"expected %s, but `%s` is a keyword", what, name);
	}
	*span = parser->token->span;
	if (!name)
		return fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span,
				      "expected %s, found %s", what, fay_parse_describe(parser));
	advance(parser);
	return name;
}

struct fay_node *fay_parse_node(struct parser *parser, enum fay_node_kind kind, uint32_t start)
{
	struct fay_node *node = fay_query_alloc(parser->query, sizeof(*node));
	if (node) {
		node->kind = kind;
		node->span = (struct fay_span){ start, parser->last_end };
		node->depth = 1;
	}
	return node;
}

struct fay_node *fay_parse_finish(struct parser *parser, struct fay_node *node)
{
	struct fay_node *children[] = { node->a, node->b, node->c };
	for (unsigned i = 0; i < 3; i++)
		if (children[i] && children[i]->depth >= node->depth)
			node->depth = children[i]->depth + 1;
	for (struct fay_argument *item = node->items; item; item = item->next)
		if (item->value->depth >= node->depth)
			node->depth = item->value->depth + 1;
	for (struct fay_clause *clause = node->clauses; clause; clause = clause->next) {
		struct fay_node *parts[] = { clause->a, clause->b, clause->c, clause->d };
		for (unsigned i = 0; i < 4; i++)
			if (parts[i] && parts[i]->depth >= node->depth)
				node->depth = parts[i]->depth + 1;
	}
	node->span.end = parser->last_end;
	if (node->depth > FAY_QUERY_MAX_DEPTH)
		return fay_query_fail(parser->query, FAY_E_LIMIT, node->span,
				      "an expression may be at most %u operators deep",
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
	struct fay_node *node = fay_parse_node(parser, NODE_CALL, callee->span.start);
	if (!node)
		return NULL;
	node->a = callee;
	struct fay_argument **tail = &node->items;
	if (!accept(parser, OPERATOR_CLOSE)) {
		do {
			struct fay_argument *item = fay_query_alloc(parser->query, sizeof(*item));
			if (!item || !(item->value = fay_parse_expression(parser)))
				return NULL;
			*tail = item;
			tail = &item->next;
			node->item_count++;
		} while (accept(parser, OPERATOR_COMMA));
		if (!fay_parse_expect(parser, OPERATOR_CLOSE, "after the arguments"))
			return NULL;
	}
	return fay_parse_finish(parser, node);
}

/* "new" read. */
static struct fay_node *parse_new(struct parser *parser, uint32_t start)
{
	struct fay_node *node = fay_parse_node(parser, NODE_NEW, start);
	if (!node || !fay_parse_expect(parser, OPERATOR_OPEN_BRACE, "after `new`"))
		return NULL;
	struct fay_argument **tail = &node->items;
	while (!at_operator(parser, OPERATOR_CLOSE_BRACE)) {
		struct fay_argument *item = fay_query_alloc(parser->query, sizeof(*item));
		if (!item)
			return NULL;
		if (parser->token->kind == TOKEN_NAME && parser->token[1].kind == TOKEN_OPERATOR &&
		    parser->token[1].op == OPERATOR_ASSIGN) {
			item->name =
				fay_parse_expect_name(parser, "a column's name", &item->name_span);
			if (!item->name)
				return NULL;
			advance(parser);
		}
		if (!(item->value = fay_parse_expression(parser)))
			return NULL;
		*tail = item;
		tail = &item->next;
		node->item_count++;
		if (!accept(parser, OPERATOR_COMMA))
			break;
	}
	if (!fay_parse_expect(parser, OPERATOR_CLOSE_BRACE, "after the members"))
		return NULL;
	node = fay_parse_finish(parser, node);
	if (node && !node->items)
		return fay_query_fail(parser->query, FAY_E_USAGE, node->span,
				      "`new { }` has no members");
	return node;
}

static struct fay_node *parse_literal(struct parser *parser)
{
	struct fay_token *token = parser->token;
	enum fay_node_kind kind = token->kind == TOKEN_INTEGER ? NODE_INTEGER
				  : token->kind == TOKEN_REAL  ? NODE_REAL
							       : NODE_STRING;
	advance(parser);
	struct fay_node *node = fay_parse_node(parser, kind, token->span.start);
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
		fay_parse_node(parser, boolean ? NODE_BOOL : NODE_NAME, token->span.start);
	if (node) {
		node->name = token->string;
		node->integer = truth;
	}
	return node;
}

static struct fay_node *parse_primary(struct parser *parser)
{
	switch (parser->token->kind) {
	case TOKEN_NAME: return parse_name(parser);
	case TOKEN_INTEGER:
	case TOKEN_REAL:
	case TOKEN_STRING: return parse_literal(parser);
	default: break;
	}
	if (accept(parser, OPERATOR_OPEN)) {
		struct fay_node *node = fay_parse_expression(parser);
		if (!node || !fay_parse_expect(parser, OPERATOR_CLOSE, "to close the bracket"))
			return NULL;
		return node;
	}
	return fay_query_fail(parser->query, FAY_E_USAGE, parser->token->span,
			      "expected an expression, found %s", fay_parse_describe(parser));
}

static struct fay_node *parse_index(struct parser *parser, struct fay_node *object)
{
	struct fay_node *node = fay_parse_node(parser, NODE_INDEX, object->span.start);
	if (!node)
		return NULL;
	node->a = object;
	node->b = fay_parse_expression(parser);
	return node->b && fay_parse_expect(parser, OPERATOR_CLOSE_BRACKET, "to close the index")
		       ? fay_parse_finish(parser, node)
		       : NULL;
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
				fay_parse_node(parser, NODE_MEMBER, node->span.start);
			if (!member)
				return NULL;
			member->a = node;
			member->name = expect_member(parser, &member->name_span);
			node = member->name ? fay_parse_finish(parser, member) : NULL;
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
		node = fay_parse_node(parser, NODE_INTEGER, token->span.start);
		if (node)
			node->integer = (uint64_t)1 << 63;
	} else {
		node = fay_parse_node(parser, NODE_UNARY, token->span.start);
		if (!node)
			return NULL;
		node->op = token->op;
		node->a = parse_unary(parser);
		node = node->a ? fay_parse_finish(parser, node) : NULL;
	}
	parser->nesting--;
	return node;
}

static unsigned precedence(enum fay_operator op)
{
	switch (op) {
	case OPERATOR_OR: return 1;
	case OPERATOR_AND: return 2;
	case OPERATOR_BIT_OR: return 3;
	case OPERATOR_BIT_XOR: return 4;
	case OPERATOR_BIT_AND: return 5;
	case OPERATOR_EQ:
	case OPERATOR_NE: return 6;
	case OPERATOR_LT:
	case OPERATOR_LE:
	case OPERATOR_GT:
	case OPERATOR_GE: return 7;
	case OPERATOR_SHL:
	case OPERATOR_SHR:
	case OPERATOR_SHR_LOGICAL: return 8;
	case OPERATOR_ADD:
	case OPERATOR_SUB: return 9;
	case OPERATOR_MUL:
	case OPERATOR_DIV:
	case OPERATOR_MOD: return 10;
	default: return 0;
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
		struct fay_node *node = fay_parse_node(parser, NODE_BINARY, left->span.start);
		if (!node)
			return NULL;
		node->op = op;
		node->a = left;
		node->b = parse_binary(parser, level + 1);
		left = node->b ? fay_parse_finish(parser, node) : NULL;
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
	struct fay_node *node = fay_parse_node(parser, NODE_LAMBDA, parser->token->span.start);
	if (!node)
		return NULL;
	bool bracket = accept(parser, OPERATOR_OPEN);
	node->name = fay_parse_expect_name(parser, "a parameter's name", &node->name_span);
	if (!node->name)
		return NULL;
	if (bracket)
		advance(parser);
	advance(parser); /* => */
	node->a = fay_parse_expression(parser);
	return node->a ? fay_parse_finish(parser, node) : NULL;
}

static struct fay_node *parse_conditional(struct parser *parser)
{
	struct fay_node *condition = parse_binary(parser, 1);
	if (!condition || !accept(parser, OPERATOR_QUESTION))
		return condition;
	struct fay_node *node = fay_parse_node(parser, NODE_COND, condition->span.start);
	if (!node)
		return NULL;
	node->a = condition;
	node->b = fay_parse_expression(parser);
	if (!node->b || !fay_parse_expect(parser, OPERATOR_COLON, "of `? :`"))
		return NULL;
	node->c = fay_parse_expression(parser);
	return node->c ? fay_parse_finish(parser, node) : NULL;
}

struct fay_node *fay_parse_expression(struct parser *parser)
{
	if (!enter(parser))
		return NULL;
	struct fay_node *node;
	if (at_word(parser, "from") && parser->token[1].kind == TOKEN_NAME)
		node = fay_parse_comprehension(parser);
	else if (at_lambda(parser))
		node = parse_lambda(parser);
	else
		node = parse_conditional(parser);
	parser->nesting--;
	return node;
}

/* extend "my.c" at the query's head: any other query has something else behind its first name. */
static bool parse_extensions(struct parser *parser)
{
	struct fay_query *query = parser->query;
	while (at_word(parser, "extend") && parser->token[1].kind == TOKEN_STRING) {
		advance(parser);
		if (query->extension_count == FAY_QUERY_MAX_EXTENSIONS)
			return fay_query_fail(query, FAY_E_LIMIT, parser->token->span,
					      "a query may be extended by at most %u files",
					      FAY_QUERY_MAX_EXTENSIONS) != NULL;
		query->extensions[query->extension_count++] =
			(struct fay_query_extension){ .path = parser->token->string,
						      .span = parser->token->span };
		advance(parser);
		accept(parser, OPERATOR_SEMICOLON);
	}
	return true;
}

/* What stands behind a whole query and does not belong there. */
static const char *hint_at_end(struct parser *parser)
{
	static const char *const behind[] = { "take", "skip", "distinct" }, *const before[] = {
		"where", "let", "join", "group", "orderby", "select"
	};
	if (at_operator(parser, OPERATOR_COMMA))
		return "; several columns are one record, as in `select new { a, b }`";
	if (parser->token->kind != TOKEN_NAME)
		return "";
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		if (!strcmp(parser->token->string, before[i]))
			return fay_query_format(parser->query,
						"; `%s` goes before the last `select`", before[i]);
	return fay_query_did_you_mean(parser->query, parser->token->string, behind,
				      sizeof(behind) / sizeof(behind[0]));
}

struct fay_node *fay_query_parse(struct fay_query *query)
{
	struct fay_token *tokens = fay_query_lex(query);
	if (!tokens)
		return NULL;
	struct parser parser = { .query = query, .token = tokens };
	if (tokens->kind == TOKEN_END)
		return fay_query_fail(query, FAY_E_USAGE, tokens->span, "the query is empty");
	if (tokens->kind == TOKEN_NAME && !strcasecmp(tokens->string, "select") &&
	    tokens[1].kind != TOKEN_END)
		return fay_query_fail(
			query, FAY_E_USAGE, tokens->span,
			"a query begins with a source: `from s in cluster.Syscall(\"*\") group s "
			"by s.comm into g orderby g.Count() descending select new { g.Key, n = "
			"g.Count() } take 10`");
	struct fay_node *node = parse_extensions(&parser) ? fay_parse_expression(&parser) : NULL;
	if (!node)
		return NULL;
	accept(&parser, OPERATOR_SEMICOLON);
	if (parser.token->kind == TOKEN_END)
		return node;
	if (at_operator(&parser, OPERATOR_ASSIGN))
		return fay_query_fail(query, FAY_E_USAGE, parser.token->span,
				      "unexpected `=`; did you mean `==`?");
	return fay_query_fail(query, FAY_E_USAGE, parser.token->span,
			      "the query should end here, but there is %s%s",
			      fay_parse_describe(&parser), hint_at_end(&parser));
}
