/* SPDX-License-Identifier: MIT */
/*
 * FayLINQ's front: the text, its tokens and its syntax tree.
 *
 * One `struct fay_query` owns everything that is made of one text: tokens, tree, typed expressions
 * and plan all lie in its arena and die together. A function that fails records the first error in
 * it and returns NULL (pointers) or false, so callers only pass failure on.
 *
 * The text is hostile. Every limit is named here; recursion is bounded by FAY_QUERY_MAX_NESTING in
 * the parser and by FAY_QUERY_MAX_DEPTH in everything that walks a tree.
 */
#ifndef FAY_QUERY_SYNTAX_SYNTAX_H
#define FAY_QUERY_SYNTAX_SYNTAX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fay/error.h"
#include "fay/join.h"
#include "fay/query.h"
#include "fay/saved.h"

#define FAY_QUERY_MAX_TEXT 65536u        /* bytes of text */
#define FAY_QUERY_MAX_NESTING 200u       /* brackets, lambdas, unary operators inside one another */
#define FAY_QUERY_MAX_DEPTH 1000u        /* height of a tree, so also operators in one chain */
#define FAY_QUERY_MAX_OPERATIONS 10000u  /* of one expression with all its `let`s put in */
#define FAY_QUERY_MAX_MEMORY (64u << 20) /* bytes of the arena */
#define FAY_QUERY_MAX_NAME 127u          /* bytes of an identifier */
#define FAY_QUERY_MAX_COLUMNS 64u        /* of a result */
#define FAY_QUERY_MAX_FUNCTIONS 8u       /* whose debug information is read */
#define FAY_QUERY_MAX_EXTENSIONS 8u      /* C files */

struct fay_span {
	uint32_t start, end; /* byte offsets into the text, end excluded */
};

struct fay_query {
	char *text; /* NUL-terminated copy */
	uint32_t size;
	uint64_t now; /* ns since the epoch */
	struct fay_error *error;
	bool failed;
	struct fay_query_block *blocks;
	size_t allocated;
	/* of file("NAME"), once it was read: that of the source that is spoken of */
	struct fay_saved *saved;
	struct fay_saved *opened[FAY_JOIN_SOURCES]; /* all of them */
	unsigned opened_count;
	const struct btf *btf; /* the kernel's types, once they were needed */
	/* Debug information of functions, once it was needed. */
	struct fay_debug_function *functions[FAY_QUERY_MAX_FUNCTIONS];
	uint32_t function_count;
	/* extend "my.c"; in the order of the text. */
	struct fay_query_extension {
		const char *path;
		struct fay_span span;
		struct fay_extension *code; /* once it is compiled */
	} extensions[FAY_QUERY_MAX_EXTENSIONS];
	uint32_t extension_count;
	bool typed; /* arguments' places or members' offsets were taken from there */
	const struct fay_query_options *options; /* the caller's; NULL: none */
	const struct fay_texts *texts;           /* the caller's, once rows come; NULL: none */
};

struct fay_query *fay_query_create(const char *text, uint64_t now, struct fay_error *error);
void fay_query_destroy(struct fay_query *query);
/* Zeroed memory of the query's lifetime, or NULL with the error recorded. */
void *fay_query_alloc(struct fay_query *query, size_t size);
char *fay_query_copy(struct fay_query *query, const char *bytes, size_t size);
char *fay_query_format(struct fay_query *query, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Records `query:LINE:COL: message`, the source line and a caret line, unless an error is recorded
 * already. Always returns NULL.
 */
void *fay_query_fail(struct fay_query *query, enum fay_error_code code, struct fay_span span,
		     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same in *error, which may not be NULL, of a query that was planned. Returns the code. */
int fay_query_error_at(const struct fay_query *query, struct fay_error *error,
		       enum fay_error_code code, struct fay_span span, const char *message);

/* "", "; did you mean `candidate`?", or what a word of other tools is here, in the query's memory.
 * */
const char *fay_query_did_you_mean(struct fay_query *query, const char *word,
				   const char *const *candidates, size_t count);

enum fay_token_kind {
	TOKEN_END,
	TOKEN_NAME,
	TOKEN_INTEGER,
	TOKEN_REAL,
	TOKEN_STRING,
	TOKEN_OPERATOR,
};

enum fay_operator {
	OPERATOR_NONE,
	OPERATOR_OPEN,
	OPERATOR_CLOSE,
	OPERATOR_OPEN_BRACE,
	OPERATOR_CLOSE_BRACE,
	OPERATOR_OPEN_BRACKET,
	OPERATOR_CLOSE_BRACKET,
	OPERATOR_COMMA,
	OPERATOR_DOT,
	OPERATOR_SEMICOLON,
	OPERATOR_QUESTION,
	OPERATOR_COLON,
	OPERATOR_ASSIGN,
	OPERATOR_ARROW,
	OPERATOR_OR,
	OPERATOR_AND,
	OPERATOR_BIT_OR,
	OPERATOR_BIT_XOR,
	OPERATOR_BIT_AND,
	OPERATOR_EQ,
	OPERATOR_NE,
	OPERATOR_LT,
	OPERATOR_LE,
	OPERATOR_GT,
	OPERATOR_GE,
	OPERATOR_SHL,
	OPERATOR_SHR,
	OPERATOR_SHR_LOGICAL,
	OPERATOR_ADD,
	OPERATOR_SUB,
	OPERATOR_MUL,
	OPERATOR_DIV,
	OPERATOR_MOD,
	OPERATOR_NOT,
	OPERATOR_BIT_NOT,
	OPERATOR_COUNT
};

struct fay_token {
	enum fay_token_kind kind;
	enum fay_operator op;
	struct fay_span span;
	uint64_t integer;   /* INTEGER */
	bool hexadecimal;   /* INTEGER: all 64 bits may be given */
	double real;        /* REAL */
	const char *string; /* NAME, STRING: the decoded bytes */
	uint32_t length;    /* STRING */
};

const char *fay_operator_text(enum fay_operator op);
/* The whole text as tokens; the last is TOKEN_END. NULL on error. */
struct fay_token *fay_query_lex(struct fay_query *query);

enum fay_node_kind {
	NODE_INTEGER,
	NODE_REAL,
	NODE_STRING,
	NODE_BOOL,
	NODE_NAME,
	NODE_MEMBER, /* a.name */
	NODE_INDEX,  /* a[b] */
	NODE_CALL,   /* a(items) */
	NODE_UNARY,  /* op a */
	NODE_BINARY, /* a op b */
	NODE_COND,   /* a ? b : c */
	NODE_LAMBDA, /* name => a */
	NODE_NEW,    /* new { items } */
	NODE_QUERY,  /* from ...: clauses */
};

/* An argument, or a member of `new { }`. */
struct fay_argument {
	const char *name; /* NULL if not given */
	struct fay_span name_span;
	struct fay_node *value;
	struct fay_argument *next;
};

enum fay_clause_kind {
	CLAUSE_FROM,
	CLAUSE_JOIN,
	CLAUSE_LET,
	CLAUSE_WHERE,
	CLAUSE_GROUP,
	CLAUSE_SELECT,
	CLAUSE_ORDER, /* orderby a */
	CLAUSE_THEN,  /* , b */
	CLAUSE_TAKE,
	CLAUSE_SKIP,
	CLAUSE_DISTINCT,
};

struct fay_clause {
	enum fay_clause_kind kind;
	struct fay_span span;
	const char *name; /* FROM, JOIN, LET: the variable; GROUP, SELECT: after `into`, or NULL */
	const char *into; /* JOIN: the name of the groups, or NULL */
	struct fay_span name_span;
	/* FROM, JOIN: source; LET, WHERE, SELECT, ORDER ... SKIP: expression; GROUP: element;
	 * DISTINCT: NULL */
	struct fay_node *a;
	struct fay_node *b;     /* GROUP: key; JOIN: key of the rows before */
	struct fay_node *c, *d; /* JOIN: key of the source's, how far apart in time */
	bool descending;        /* ORDER, THEN */
	struct fay_clause *next;
};

struct fay_node {
	enum fay_node_kind kind;
	enum fay_operator op;
	struct fay_span span;
	struct fay_span name_span; /* MEMBER: of the name alone */
	uint32_t depth;
	struct fay_node *a, *b, *c;
	const char *name; /* NAME, MEMBER, LAMBDA; STRING: its bytes */
	uint32_t length;  /* STRING */
	uint64_t integer; /* INTEGER, BOOL */
	double real;      /* REAL */
	struct fay_argument *items;
	unsigned item_count;
	struct fay_clause *clauses;
};

/* The whole text as one expression. NULL on error. */
struct fay_node *fay_query_parse(struct fay_query *query);

#endif
