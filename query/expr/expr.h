/* SPDX-License-Identifier: MIT */
/*
 * Typed expressions: what the checker makes of the syntax tree.
 *
 * Names, `let`s, lambdas and records are gone: a leaf is a constant, an event field, a group's key
 * or an aggregate. Nodes are hash-consed, so equal expressions are one node and a `let` used twice
 * costs nothing; the graph is acyclic, its height bounded by FAY_QUERY_MAX_DEPTH, its size when
 * written out by FAY_QUERY_MAX_OPERATIONS. Constants are folded when a node is made.
 *
 * All operations are total, so evaluation order does not matter and `&&` may evaluate both sides:
 * integers wrap modulo 2^64; x / 0 and x % 0 are 0; INT64_MIN / -1 is INT64_MIN, INT64_MIN % -1 is
 * 0; shift counts are taken modulo 64.
 */
#ifndef FAY_QUERY_EXPR_EXPR_H
#define FAY_QUERY_EXPR_EXPR_H

#include "fay/event.h"
#include "fay/image.h"
#include "fay/query.h"
#include "query/syntax/syntax.h"

enum fay_type {
	TYPE_INT,
	TYPE_BOOL,
	TYPE_STRING,   /* a cell of 16 bytes: fay/text.h */
	TYPE_TIME,     /* unsigned ns since the epoch */
	TYPE_FUNCTION, /* a function's name by its hash */
	TYPE_MODULE,   /* a module's name by its hash */
	TYPE_ADDRESS,  /* of code, where a call returns to; shown by name */
	TYPE_SYMBOL,   /* an address of code or data; shown by name */
	TYPE_STACK,    /* addresses of code, innermost first, zeros behind the last one */
	/* constants only: arguments of AddSeconds and the like; and an average's value */
	TYPE_REAL,
	TYPE_HISTOGRAM,
	TYPE_LIST, /* quantiles, the most frequent values */
};

enum fay_expr_op {
	EXPR_CONSTANT, /* value, or string for TYPE_STRING, or real for TYPE_REAL */
	EXPR_ARG,      /* event.arg[value]; of one that is known by name with fay_expr_access() */
	EXPR_FIELD,    /* event field at offset `value` (see fay_event_field_find) */
	/* a: an address, of the kernel or of the program; fay_expr_access() says what lies there. 0
	 * or "" if a is 0 */
	EXPR_MEMBER,
	/* the innermost `value` frames where the event happened; `length` 1: of the kernel, 0: of
	 * the program. a: NULL; of a saved event the word where they lie */
	EXPR_STACK,
	/* a: a key of the group, seen from after grouping number `value`, from 1 up */
	EXPR_KEY,
	EXPR_AGGREGATE,
	EXPR_NEG,
	EXPR_BIT_NOT,
	EXPR_NOT,
	EXPR_ADD,
	EXPR_SUB,
	EXPR_MUL,
	EXPR_DIV,
	EXPR_MOD,
	EXPR_SHL,
	EXPR_SHR,
	EXPR_SHR_LOGICAL,
	EXPR_BIT_AND,
	EXPR_BIT_OR,
	EXPR_BIT_XOR,
	EXPR_EQ,
	EXPR_NE,
	EXPR_LT,
	EXPR_LE,
	EXPR_GT,
	EXPR_GE,
	EXPR_AND,
	EXPR_OR,
	EXPR_COND, /* a ? b : c */
	EXPR_STARTS_WITH,
	EXPR_ENDS_WITH,
	EXPR_CONTAINS, /* a, b constant */
	EXPR_LENGTH,   /* of a, a string */
	EXPR_SQUARE,   /* bits 32 * value to 32 * value + 31 of a * a, which has 128 */
	EXPR_PAIR,     /* a, b: operands of what follows */
	/* a: count and (sum of low, sum of high halves); b, c: sums of the four EXPR_SQUAREs. At
	 * the root only */
	EXPR_DEVIATION,
	/* a: an aggregate of AVERAGE, whose sum wraps; b: the sum of the values' upper halves. At
	 * the root only */
	EXPR_AVERAGE,
	EXPR_QUANTILE, /* a: an aggregate of QUANTILE; real: which one. At the root only */
	/* the bucket of a histogram, or of quantiles (`value`: enum fay_merge), that a falls into;
	 * FAY_BUCKET_NONE where b, which may be NULL, does not hold. In probes only */
	EXPR_BUCKET,
	EXPR_FOLDED, /* what the aggregate over all rows gave. At the root only */
	/* the row's cluster, of grouping number `value` (ROOT_KMEANS). At the root only */
	EXPR_LABEL,
	/* number of the window of so many events that the event lies in. Known to the aggregator */
	EXPR_WINDOW,
	/* of a function of C; `name` is its, fay_expr_callee() tells which. a: its arguments, each
	 * an EXPR_PAIR with the next in b. In probes only */
	EXPR_CALL,
	EXPR_ROW, /* number of the row that a join makes a group for. Of pairs only */
	/* a, of an event of source number `value`, from 0 on, of a join; `name` is that event's.
	 * Computed by the side's probe */
	EXPR_SIDE,
};

struct fay_aggregate;
struct fay_extension_function;

struct fay_expr {
	enum fay_expr_op op;
	enum fay_type type;
	const struct fay_expr *a, *b, *c;
	int64_t value;
	double real;
	const char *string;
	uint32_t length;
	const char *name; /* of an argument that is known by name, or of a member: for people */
	const struct fay_enumeration *enumeration; /* INT: what its values are called; NULL */
	const struct fay_aggregate *aggregate;
	/* Derived. */
	uint32_t id, depth, operations;
	bool has_aggregate; /* an aggregate lies below */
	/* of the last grouping of whose groups an aggregate lies below; 0: none */
	uint8_t level;
	struct fay_expr *next; /* of the same hash bucket */
};

/* One aggregate over the events of a group, or of the whole query. */
struct fay_aggregate {
	enum fay_merge merge;
	const struct fay_expr *operand;   /* NULL for COUNT */
	const struct fay_expr *condition; /* events that take part; NULL: all */
	/* FIRST, LAST of groups: a group's time; NULL: the event's time, or the row's place */
	const struct fay_expr *when;
	enum fay_type type; /* of the operand; INT for COUNT */
	const char *text;   /* "Sum" ... */
	uint32_t k;         /* TOP: how many values are kept */
	uint8_t level;      /* number of the grouping; 1 for the whole query, too */
};
#define FAY_TOP_MAX 200u
#define FAY_GROUPINGS_MAX 8u /* one behind the other */

#define FAY_EXPR_BUCKETS 1024u

struct fay_exprs {
	struct fay_query *query;
	uint32_t count;
	bool members;          /* some are read behind addresses */
	uint32_t stack_frames; /* of the deepest stack; 0: there is none */
	uint8_t arguments;     /* of programs' functions: those that are used, 1 << number */
	struct fay_expr *buckets[FAY_EXPR_BUCKETS];
};

/* What events a query is about. */
enum fay_source {
	SOURCE_NONE,
	SOURCE_ENTRY = 1,       /* cluster.Function: calls, as they begin */
	SOURCE_RETURN = 2,      /* cluster.Return: calls, as they end */
	SOURCE_MARKER = 4,      /* cluster.Usdt: markers that are reached */
	SOURCE_SYSCALL = 8,     /* cluster.Syscall */
	SOURCE_TRACEPOINT = 16, /* cluster.Tracepoint: of the kernel */
	SOURCE_TIMER = 32,      /* cluster.Timer: each processor's clock */
	SOURCE_LINE = 64,       /* cluster.Line: statements of a line of the source */
};

struct fay_field {
	const char *name; /* in the query */
	enum fay_type type;
	/* in struct fay_event; size 0: not there, the code generator knows it */
	uint16_t offset, size;
	/* enum fay_source, added up: where it means something; 0: no query can name it */
	uint8_t sources;
};
/* Of fields of size 0, which is which: in the place of the offset. */
enum { FAY_FIELD_FAILED, FAY_FIELD_INLINED };
static inline bool fay_field_is_failed(const struct fay_field *field)
{
	return !field->size && field->offset == FAY_FIELD_FAILED;
}
static inline bool fay_field_is_inlined(const struct fay_field *field)
{
	return !field->size && field->offset == FAY_FIELD_INLINED;
}

/* What is read of an argument, or at an address; in an expression's `value`. */
struct fay_access {
	uint32_t offset; /* bytes from the address; ARG: its number */
	uint8_t bytes;   /* 1, 2, 4, 8; the rest of an argument's word is nothing */
	bool is_signed;
	bool string; /* the bytes from there on, up to a NUL */
	bool user;   /* string: in the memory of the program, of which the kernel's event is */
	bool whole;  /* string: up to FAY_TEXT_MAX bytes of it, not the first 15 alone */
	/* string: so many bytes at the most, of an array that is shorter than what is kept; 0: none
	 * */
	uint16_t limit;
	/* ARG: that one and those behind it, so many, are a program (query/runtime/compute.h),
	 * which asks for what the call began with if `calls`; `known`: whether it has a value */
	uint8_t words;
	bool calls, known;
};
static inline int64_t fay_access_pack(struct fay_access access)
{
	return (int64_t)((uint64_t)access.offset | (uint64_t)access.bytes << 32 |
			 (uint64_t)access.is_signed << 40 | (uint64_t)access.string << 41 |
			 (uint64_t)access.whole << 42 | (uint64_t)access.user << 43 |
			 (uint64_t)access.words << 44 | (uint64_t)access.calls << 46 |
			 (uint64_t)access.known << 47 | (uint64_t)access.limit << 48);
}
static inline struct fay_access fay_access_unpack(int64_t value)
{
	uint64_t v = (uint64_t)value;
	return (struct fay_access){ .offset = (uint32_t)v,
				    .bytes = (uint8_t)(v >> 32),
				    .is_signed = v >> 40 & 1,
				    .string = v >> 41 & 1,
				    .whole = v >> 42 & 1,
				    .user = v >> 43 & 1,
				    .words = v >> 44 & 3,
				    .calls = v >> 46 & 1,
				    .known = v >> 47 & 1,
				    .limit = (uint16_t)(v >> 48) };
}
extern const struct fay_field fay_fields[];
extern const size_t fay_field_count;

const char *fay_type_name(enum fay_type type);
/* Of a column that holds such values. */
enum fay_column_type fay_type_column(enum fay_type type);

const struct fay_expr *fay_expr_int(struct fay_exprs *exprs, enum fay_type type, int64_t value);
const struct fay_expr *fay_expr_real(struct fay_exprs *exprs, double value);
const struct fay_expr *fay_expr_string(struct fay_exprs *exprs, const char *bytes, uint32_t length);
const struct fay_expr *fay_expr_arg(struct fay_exprs *exprs, unsigned index);
/* Of an argument that is known by name. */
const struct fay_expr *fay_expr_named_arg(struct fay_exprs *exprs, struct fay_access access,
					  const char *name);
/* A saved trace's column: the word with that number of the event, of a string two. */
const struct fay_expr *fay_expr_saved(struct fay_exprs *exprs, uint32_t word, enum fay_type type,
				      const char *name);
/* A saved stack, which begins at that word. */
const struct fay_expr *fay_expr_saved_stack(struct fay_exprs *exprs, uint32_t word, uint32_t frames,
					    bool of_kernel);
const struct fay_expr *fay_expr_member(struct fay_exprs *exprs, const struct fay_expr *address,
				       struct fay_access access, const char *name);
/* The same value, with names. */
const struct fay_expr *fay_expr_enumerated(struct fay_exprs *exprs, const struct fay_expr *expr,
					   const struct fay_enumeration *enumeration);
/* The return address that lies on the stack at a function's first instruction. */
/* The address that a number is, to be shown by name. */
const struct fay_expr *fay_expr_symbol(struct fay_exprs *exprs, const struct fay_expr *address);
const struct fay_expr *fay_expr_caller(struct fay_exprs *exprs);
/* So many frames, the innermost first. */
const struct fay_expr *fay_expr_stack(struct fay_exprs *exprs, uint32_t frames, bool of_kernel);
const struct fay_expr *fay_expr_field(struct fay_exprs *exprs, const struct fay_field *field);
/* Whether it is the thread's name. */
bool fay_expr_is_comm(const struct fay_expr *expr);
/* Whether it is an argument or a result as the register has it, of a type that nobody knows. */
bool fay_expr_is_register(const struct fay_expr *expr);
/* Whether it is read where a pointer points to, and may have more than 15 bytes. */
static inline bool fay_expr_is_text(const struct fay_expr *expr)
{
	return expr->op == EXPR_MEMBER && expr->type == TYPE_STRING &&
	       fay_access_unpack(expr->value).whole;
}
/* Whether a string may have more than 15 bytes. */
bool fay_expr_is_long(const struct fay_expr *expr);
/* When an event happened. */
const struct fay_expr *fay_expr_time(struct fay_exprs *exprs);
const struct fay_expr *fay_expr_key(struct fay_exprs *exprs, const struct fay_expr *key,
				    unsigned level);
const struct fay_expr *fay_expr_aggregate(struct fay_exprs *exprs, struct fay_aggregate aggregate,
					  enum fay_type type);
/* Bytes of its value in a row. */
uint32_t fay_expr_size(const struct fay_expr *expr);
/* Any other operation; the operands' types are the caller's care. `span` is for the limits'
 * messages. */
const struct fay_expr *fay_expr_make(struct fay_exprs *exprs, struct fay_span span,
				     enum fay_expr_op op, enum fay_type type,
				     const struct fay_expr *a, const struct fay_expr *b,
				     const struct fay_expr *c);

/* What `op` of integers is; `type` of the operands for comparisons, else of the result. */
int64_t fay_expr_fold_ints(enum fay_expr_op op, enum fay_type type, int64_t x, int64_t y);
const struct fay_expr *fay_expr_square_part(struct fay_exprs *exprs, const struct fay_expr *x,
					    int part);
const struct fay_expr *fay_expr_quantile(struct fay_exprs *exprs, const struct fay_expr *aggregate,
					 double q);
/* The bucket of `sketch`, FAY_MERGE_HIST_LOG2 or FAY_MERGE_QUANTILE, that a value falls into, from
 * 0 up; FAY_BUCKET_NONE if `condition`, which may be NULL, does not hold. */
#define FAY_BUCKET_NONE FAY_QUANTILE_BUCKETS
const struct fay_expr *fay_expr_bucket(struct fay_exprs *exprs, enum fay_merge sketch,
				       const struct fay_expr *value,
				       const struct fay_expr *condition);
const struct fay_expr *fay_expr_folded(struct fay_exprs *exprs, enum fay_type type);
/* Which function an EXPR_CALL calls. */
const struct fay_extension_function *fay_expr_callee(const struct fay_query *query,
						     const struct fay_expr *call);
/* A call of function `index` of the query's C file `file`, which takes `count` arguments, at least
 * one; NULL with the error recorded. */
const struct fay_expr *fay_expr_call(struct fay_exprs *exprs, struct fay_span span, unsigned file,
				     unsigned index, enum fay_type type,
				     const struct fay_expr *const *arguments, unsigned count);
const struct fay_expr *fay_expr_row(struct fay_exprs *exprs);
const struct fay_expr *fay_expr_label(struct fay_exprs *exprs, unsigned level);
const struct fay_expr *fay_expr_window(struct fay_exprs *exprs);
/*
 * `expr` of one side's events as the pairs see it; a constant stays what it is. What is made of
 * expressions of one side alone is of that side, too, so that its probe computes it.
 */
const struct fay_expr *fay_expr_side(struct fay_exprs *exprs, unsigned side, const char *event,
				     const struct fay_expr *expr);

static inline bool fay_expr_is_constant(const struct fay_expr *expr)
{
	return expr->op == EXPR_CONSTANT;
}

/* StartsWith, EndsWith, Contains of bytes. */
bool fay_expr_fold_strings(enum fay_expr_op op, const char *string, size_t length, const char *part,
			   size_t part_length);

/* Conditions that all must hold. */
struct fay_filter {
	const struct fay_expr *expr;
	struct fay_filter *next;
};
/* Those that say nothing more than others are taken out. */
void fay_rewrite_filters(struct fay_filter **filters);

/* The expression as a query would write it; `event` is the name of the event. */
void fay_expr_print(FILE *out, const struct fay_expr *expr, const char *event);
/* UTC, ISO 8601, nanoseconds if not zero. */
void fay_time_print(FILE *out, uint64_t time);
/* A JSON string. */
void fay_print_string(FILE *out, const char *bytes, size_t length);

#endif
