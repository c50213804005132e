/* SPDX-License-Identifier: MIT */
/*
 * Accesses that never meet. A guard keeps an index inside the member that it belongs to, so of each
 * load and store it is known which bytes of which object it can reach at most. The optimiser, which
 * has only the types' word that members are not overrun, is told: accesses whose bytes overlap,
 * directly or through others, are one group, and no access meets one of another group
 * (`alias.scope` and `noalias`). So loops become vectors that clang vectorises by C's rule that
 * objects of different type are different; that rule is not used here.
 */
#include <stdio.h>
#include <stdlib.h>

#include "guards_private.h"

#define GROUPS_MAX 48 /* more are not told apart: each access lists all others */

void fay_apart_add(struct fay_apart *apart, LLVMValueRef at, LLVMValueRef base, uint64_t start,
		   uint64_t end)
{
	unsigned object = 0;

	for (size_t i = 0; i < apart->count; i++) { /* objects are numbered as they come */
		if (apart->touch[i].base == base) {
			object = apart->touch[i].object;
			break;
		}
		if (apart->touch[i].object >= object)
			object = apart->touch[i].object + 1;
	}
	if (apart->count == apart->room) {
		apart->room = apart->room ? 2 * apart->room : 64;
		apart->touch = realloc(apart->touch, apart->room * sizeof(*apart->touch));
		if (!apart->touch)
			abort();
	}
	apart->touch[apart->count++] = (struct fay_touch){
		.at = at, .base = base, .start = start, .end = end, .object = object
	};
}

void fay_apart_deinit(struct fay_apart *apart)
{
	free(apart->touch);
	*apart = (struct fay_apart){ 0 };
}

static int compare(const void *left, const void *right)
{
	const struct fay_touch *a = left, *b = right;

	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

/* Sorts the accesses and numbers their groups; how many there are. */
static unsigned find_groups(struct fay_apart *apart)
{
	uint64_t end = 0;
	unsigned group = 0;

	if (!apart->count)
		return 0;
	qsort(apart->touch, apart->count, sizeof(*apart->touch), compare);
	for (size_t i = 0; i < apart->count; i++) {
		struct fay_touch *t = &apart->touch[i];

		if (i && (t->object != t[-1].object || t->start >= end)) {
			group++;
			end = 0;
		}
		t->group = group;
		end = t->end > end ? t->end : end;
	}
	return group + 1;
}

static LLVMMetadataRef text(LLVMContextRef context, const char *name, unsigned number)
{
	char s[40];
	int length = snprintf(s, sizeof(s), "fay.%s.%u", name, number);

	return LLVMMDStringInContext2(context, s, (size_t)length);
}

void fay_apart_mark(struct fay_unit *unit, struct fay_apart *apart)
{
	unsigned groups = find_groups(apart), n;
	LLVMMetadataRef scope[GROUPS_MAX], others[GROUPS_MAX], domain[1], parts[2];

	if (groups > 1 && groups <= GROUPS_MAX) {
		domain[0] = text(unit->context, "probe", unit->apart++);
		parts[1] = LLVMMDNodeInContext2(unit->context, domain, 1);
		for (unsigned g = 0; g < groups; g++) {
			parts[0] = text(unit->context, "bytes", g);
			scope[g] = LLVMMDNodeInContext2(unit->context, parts, 2);
		}
		for (size_t i = 0; i < apart->count; i++) {
			struct fay_touch *t = &apart->touch[i];

			n = 0;
			for (unsigned g = 0; g < groups; g++)
				if (g != t->group)
					others[n++] = scope[g];
			fay_set_metadata(unit->context, t->at, "alias.scope", &scope[t->group], 1);
			fay_set_metadata(unit->context, t->at, "noalias", others, n);
		}
	}
	apart->count = 0;
}
