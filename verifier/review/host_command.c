/* SPDX-License-Identifier: MIT */
/*
 * `fay verify --interface FILE`: an extension against its host's interface. The checker decides, by
 * the certificate that the image brings, or by one that is made here. --certify makes the image
 * one of this interface, if it is of none yet, and attaches the certificate.
 */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "verifier/explain/explain.h"
#include "verifier/host/host.h"
#include "verifier/inspect/command.h"

enum { EXIT_ACCEPTED = 0, EXIT_REJECTED = 1, EXIT_USAGE = 2, EXIT_LIMIT = 3, EXIT_INTERNAL = 4 };

struct host_command {
	const struct fay_verify_host *ask;
	struct fay_interface interface;
	struct fay_policy policy;
	struct fay_probe_facts *facts;
	struct fay_bytes image; /* with a certificate */
	struct check_result result;
	char known[1024]; /* where it was refused, lines */
};

static bool read_interface(struct host_command *c, int *result)
{
	const struct fay_verify_host *ask = c->ask;
	uint8_t *text = NULL;
	char message[256];
	size_t size;
	bool ok;

	*result = fay_command_read(ask->program, ask->interface, &text, &size);
	if (*result)
		return false;
	ok = fay_host_compile((const char *)text, size, &c->interface, NULL, message,
			      sizeof(message));
	if (!ok) {
		fprintf(stderr, "%s: %s:%s\n", ask->program, ask->interface, message);
		*result = EXIT_USAGE;
	}
	free(text);
	fay_host_policy(&c->interface, &c->policy);
	return ok;
}

/* Of an image that is of no interface yet, an image of this one. */
static void seal(struct host_command *c, uint8_t *bytes, const struct check_subject *s)
{
	static const uint8_t none[FAY_EXTENSION_HASH];

	if (s->hash.size == sizeof(none) && !memcmp(s->hash.bytes, none, sizeof(none)))
		fay_sha256((const uint8_t *)&c->interface, sizeof(c->interface),
			   bytes + (s->hash.bytes - bytes));
}

static void check(struct host_command *c, const uint8_t *bytes, size_t size)
{
	size_t room = check_room(size);
	void *memory = malloc(room);

	c->facts = calloc(FAY_IMAGE_MAX_PROBES, sizeof(*c->facts));
	c->result.refusal = (struct check_refusal){ FAY_RULE_LIM_RESOURCE, 0, "out of memory" };
	if (memory && c->facts)
		check_extension(&c->interface, bytes, size, NULL, 0, &c->policy, memory, room,
				c->facts, &c->result);
	free(memory);
}

/* Decides; c->result says how. */
static void decide(struct host_command *c, uint8_t *bytes, size_t size, struct check_subject *s)
{
	struct fay_bytes certificate = { 0 };

	c->result.refusal = fay_read_extension(bytes, size, &c->interface, s);
	if (c->result.refusal.rule != FAY_RULE_NONE)
		return;
	if (s->certificate.size && !c->ask->certify) {
		check(c, bytes, size);
		return;
	}
	seal(c, bytes, s);
	if (fay_certify_extension(&c->interface, bytes, size, &c->policy, &certificate,
				  &c->result.refusal, c->known, sizeof(c->known))) {
		if (fay_certificate_attach(bytes, size, &certificate, &c->image))
			check(c, c->image.at, c->image.size);
		else
			c->result.refusal.rule = FAY_RULE_LIM_RESOURCE;
	}
	free(certificate.at);
}

static bool write_image(const struct host_command *c)
{
	FILE *file = fopen(c->ask->certify, "we");
	bool ok = file && fwrite(c->image.at, 1, c->image.size, file) == c->image.size;

	if (file)
		ok = !fclose(file) && ok;
	if (!ok)
		fprintf(stderr, "%s: cannot write '%s'\n", c->ask->program, c->ask->certify);
	return ok;
}

static void tell_accepted(const struct host_command *c)
{
	printf("%s: accepted for %s\n", c->ask->image, c->ask->interface);
	for (uint32_t i = 0; i < c->result.probe_count; i++) {
		const struct fay_probe_facts *f = &c->facts[i];

		printf("  %s: at most %llu instructions, %llu bytes of stack", f->pattern,
		       (unsigned long long)f->worst_instructions,
		       (unsigned long long)f->worst_stack);
		for (uint32_t h = 0; h < c->interface.helper_count; h++)
			if (f->helpers >> h & 1)
				printf(", calls %s", c->interface.helper[h].name);
		printf("\n");
	}
}

static void tell_refused(const struct host_command *c, const struct check_subject *s)
{
	const struct check_refusal *r = &c->result.refusal;
	uint64_t at = r->place - s->text.start;
	char line[128];

	printf("%s: REJECTED %s: %s\n", c->ask->image, fay_rule_id(r->rule),
	       fay_rule_title(r->rule));
	if (s->text.size && at < s->text.size) {
		printf("  at .text+0x%llx", (unsigned long long)at);
		if (fay_disassemble(s->text.bytes + at, s->text.size - at, r->place, false, line,
				    sizeof(line)))
			printf(": %s", line);
		printf("\n");
	}
	if (r->what)
		printf("  %s\n", r->what);
	for (const char *known = c->known; *known; known += strcspn(known, "\n") + 1)
		printf("  %.*s\n", (int)strcspn(known, "\n"), known);
}

int fay_verify_host(const struct fay_verify_host *ask)
{
	struct host_command *c = calloc(1, sizeof(*c));
	struct check_subject subject = { 0 };
	uint8_t *bytes = NULL;
	size_t size;
	int result = EXIT_LIMIT;

	if (!c)
		return result;
	c->ask = ask;
	if (read_interface(c, &result)) {
		result = fay_command_read(ask->program, ask->image, &bytes, &size);
		if (!result) {
			decide(c, bytes, size, &subject);
			if (c->result.refusal.rule == FAY_RULE_NONE)
				tell_accepted(c);
			else
				tell_refused(c, &subject);
			result = c->result.refusal.rule != FAY_RULE_NONE ? EXIT_REJECTED
				 : ask->certify && !write_image(c)       ? EXIT_INTERNAL
									 : EXIT_ACCEPTED;
		}
	}
	if (fflush(stdout) && !result)
		result = EXIT_INTERNAL;
	free(c->facts);
	free(c->image.at);
	free(bytes);
	free(c);
	return result;
}
