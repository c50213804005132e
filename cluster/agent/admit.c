/* SPDX-License-Identifier: MIT */
/* Whether an agent runs what it is asked to: the signer's policy, the verifier, the signatures that
 * the machine's trust store wants; and that this is in the machine's log. */
#include <stdlib.h>
#include <string.h>

#include "feeds_private.h"
#include "process/delay/delay.h"

static const char *policy_path(const struct fay_asked *asked)
{
	const struct fay_role *role = fay_key_file_role(asked->signers, asked->signer);
	return role ? role->policy : asked->signer->policy;
}

static int read_policy(const struct fay_asked *asked, struct fay_policy *policy,
		       uint8_t digest[FAY_TRUST_DIGEST], struct fay_error *error)
{
	const char *path = policy_path(asked);
	if (fay_trust_policy_read(path, policy, digest, error))
		return fay_error_set(error, FAY_E_REFUSED,
				     "the policy of signer %s cannot be read on this machine",
				     asked->signer->name);
	return FAY_OK;
}

/* The image's own proof under the policy. *verdict is the caller's in any case, as is free(3) of
 * it. */
static int verify_image(const struct fay_policy *policy, const struct fay_wire_start *start,
			struct fay_verdict **result, struct fay_error *error)
{
	struct fay_verdict *verdict = *result = calloc(1, sizeof(*verdict));
	if (!verdict)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (fay_delay_verify(start->image, start->image_size, policy, verdict, error))
		return error->code;
	if (verdict->outcome == FAY_ACCEPTED)
		return FAY_OK;
	return fay_error_set(error, FAY_E_REFUSED, "refused by the verifier: %s: %s",
			     fay_rule_id(verdict->rejection.rule),
			     verdict->rejection.what ? verdict->rejection.what
						     : fay_rule_title(verdict->rejection.rule));
}

/* A BPF object has none; the kernel's verifier will look at it. */
static int verify_object(const struct fay_policy *policy, const struct fay_wire_start *start,
			 struct fay_verdict **result, struct fay_error *error)
{
	struct fay_object *object;
	if (fay_object_read(start->image, start->image_size, &object, error))
		return error->code;
	*result = &object->verdict;
	return fay_object_check_policy(object, policy, error);
}

/* fay_trust_case.outside of a BPF object. */
static const char *outside_programs(const void *object, const struct fay_policy *scope)
{
	struct fay_policy policy;
	fay_policy_default(&policy);
	memcpy(policy.patterns, scope->patterns, sizeof(policy.patterns));
	policy.pattern_count = scope->pattern_count;
	return fay_object_check_policy(object, &policy, NULL) ? "this of the kernel" : NULL;
}

/*
 * Whether enough of those have signed who the machine's store says must. An agent cannot tell
 * whether an image was made of the query's text, so whatever it is asked to run needs signatures;
 * but who asks has signed all of START, the image in it, and counts as one who signed it.
 */
static int check_trust(const struct fay_asked *asked, const void *accepted,
		       struct fay_trust_log *log, struct fay_error *error)
{
	const struct fay_wire_start *start = asked->start;
	struct fay_trust_signatures signatures;
	struct fay_trust_store store;
	struct fay_trust_case given = { .image = start->image,
					.size = start->image_size,
					.policy = log->policy,
					.signatures = &signatures,
					.asker = asked->head->key,
					.outside = start->flags & FAY_START_BPF ? outside_programs
										: fay_trust_outside,
					.accepted = accepted };
	int result = fay_trust_store_read(FAY_TRUST_STORE, &store, error);
	if (!result)
		result = fay_trust_signatures_take(start->signatures.bytes, start->signatures.count,
						   &signatures, error);
	if (!result)
		result = fay_trust_judge(&store, &given, log->by, error);
	fay_trust_store_deinit(&store);
	return result;
}

static int admit(const struct fay_asked *asked, struct fay_verdict **verdict,
		 struct fay_trust_log *log, struct fay_error *error)
{
	bool is_bpf = asked->start->flags & FAY_START_BPF;
	struct fay_policy policy;
	int result = read_policy(asked, &policy, log->policy, error);
	if (!result)
		result = is_bpf ? verify_object(&policy, asked->start, verdict, error)
				: verify_image(&policy, asked->start, verdict, error);
	return result ? result : check_trust(asked, *verdict, log, error);
}

int fay_agent_admit(const struct fay_asked *asked, struct fay_verdict **verdict,
		    struct fay_trust_log *log, struct fay_error *error)
{
	static const uint8_t none[FAY_TRUST_DIGEST];
	char text[1024];
	struct fay_error unlogged;
	*verdict = NULL;
	*log = (struct fay_trust_log){ 0 };
	snprintf(log->who, sizeof(log->who), "%s", asked->signer->name);
	fay_text_copy(text, sizeof(text), asked->start->text);
	if (fay_trust_log_begin(log, error))
		return error->code;
	int result = admit(asked, verdict, log, error);
	if (!fay_trust_log_verdict(log, *verdict ? (*verdict)->image_sha256 : none, text,
				   result ? error : NULL, &unlogged))
		return result;
	if (result)
		fprintf(stderr, "fayd: %s\n", unlogged.message);
	else
		*error = unlogged;
	return error->code;
}
