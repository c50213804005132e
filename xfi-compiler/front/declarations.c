/* SPDX-License-Identifier: MIT */
/*
 * What probe.h declares, read back from the module: the initialisers of the globals in sections
 * .fay.decl.* (struct fay_decl_probe and fay_decl_state of include/fay/probe.h, member for member)
 * become the image's specification. Offsets in LOCAL and GLOBAL are given out here, in order of
 * declaration; the description itself then leaves the module.
 */
#include <stdlib.h>
#include <string.h>

#include "fay/event.h"
#include "front_private.h"

void fay_declarations_deinit(struct fay_declarations *d)
{
	for (size_t i = 0; i < d->string_count; i++)
		free(d->strings[i]);
	free(d->strings);
	free(d->probes);
	free(d->states);
	free(d->columns);
	free(d->objects);
	memset(d, 0, sizeof(*d));
}

static uint64_t number(LLVMValueRef record, unsigned index)
{
	LLVMValueRef v = LLVMGetAggregateElement(record, index);

	return v && LLVMIsAConstantInt(v) ? LLVMConstIntGetZExtValue(v) : 0;
}

/* The string that member `index` points to, kept by d; NULL if it is none. */
static const char *text(struct fay_declarations *d, LLVMValueRef record, unsigned index)
{
	LLVMValueRef v = LLVMGetAggregateElement(record, index), init;
	char **grown, *copy = NULL;
	const char *bytes;
	size_t length;

	if (!v || !LLVMIsAGlobalVariable(v) || !(init = LLVMGetInitializer(v)))
		return NULL;
	if (LLVMIsAConstantAggregateZero(init)) {
		copy = strdup("");
	} else if (LLVMIsConstantString(init)) {
		bytes = LLVMGetAsString(init, &length);
		copy = strndup(bytes, length);
	}
	grown = copy ? realloc(d->strings, (d->string_count + 1) * sizeof(*grown)) : NULL;
	if (!grown) {
		free(copy);
		return NULL;
	}
	d->strings = grown;
	return d->strings[d->string_count++] = copy;
}

static bool in_section(LLVMValueRef global, const char *section)
{
	const char *name = LLVMGetSection(global);

	return name && !strcmp(name, section);
}

static int read_probe(struct fay_declarations *d, LLVMValueRef global, struct fay_error *error)
{
	LLVMValueRef record = LLVMGetInitializer(global);
	struct fay_spec_probe *p = &d->probes[d->spec.probe_count];
	LLVMValueRef code = LLVMGetAggregateElement(record, 3);
	size_t length;

	p->pattern = text(d, record, 0);
	p->kind = (enum fay_probe_kind)number(record, 1);
	p->parameter = number(record, 2);
	if (!p->pattern || !code || !LLVMIsAFunction(code))
		return fay_error_at(error, FAY_E_USAGE, global,
				    "a probe's pattern must be a string literal");
	p->symbol = LLVMGetValueName2(code, &length);
	if (p->kind == FAY_PROBE_MARKER &&
	    (!strchr(p->pattern, '!') || !strchr(strchr(p->pattern, '!'), ':')))
		return fay_error_at(error, FAY_E_USAGE, global,
				    "pattern \"%s\": expected \"module!provider:name\"",
				    p->pattern);
	if (p->kind <= FAY_PROBE_OFFSET && !strchr(p->pattern, '!'))
		return fay_error_at(error, FAY_E_USAGE, global,
				    "pattern \"%s\": expected \"module!function\"", p->pattern);
	if (p->kind == FAY_PROBE_TIMER && !p->parameter)
		return fay_error_at(error, FAY_E_USAGE, global,
				    "a timer's period is given in nanoseconds, from 1 up: "
				    "FAY_TIMER(10000000) is every 10 ms");
	d->spec.probe_count++;
	return 0;
}

static int read_columns(struct fay_declarations *d, LLVMValueRef table, unsigned count,
			const char *state, struct fay_error *error)
{
	LLVMValueRef init =
		table && LLVMIsAGlobalVariable(table) ? LLVMGetInitializer(table) : NULL;

	for (unsigned i = 0; i < count; i++) {
		LLVMValueRef record = init ? LLVMGetAggregateElement(init, i) : NULL, param;
		struct fay_spec_column *grown, *c;

		grown = realloc(d->columns, (d->spec.column_count + 1) * sizeof(*grown));
		if (!grown || !record)
			return fay_error_set(error, FAY_E_INTERNAL,
					     "the columns of %s cannot be read", state);
		d->columns = grown;
		c = &d->columns[d->spec.column_count++];
		param = LLVMGetAggregateElement(record, 5);
		*c = (struct fay_spec_column){
			.name = text(d, record, 0),
			.type = (enum fay_column_type)number(record, 1),
			.merge = (enum fay_merge)number(record, 2),
			.offset = (uint32_t)number(record, 3),
			.size = (uint32_t)number(record, 4),
			.param = { (int64_t)number(param, 0), (int64_t)number(param, 1) },
		};
		if (!c->name || c->size % 8 || c->offset % 8)
			return fay_error_set(error, FAY_E_USAGE,
					     "%s: column %s: size must be a multiple of 8", state,
					     c->name ? c->name : "?");
	}
	return 0;
}

static int read_state(struct fay_declarations *d, LLVMValueRef record, struct fay_error *error)
{
	struct fay_spec_state *s = &d->states[d->spec.state_count];
	struct fay_object *o = &d->objects[d->spec.state_count];
	uint32_t *region;
	uint64_t size = number(record, 8);

	*s = (struct fay_spec_state){
		.name = text(d, record, 0),
		.kind = (enum fay_state_kind)number(record, 2),
		.scope = (enum fay_state_scope)number(record, 3),
		.rows = (uint32_t)number(record, 4),
		.row_size = (uint32_t)number(record, 5),
		.keys = (uint16_t)number(record, 6),
		.values = (uint16_t)number(record, 7),
		.size = (uint32_t)size,
		.first_column = d->spec.column_count,
	};
	o->global = LLVMGetAggregateElement(record, 1);
	o->scope = s->scope;
	if (!s->name || !o->global || !LLVMIsAGlobalVariable(o->global))
		return fay_error_set(error, FAY_E_INTERNAL, "a state declaration cannot be read");
	region = s->scope == FAY_SCOPE_LOCAL ? &d->spec.local_size : &d->spec.global_size;
	if (size % 8 || s->row_size > 4096)
		return fay_error_at(
			error, FAY_E_USAGE, o->global,
			"%s: rows have %u bytes; they may have at most 4096, a multiple of 8",
			s->name, s->row_size);
	if (*region + size >
	    (s->scope == FAY_SCOPE_LOCAL ? FAY_IMAGE_MAX_LOCAL : FAY_IMAGE_MAX_GLOBAL))
		return fay_error_at(error, FAY_E_LIMIT, o->global,
				    "%s: more than %u MiB of state; use fewer rows", s->name,
				    (s->scope == FAY_SCOPE_LOCAL ? FAY_IMAGE_MAX_LOCAL
								 : FAY_IMAGE_MAX_GLOBAL) >>
					    20);
	s->offset = s->kind == FAY_STATE_STREAM ? 0 : *region;
	o->offset = s->offset;
	o->size = size;
	*region += (uint32_t)size;
	d->spec.state_count++;
	d->object_count++;
	return read_columns(d, LLVMGetAggregateElement(record, 9), s->keys + (unsigned)s->values,
			    s->name, error);
}

/* Working memory: an object, but no state. It begins at a cache line. */
static int read_scratch(struct fay_declarations *d, LLVMValueRef record, struct fay_error *error)
{
	struct fay_object *o = &d->objects[d->object_count++];
	uint32_t *region;
	uint64_t size = (number(record, 2) + 63) & ~UINT64_C(63), offset;

	o->global = LLVMGetAggregateElement(record, 0);
	o->scope = (enum fay_state_scope)number(record, 1);
	o->size = number(record, 2);
	if (!o->global || !LLVMIsAGlobalVariable(o->global))
		return fay_error_set(error, FAY_E_INTERNAL, "a FAY_SCRATCH() cannot be read");
	region = o->scope == FAY_SCOPE_LOCAL ? &d->spec.local_size : &d->spec.global_size;
	offset = ((uint64_t)*region + 63) & ~UINT64_C(63);
	if (offset + size >
	    (o->scope == FAY_SCOPE_LOCAL ? FAY_IMAGE_MAX_LOCAL : FAY_IMAGE_MAX_GLOBAL))
		return fay_error_at(error, FAY_E_LIMIT, o->global,
				    "more than %u MiB of state and FAY_SCRATCH()",
				    (o->scope == FAY_SCOPE_LOCAL ? FAY_IMAGE_MAX_LOCAL
								 : FAY_IMAGE_MAX_GLOBAL) >>
					    20);
	o->offset = offset;
	*region = (uint32_t)(offset + size);
	return 0;
}

static int read_all(LLVMModuleRef module, struct fay_declarations *d, struct fay_error *error)
{
	int result = 0;

	for (LLVMValueRef g = LLVMGetFirstGlobal(module); g && !result; g = LLVMGetNextGlobal(g)) {
		if (in_section(g, ".fay.decl.probe"))
			result = read_probe(d, g, error);
		else if (in_section(g, ".fay.decl.state"))
			result = read_state(d, LLVMGetInitializer(g), error);
	}
	/* After the states: the first objects are numbered as these are. */
	for (LLVMValueRef g = LLVMGetFirstGlobal(module); g && !result; g = LLVMGetNextGlobal(g))
		if (in_section(g, ".fay.decl.scratch"))
			result = read_scratch(d, LLVMGetInitializer(g), error);
	return result;
}

static void drop(LLVMModuleRef module)
{
	static const char *const lists[] = { "llvm.used", "llvm.compiler.used" };
	LLVMValueRef next;

	for (size_t i = 0; i < 2; i++) {
		LLVMValueRef g = LLVMGetNamedGlobal(module, lists[i]);

		if (g)
			LLVMDeleteGlobal(g);
	}
	for (int pass = 0; pass < 2; pass++) /* states refer to columns */
		for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = next) {
			next = LLVMGetNextGlobal(g);
			if (in_section(g, ".fay.decl.probe") || in_section(g, ".fay.decl.state") ||
			    in_section(g, ".fay.decl.scratch") ||
			    (pass && in_section(g, ".fay.decl.columns")))
				LLVMDeleteGlobal(g);
		}
}

int fay_declarations_read(LLVMModuleRef module, struct fay_declarations *d, struct fay_error *error)
{
	size_t probes = 0, states = 0, objects = 0;
	int result;

	memset(d, 0, sizeof(*d));
	for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g)) {
		probes += in_section(g, ".fay.decl.probe");
		states += in_section(g, ".fay.decl.state");
		objects += in_section(g, ".fay.decl.state") || in_section(g, ".fay.decl.scratch");
	}
	if (!probes)
		return fay_error_set(error, FAY_E_USAGE,
				     "there is no probe in this file; "
				     "FAY_ENTRY(\"module!function\") { ... } makes one");
	d->probes = calloc(probes, sizeof(*d->probes));
	d->states = calloc(states + 1, sizeof(*d->states));
	d->objects = calloc(objects + 1, sizeof(*d->objects));
	if (!d->probes || !d->states || !d->objects)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	result = read_all(module, d, error);
	drop(module);
	d->spec.probes = d->probes;
	d->spec.states = d->states;
	d->spec.columns = d->columns;
	return result;
}
