/* SPDX-License-Identifier: MIT */
#include "running.h"

#include <stdlib.h>

#include "tests/query/reference/trees.h"

static struct running *current; /* for the helpers */
unsigned char *handed_on;       /* rows of fay_flush and fay_emit */
size_t handed_count;
unsigned flushes;
bool no_room;
void (*on_emit)(uint64_t state, const uint8_t *row);
int64_t (*on_try_read)(void *to, uint64_t size, uint64_t address);

static void hand_on(const void *row)
{
	static size_t room;
	size_t size = current->plan->spec.states[0].row_size, used = handed_count * size;
	if (!handed_on || used + size > room) {
		room = 2 * (used + size);
		handed_on = realloc(handed_on, room);
		assert_non_null(handed_on);
	}
	memcpy(handed_on + used, row, size);
	handed_count++;
}

static uint64_t test_flush(void *local, uint64_t state)
{
	const struct fay_spec_state *s = &current->plan->spec.states[0];
	assert_ptr_equal(local, current->local);
	assert_int_equal(state, 0);
	flushes++;
	if (no_room)
		return 1;
	unsigned char *rows = current->local + s->offset + sizeof(struct fay_table_header);
	uint64_t used = 0;
	for (uint32_t i = 0; i < s->rows; i++, rows += s->row_size) {
		uint64_t tag;
		memcpy(&tag, rows, sizeof(tag));
		if (tag) {
			hand_on(rows);
			used++;
		}
	}
	assert_int_equal(used, *(uint64_t *)(current->local + s->offset));
	rows = current->local + s->offset + sizeof(struct fay_table_header);
	memset(rows, 0, (size_t)s->rows * s->row_size);
	memset(current->local + s->offset, 0, sizeof(used)); /* the header's other word stays */
	return 0;
}

static uint64_t test_emit(void *local, uint64_t state, const void *row)
{
	assert_ptr_equal(local, current->local);
	assert_true(state < current->plan->spec.state_count);
	if (no_room && current->plan->texts && state == current->plan->text_state)
		return 1;
	if (on_emit)
		on_emit(state, row);
	else
		hand_on(row);
	return 0;
}

static int64_t test_try_read(void *to, uint64_t size, uint64_t address)
{
	if (on_try_read)
		return on_try_read(to, size, address);
	memset(to, 0, size);
	return -1;
}

static void map_helpers(LLVMExecutionEngineRef engine, LLVMModuleRef module)
{
	const struct {
		const char *name;
		void *function;
	} helpers[] = { { "fay_flush", (void *)(uintptr_t)test_flush },
			{ "fay_emit", (void *)(uintptr_t)test_emit },
			{ "fay_try_read", (void *)(uintptr_t)test_try_read } };
	for (size_t i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++) {
		LLVMValueRef function = LLVMGetNamedFunction(module, helpers[i].name);
		if (function)
			LLVMAddGlobalMapping(engine, function, helpers[i].function);
	}
}

static void start_by(struct running *r, const char *text, const struct fay_query_options *planned)
{
	struct fay_error error = { 0 };
	LLVMModuleRef module;
	char *message = NULL;
	if (fay_query_plan_with(text, planned, &r->plan, &error))
		fail_msg("%s\n%s", text, error.message);
	r->context = LLVMContextCreate();
	if (fay_plan_generate(r->plan, r->context, &module, &error))
		fail_msg("%s\n%s", text, error.message);
	struct LLVMMCJITCompilerOptions options;
	LLVMInitializeMCJITCompilerOptions(&options, sizeof(options));
	options.OptLevel = 2;
	if (LLVMCreateMCJITCompilerForModule(&r->engine, module, &options, sizeof(options),
					     &message))
		fail_msg("%s", message);
	map_helpers(r->engine, module);
	r->probe = (probe_function *)(uintptr_t)LLVMGetFunctionAddress(r->engine, "probe0");
	assert_non_null(r->probe);
	r->right = r->plan->joins ? (probe_function *)(uintptr_t)LLVMGetFunctionAddress(r->engine,
											"probe2")
				  : NULL;
	r->third =
		r->plan->source_count > 2
			? (probe_function *)(uintptr_t)LLVMGetFunctionAddress(r->engine, "probe4")
			: NULL;
	/* The bytes after LOCAL must stay as they are. */
	r->local = malloc(r->plan->spec.local_size + 64);
	assert_non_null(r->local);
	memset(r->local, 0, r->plan->spec.local_size);
	memset(r->local + r->plan->spec.local_size, 0xa5, 64);
	current = r;
	handed_count = flushes = 0;
	no_room = false;
}

void start(struct running *r, const char *text)
{
	start_by(r, text, &(struct fay_query_options){ .now = NOW });
}

void start_with_texts(struct running *r, const char *text)
{
	start_by(r, text,
		 &(struct fay_query_options){ .now = NOW,
					      .long_strings = true,
					      .text_key = { { 0x0123456789abcdef, 42 } } });
}

void stop(struct running *r)
{
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(r->local[r->plan->spec.local_size + i], 0xa5);
	LLVMDisposeExecutionEngine(r->engine);
	LLVMContextDispose(r->context);
	fay_plan_destroy(r->plan);
	free(r->local);
	free(handed_on);
	handed_on = NULL;
}

int64_t word(const void *row, uint32_t offset)
{
	int64_t value;
	memcpy(&value, (const unsigned char *)row + offset, sizeof(value));
	return value;
}

int prepare_jit(void)
{
	LLVMLinkInMCJIT();
	return LLVMInitializeNativeTarget() || LLVMInitializeNativeAsmPrinter();
}

int seed_and_prepare_jit(void **state)
{
	const char *text = getenv("FAY_SEED");
	(void)state;
	random_state = text ? strtoull(text, NULL, 0) | 1 : 0x5eed;
	print_message("FAY_SEED=%#llx\n", (unsigned long long)random_state);
	return prepare_jit();
}
