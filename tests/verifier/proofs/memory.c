/* SPDX-License-Identifier: MIT */
/* Memory: objects at addresses of their own, byte by byte. */
#include "exec.h"

#include <stdlib.h>

/* Object i is at (i + 1) * 2^32; addresses are numbers. */
uint64_t object_new(struct exec *x, uint32_t size, bool zero)
{
	struct object *o = &x->object[x->objects];
	term nothing = number(x, 0, 8);

	if (x->objects == OBJECTS)
		path_fail(x, "too many objects");
	*o = (struct object){ calloc(size + 1, sizeof(*o->cells)), size };
	if (!o->cells)
		path_fail(x, "no memory");
	for (uint32_t i = 0; zero && i < size; i++)
		o->cells[i].t = nothing;
	return (uint64_t)++x->objects << 32;
}

static struct cell *cells_at(struct exec *x, uint64_t at, uint64_t size)
{
	uint64_t i = at >> 32, offset = at & UINT32_MAX;

	if (!i || i > x->objects || offset + size > x->object[i - 1].size)
		path_fail(x, "an access out of bounds: %u bytes at %#llx", (unsigned)size,
			  (unsigned long long)at);
	return &x->object[i - 1].cells[offset];
}

static term cell_byte(struct exec *x, const struct cell *c)
{
	if (!c->t)
		return symbol(x, "unwritten", 8);
	return part(x, c->t, c->index * 8 + 7, c->index * 8);
}

term memory_load(struct exec *x, uint64_t at, unsigned bits)
{
	unsigned size = (bits + 7) / 8;
	struct cell *c = cells_at(x, at, size);
	bool whole = c->t && width_of(x, c->t) == 8 * size;
	term t;

	for (unsigned i = 0; whole && i < size; i++)
		whole = c[i].t == c->t && c[i].index == i;
	if (whole)
		return resize(x, c->t, bits, false);
	t = cell_byte(x, c);
	for (unsigned i = 1; i < size; i++)
		t = Z3_mk_concat(x->z, cell_byte(x, &c[i]), t);
	return resize(x, simple(x, t), bits, false);
}

void memory_store(struct exec *x, uint64_t at, term t)
{
	unsigned size = (width_of(x, t) + 7) / 8;
	struct cell *c = cells_at(x, at, size);

	t = resize(x, t, 8 * size, false);
	for (unsigned i = 0; i < size; i++)
		c[i] = (struct cell){ t, i };
}

void memory_move(struct exec *x, uint64_t to, uint64_t from, uint64_t size)
{
	struct cell *t = cells_at(x, to, size), *f = cells_at(x, from, size);

	if (to < from)
		for (uint64_t i = 0; i < size; i++)
			t[i] = f[i];
	else
		for (uint64_t i = size; i-- > 0;)
			t[i] = f[i];
}

void memory_fill(struct exec *x, uint64_t to, term byte, uint64_t size)
{
	struct cell *t = cells_at(x, to, size);

	for (uint64_t i = 0; i < size; i++)
		t[i] = (struct cell){ byte, 0 };
}

static void initialise(struct exec *x, uint64_t at, LLVMValueRef v)
{
	LLVMTypeRef type = LLVMTypeOf(v);
	unsigned n;

	switch (LLVMGetTypeKind(type)) {
	case LLVMStructTypeKind:
		n = LLVMCountStructElementTypes(type);
		for (unsigned i = 0; i < n; i++)
			initialise(x, at + LLVMOffsetOfElement(x->layout, type, i),
				   LLVMGetAggregateElement(v, i));
		break;
	case LLVMArrayTypeKind:
		n = (unsigned)LLVMGetArrayLength2(type);
		for (unsigned i = 0; i < n; i++)
			initialise(x,
				   at + i * LLVMABISizeOfType(x->layout, LLVMGetElementType(type)),
				   LLVMGetAggregateElement(v, i));
		break;
	default: memory_store(x, at, constant(x, v));
	}
}

uint64_t global_address(struct exec *x, LLVMValueRef global)
{
	LLVMTypeRef type = LLVMGlobalGetValueType(global);
	LLVMValueRef initial = LLVMGetInitializer(global);
	uint64_t at;

	for (unsigned i = 0; i < x->globals; i++)
		if (x->global[i].global == global)
			return x->global[i].address;
	if (!initial || x->globals == sizeof(x->global) / sizeof(x->global[0]))
		path_fail(x, "a global without a value");
	at = object_new(x, (uint32_t)LLVMABISizeOfType(x->layout, type), true);
	x->global[x->globals].global = global;
	x->global[x->globals++].address = at;
	if (!LLVMIsNull(initial))
		initialise(x, at, initial);
	return at;
}

const char *memory_text(struct exec *x, uint64_t at)
{
	LLVMValueRef g = NULL;
	size_t length;

	for (unsigned i = 0; i < x->globals; i++)
		if (x->global[i].address == at)
			g = LLVMGetInitializer(x->global[i].global);
	if (!g || !LLVMIsConstantString(g))
		path_fail(x, "a name that is no string");
	return LLVMGetAsString(g, &length);
}

void memory_drop(struct exec *x)
{
	while (x->objects)
		free(x->object[--x->objects].cells);
	x->globals = 0;
}
