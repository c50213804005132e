/* SPDX-License-Identifier: MIT */
/* Whether enough of those count who have signed an image. */
#include <string.h>
#include <time.h>

#include "trust.h"

static const struct fay_trust_signer *find(const struct fay_trust_store *store, const uint8_t *key)
{
	for (size_t i = 0; i < store->count; i++)
		if (!memcmp(store->signers[i].key, key, FAY_KEY_BYTES))
			return &store->signers[i];
	return NULL;
}

static bool is_over(const struct fay_trust_signer *signer)
{
	char today[16] = "";
	time_t now = time(NULL);
	struct tm day;
	if (!*signer->until)
		return false;
	if (!gmtime_r(&now, &day) || !strftime(today, sizeof(today), "%Y-%m-%d", &day))
		return true;
	return strcmp(today, signer->until) > 0;
}

/* The first probe that the signer may not speak for. */
static const char *outside(const struct fay_trust_signer *signer, const struct fay_verdict *verdict)
{
	if (!verdict->probe_count)
		return "anything, for nothing was verified";
	for (uint32_t i = 0; i < verdict->probe_count; i++)
		if (!fay_policy_allows(&signer->scope, verdict->probes[i].pattern))
			return verdict->probes[i].pattern;
	return NULL;
}

static void tell(char *text, size_t size, const char *name, const char *what, const char *more)
{
	size_t used = strlen(text);
	snprintf(text + used, size - used, "\n  %s: %s%s%s", name, what, more ? " " : "",
		 more ? more : "");
}

/* Whether the signature counts; else why not. Such that was not made by its key for this image is
 * no matter of counting: *forged. */
static bool counts(const struct fay_trust_signer *signer,
		   const struct fay_trust_signature *signature, const uint8_t *policy,
		   const void *image, size_t size, const struct fay_verdict *verdict, bool *forged,
		   char *why, size_t room)
{
	char key[FAY_KEY_HEX + 1];
	const char *name = signer ? signer->name : key;
	fay_keys_hex(key, signature->key);
	if (!fay_trust_signature_holds(signature, image, size)) {
		*forged = true;
		tell(why, room, name, "the signature is not of this image, or forged", NULL);
	} else if (!signer) {
		tell(why, room, name, "an unknown signer", NULL);
	} else if (signer->revoked) {
		tell(why, room, name, "the key is revoked", NULL);
	} else if (is_over(signer)) {
		tell(why, room, name, "trusted no longer than", signer->until);
	} else if (memcmp(signature->policy, policy, FAY_TRUST_DIGEST) != 0) {
		tell(why, room, name, "signed for another policy", NULL);
	} else if (outside(signer, verdict)) {
		tell(why, room, name, "not trusted to trace", outside(signer, verdict));
	} else {
		return true;
	}
	return false;
}

int fay_trust_check(const struct fay_trust_store *store, const char *image_path, const void *image,
		    size_t size, const char *policy_path, const struct fay_verdict *verdict,
		    struct fay_error *error)
{
	struct fay_trust_signatures signatures;
	uint8_t policy[FAY_TRUST_DIGEST];
	unsigned good = 0;
	bool forged = false;
	char why[1536] = "";
	if (!store->required)
		return FAY_OK;
	if (fay_keys_init(error) || fay_trust_policy_digest(policy_path, policy, error) ||
	    fay_trust_signatures_read(image_path, &signatures, error))
		return error->code;
	for (size_t i = 0; i < signatures.count; i++)
		good += counts(find(store, signatures.at[i].key), &signatures.at[i], policy, image,
			       size, verdict, &forged, why, sizeof(why));
	if (good >= store->required && !forged)
		return FAY_OK;
	return fay_error_set(error, FAY_E_REFUSED,
			     "'%s' is not trusted here: %u of %u signatures that are required%s",
			     image_path, good, store->required, why);
}

int fay_trust_check_here(const char *image_path, const void *image, size_t size,
			 const char *policy_path, const struct fay_verdict *verdict,
			 struct fay_error *error)
{
	struct fay_trust_store store;
	int result = fay_trust_store_read(FAY_TRUST_STORE, &store, error);
	if (!result)
		result = fay_trust_check(&store, image_path, image, size, policy_path, verdict,
					 error);
	fay_trust_store_deinit(&store);
	return result;
}
