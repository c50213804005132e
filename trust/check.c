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

const char *fay_trust_outside(const void *accepted, const struct fay_policy *scope)
{
	const struct fay_verdict *verdict = accepted;
	if (!verdict->probe_count)
		return "anything, for nothing was verified";
	for (uint32_t i = 0; i < verdict->probe_count; i++)
		if (!fay_policy_allows(scope, verdict->probes[i].pattern))
			return verdict->probes[i].pattern;
	return NULL;
}

static void tell(char *text, size_t size, const char *name, const char *what, const char *more)
{
	size_t used = strlen(text);
	snprintf(text + used, size - used, "\n  %s: %s%s%s", name, what, more ? " " : "",
		 more ? more : "");
}

/* What else than the signature itself keeps a signer from counting; false: it is told. */
static bool may_count(const struct fay_trust_signer *signer, const char *name,
		      const struct fay_trust_case *asked, char *why, size_t room)
{
	const char *place;
	if (!signer)
		tell(why, room, name, "an unknown signer", NULL);
	else if (signer->revoked)
		tell(why, room, name, "the key is revoked", NULL);
	else if (is_over(signer))
		tell(why, room, name, "trusted no longer than", signer->until);
	else if ((place = asked->outside(asked->accepted, &signer->scope)))
		tell(why, room, name, "not trusted to trace", place);
	else
		return true;
	return false;
}

/* Whether the signature counts; else why not. Such that was not made by its key for this image is
 * no matter of counting: *forged. */
static bool counts(const struct fay_trust_signer *signer,
		   const struct fay_trust_signature *signature, const struct fay_trust_case *asked,
		   bool *forged, char *why, size_t room)
{
	char key[FAY_KEY_HEX + 1];
	const char *name = signer ? signer->name : key;
	fay_keys_hex(key, signature->key);
	if (!fay_trust_signature_holds(signature, asked->image, asked->size)) {
		*forged = true;
		tell(why, room, name, "the signature is not of this image, or forged", NULL);
		return false;
	}
	if (!may_count(signer, name, asked, why, room))
		return false;
	if (!memcmp(signature->policy, asked->policy, FAY_TRUST_DIGEST))
		return true;
	tell(why, room, name, "signed for another policy", NULL);
	return false;
}

static void add_name(char by[FAY_TRUST_NAMES], const char *name)
{
	size_t used = strlen(by);
	snprintf(by + used, FAY_TRUST_NAMES - used, "%s%s", used ? ", " : "", name);
}

int fay_trust_judge(const struct fay_trust_store *store, const struct fay_trust_case *asked,
		    char by[FAY_TRUST_NAMES], struct fay_error *error)
{
	const struct fay_trust_signer *asker = asked->asker ? find(store, asked->asker) : NULL;
	unsigned good = 0;
	bool forged = false;
	char why[1536] = "", key[FAY_KEY_HEX + 1];
	*by = 0;
	if (!store->required)
		return FAY_OK;
	if (fay_keys_init(error))
		return error->code;
	for (size_t i = 0; i < asked->signatures->count; i++) {
		const struct fay_trust_signature *signature = &asked->signatures->at[i];
		const struct fay_trust_signer *signer = find(store, signature->key);
		if (!counts(signer, signature, asked, &forged, why, sizeof(why)))
			continue;
		good++;
		add_name(by, signer->name);
		if (signer == asker)
			asker = NULL; /* one signer, once */
	}
	if (asker && may_count(asker, asker->name, asked, why, sizeof(why))) {
		good++;
		add_name(by, asker->name);
	} else if (asked->asker && !find(store, asked->asker)) {
		fay_keys_hex(key, asked->asker);
		tell(why, sizeof(why), key, "who asks is an unknown signer", NULL);
	}
	if (good >= store->required && !forged)
		return FAY_OK;
	return fay_error_set(error, FAY_E_REFUSED,
			     "%s%s%s is not trusted here: %u of %u signatures that are required%s",
			     asked->name ? "'" : "", asked->name ? asked->name : "this",
			     asked->name ? "'" : "", good, store->required, why);
}

int fay_trust_check(const struct fay_trust_store *store, const char *image_path, const void *image,
		    size_t size, const uint8_t policy[FAY_TRUST_DIGEST],
		    const struct fay_verdict *verdict, char by[FAY_TRUST_NAMES],
		    struct fay_error *error)
{
	struct fay_trust_signatures signatures = { 0 };
	struct fay_trust_case asked = { .name = image_path,
					.image = image,
					.size = size,
					.policy = policy,
					.signatures = &signatures,
					.outside = fay_trust_outside,
					.accepted = verdict };
	if (store->required && fay_trust_signatures_read(image_path, &signatures, error))
		return error->code;
	return fay_trust_judge(store, &asked, by, error);
}

int fay_trust_check_here(const char *image_path, const void *image, size_t size,
			 const uint8_t policy[FAY_TRUST_DIGEST], const struct fay_verdict *verdict,
			 char by[FAY_TRUST_NAMES], struct fay_error *error)
{
	struct fay_trust_store store;
	int result = fay_trust_store_read(FAY_TRUST_STORE, &store, error);
	if (!result)
		result = fay_trust_check(&store, image_path, image, size, policy, verdict, by,
					 error);
	fay_trust_store_deinit(&store);
	return result;
}
