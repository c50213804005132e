/* SPDX-License-Identifier: MIT */
/*
 * Runs a command and asks a query about it, with libfay_trace:
 *
 *     cc trace.c -o trace $(pkg-config --cflags --libs fay-trace)
 *     ./trace 'cluster.Function("libc!malloc").Count()' ls
 *
 * Exit code 0, or that of the error: 1 refused, 2 usage, 3 a limit, 4 internal.
 */
#include <inttypes.h>
#include <stdio.h>

#include <fay/trace.h>

static void print_cell(const struct fay_cell *cell)
{
	switch (cell->kind) {
	case FAY_CELL_NONE: printf("-"); break;
	case FAY_CELL_I64: printf("%" PRId64, cell->i64); break;
	case FAY_CELL_U64:
	case FAY_CELL_TIME: printf("%" PRIu64, cell->u64); break;
	case FAY_CELL_BOOL: printf("%s", cell->u64 ? "true" : "false"); break;
	case FAY_CELL_DOUBLE: printf("%g", cell->real); break;
	case FAY_CELL_TEXT: printf("%s", cell->bytes); break;
	default:
		for (size_t i = 0; i < cell->size; i++)
			printf("%s%s (%" PRIu64 ", %g)", i ? ", " : "", cell->items[i].label,
			       cell->items[i].count, cell->items[i].value);
	}
}

static void print_row(void *context, const struct fay_row *row)
{
	struct fay_tracer *const *tracer = context;

	for (size_t i = 0; i < row->count; i++) {
		printf("%s%s: ", i ? ", " : "", fay_tracer_column(*tracer, row->result, i));
		print_cell(&row->cells[i]);
	}
	printf("\n");
}

static void print_message(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "%s\n", text);
}

int main(int argc, char **argv)
{
	struct fay_tracer *tracer;
	struct fay_tracer_options options = { .size = sizeof(options),
					      .command = argv + 2,
					      .context = &tracer,
					      .row = print_row,
					      .message = print_message };
	struct fay_error error;
	int code;

	if (argc < 3) {
		fprintf(stderr, "usage: %s QUERY COMMAND...\n", argv[0]);
		return FAY_E_USAGE;
	}
	code = fay_tracer_open(argv[1], &options, &tracer, &error);
	while (!code && !fay_tracer_over(tracer))
		code = fay_tracer_step(tracer, -1, &error);
	if (!code)
		code = fay_tracer_finish(tracer, &error);
	if (code)
		fprintf(stderr, "%s\n", error.message);
	fay_tracer_close(tracer);
	return code;
}
