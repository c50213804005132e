/* SPDX-License-Identifier: MIT */
/* Linking in what native probes call. */
#include "native_private.h"

#include "fay/extension.h"
#include "query/runtime/runtime.h"

int fay_codegen_link(struct fay_codegen *g, struct fay_error *error)
{
	const struct {
		bool called;
		const char *bytes, *end;
	} parts[] = {
		{ g->sketches, fay_query_sketches, fay_query_sketches_end },
		{ g->reads, fay_query_reads, fay_query_reads_end },
		{ g->computes, fay_query_computing, fay_query_computing_end },
		{ g->stacks, fay_query_stacks, fay_query_stacks_end },
		{ g->texts_read, fay_query_texts, fay_query_texts_end },
	};
	int code = FAY_OK;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !code; i++)
		if (parts[i].called)
			code = fay_codegen_link_bitcode(g, parts[i].bytes, parts[i].end, error);
	const struct fay_query *query = g->p->query;
	for (uint32_t i = 0; g->extends && i < query->extension_count && !code; i++)
		code = fay_extension_link(query->extensions[i].code, g->module, error);
	return code;
}
