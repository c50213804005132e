/* SPDX-License-Identifier: MIT */
/* Between parser.c (expressions) and clauses.c (comprehensions). */
#ifndef FAY_QUERY_SYNTAX_PARSER_PRIVATE_H
#define FAY_QUERY_SYNTAX_PARSER_PRIVATE_H

#include <string.h>

#include "syntax.h"

struct parser {
	struct fay_query *query;
	struct fay_token *token; /* the next one */
	uint32_t last_end;       /* of the token before */
	unsigned nesting;
};

static inline void advance(struct parser *parser)
{
	parser->last_end = parser->token->span.end;
	if (parser->token->kind != TOKEN_END)
		parser->token++;
}

static inline bool at_operator(const struct parser *parser, enum fay_operator op)
{
	return parser->token->kind == TOKEN_OPERATOR && parser->token->op == op;
}

static inline bool token_is_word(const struct fay_token *token, const char *word)
{
	return token->kind == TOKEN_NAME && strcmp(token->string, word) == 0;
}

static inline bool at_word(const struct parser *parser, const char *word)
{
	return token_is_word(parser->token, word);
}

static inline bool accept(struct parser *parser, enum fay_operator op)
{
	if (!at_operator(parser, op))
		return false;
	advance(parser);
	return true;
}

static inline bool accept_word(struct parser *parser, const char *word)
{
	if (!at_word(parser, word))
		return false;
	advance(parser);
	return true;
}

/* The next token as a message shows it. */
const char *fay_parse_describe(struct parser *parser);
/* Reads `op`; false with the error recorded: something else is there. */
bool fay_parse_expect(struct parser *parser, enum fay_operator op, const char *where);
/* A name that is no keyword; NULL with the error recorded. */
const char *fay_parse_expect_name(struct parser *parser, const char *what, struct fay_span *span);
struct fay_node *fay_parse_node(struct parser *parser, enum fay_node_kind kind, uint32_t start);
/* Closes the node after its children: span end and depth. */
struct fay_node *fay_parse_finish(struct parser *parser, struct fay_node *node);
struct fay_node *fay_parse_expression(struct parser *parser);
/* At `from`. */
struct fay_node *fay_parse_comprehension(struct parser *parser);

#endif
