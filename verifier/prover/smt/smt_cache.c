/* SPDX-License-Identifier: MIT */
/*
 * Answers of the solver by the SHA-256 of the question, within one verification: probes of one
 * image often share code, and a call's body is asked about in each of its contexts. The question is
 * the whole query as SMT-LIB text, so equal digests mean equal questions. Only "proved" is kept: a
 * refutation comes with a model, and "unknown" depends on how busy the machine was. Nothing is kept
 * across verifications, least of all in files (docs/decisions/0008): a proof that someone else may
 * have written is none.
 */
#include "smt_cache.h"

#include <string.h>

bool fay_smt_cache_key(Z3_context z, unsigned count, Z3_ast *facts, uint8_t key[32])
{
	const char *text;

	if (!count || count > FAY_SMT_CACHE_FACTS)
		return false;
	text = Z3_benchmark_to_smtlib_string(z, "", "QF_BV", "", "", count - 1, facts,
					     facts[count - 1]);
	if (!text || Z3_get_error_code(z) != Z3_OK)
		return false;
	fay_sha256(text, strlen(text), key);
	return true;
}

bool fay_smt_cache_has(const struct fay_smt_cache *cache, const uint8_t key[32])
{
	for (uint32_t i = 0; cache && i < cache->count; i++)
		if (!memcmp(cache->keys[i], key, 32))
			return true;
	return false;
}

void fay_smt_cache_add(struct fay_smt_cache *cache, const uint8_t key[32])
{
	if (cache && cache->count < FAY_SMT_CACHE_ANSWERS)
		memcpy(cache->keys[cache->count++], key, 32);
}
