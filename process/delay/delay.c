/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <string.h>

#include "delay.h"
#include "verifier/accept/accept.h"

/* Threads may do the same at once: they store the same. */
const char *fay_delay_load(const struct fay_delayed *delayed)
{
	void *library = dlopen(delayed->library, RTLD_NOW);
	const char *name = delayed->names;

	for (void **slot = delayed->first; library && slot < delayed->end;
	     slot++, name += strlen(name) + 1) {
		void *function = dlsym(library, name);

		if (!function)
			return dlerror();
		__atomic_store_n(slot, function, __ATOMIC_RELEASE);
	}
	return library ? NULL : dlerror();
}

static bool is_the_provers(const char *library)
{
	return !strncmp(library, "libz3", 5) || !strncmp(library, "libcapstone", 11);
}

int fay_delay_prover(struct fay_error *error)
{
	const char *why = NULL;

	for (const struct fay_delayed *delayed = fay_delayed; delayed && !why && delayed->library;
	     delayed++)
		if (is_the_provers(delayed->library))
			why = fay_delay_load(delayed);
	return why ? fay_error_set(error, FAY_E_REFUSED,
				   "the image is not accepted by a certificate, and a library that "
				   "the prover needs cannot be loaded: %s",
				   why)
		   : FAY_OK;
}

int fay_delay_verify(const void *bytes, size_t size, const struct fay_policy *policy,
		     struct fay_verdict *verdict, struct fay_error *error)
{
	if (fay_accept_certified(bytes, size, policy, verdict))
		return FAY_OK;
	if (fay_delay_prover(error))
		return error->code;
	fay_verify(bytes, size, policy, verdict);
	return FAY_OK;
}
