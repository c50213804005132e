/* SPDX-License-Identifier: MIT */
/* libfay_extension: see fay/host/host.h. The checker decides; what runs are the bytes that it
 * read. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fay/host/host.h"
#include "memory.h"
#include "verifier/accept/accept.h"
#include "verifier/host/host.h"

#define ARENA_BYTES ((size_t)64 << 20)

/* Where a region always is; size 0: not said. */
struct provided {
	uint64_t start, size;
};

struct fay_host {
	struct fay_interface interface;
	struct fay_host_names names;
	struct provided provided[FAY_INTERFACE_REGIONS];
	fay_host_function bound[FAY_INTERFACE_HELPERS];
};

struct entry {
	char name[FAY_IMAGE_MAX_STRING];
	uint64_t instructions, stack;
	fay_host_function function;
};

struct fay_loaded {
	void *code;
	size_t code_size;
	size_t local_size;
	uint32_t entry_count;
	struct entry *entries;
};

int fay_host_open(const char *text, size_t size, struct fay_host **host, struct fay_error *error)
{
	struct fay_host *h = calloc(1, sizeof(*h));
	char message[256];

	*host = NULL;
	if (!h)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (!fay_host_compile(text, size, &h->interface, &h->names, message, sizeof(message))) {
		free(h);
		return fay_error_set(error, FAY_E_USAGE, "%s", message);
	}
	*host = h;
	return FAY_OK;
}

void fay_host_close(struct fay_host *host)
{
	free(host);
}

int fay_host_bind(struct fay_host *host, const char *helper, fay_host_function function,
		  struct fay_error *error)
{
	for (uint32_t i = 0; i < host->interface.helper_count; i++)
		if (!strcmp(host->interface.helper[i].name, helper)) {
			host->bound[i] = function;
			return FAY_OK;
		}
	return fay_error_set(error, FAY_E_USAGE, "the interface has no helper '%s'", helper);
}

/* ---- what entries take ---- */

int fay_host_parameter(const struct fay_host *host, size_t index,
		       struct fay_host_parameter *parameter)
{
	static const enum fay_host_kind kinds[] = { [FAY_VALUE_START] = FAY_HOST_START,
						    [FAY_VALUE_SIZE] = FAY_HOST_SIZE,
						    [FAY_VALUE_NUMBER] = FAY_HOST_NUMBER };
	const struct fay_interface_value *v;
	const struct fay_interface_region *r;

	if (index >= host->interface.parameter_count)
		return FAY_E_USAGE;
	v = &host->interface.parameter[index];
	*parameter = (struct fay_host_parameter){ .name = host->names.parameter[index],
						  .kind = kinds[v->kind],
						  .lo = v->lo,
						  .hi = v->hi };
	if (v->kind == FAY_VALUE_NUMBER)
		return FAY_OK;
	r = &host->interface.region[v->of];
	parameter->region = host->names.region[v->of];
	if (v->kind == FAY_VALUE_SIZE)
		return FAY_OK;
	parameter->bytes = r->extent == FAY_EXTENT_LOCAL ? 0 : r->size;
	parameter->alignment = r->alignment;
	parameter->written = r->permission & FAY_REGION_WRITE;
	parameter->constant = r->permission & FAY_REGION_CONSTANT;
	parameter->passed = r->extent == FAY_EXTENT_PASSED;
	return FAY_OK;
}

int fay_host_result(const struct fay_host *host, int64_t *lo, uint64_t *hi)
{
	const struct fay_interface_value *v = &host->interface.result;

	*lo = v->lo;
	*hi = v->hi;
	return v->kind == FAY_VALUE_NUMBER ? FAY_OK : FAY_E_USAGE;
}

/* ---- where regions are ---- */

/* Whether the memory overlaps what was provided for another region. */
static bool taken(const struct fay_host *host, uint32_t region, const struct provided *p)
{
	for (uint32_t i = 0; i < host->interface.region_count; i++) {
		const struct provided *q = &host->provided[i];

		if (i != region && q->size && p->start < q->start + q->size &&
		    q->start < p->start + p->size)
			return true;
	}
	return false;
}

/* What of the interface's promises for the region this memory cannot keep; NULL: nothing. */
static const char *broken(const struct fay_host *host, uint32_t region, const struct provided *p)
{
	const struct fay_interface_region *r = &host->interface.region[region];

	if (r->extent == FAY_EXTENT_LOCAL)
		return "is local: instances are its memory";
	if (r->size > p->size)
		return "has more bytes than its memory";
	if (p->start % r->alignment)
		return "begins at a multiple that its memory does not";
	if (p->size > INT64_MAX || p->start > INT64_MAX - p->size ||
	    (r->extent == FAY_EXTENT_PASSED && p->start > INT64_MAX - UINT32_MAX))
		return "lies below 2^63, and 4 GiB behind a start that is passed, too";
	if (taken(host, region, p))
		return "overlaps the memory of another region";
	if (!extension_mapped(p->start, p->start + p->size, r->permission & FAY_REGION_WRITE))
		return r->permission & FAY_REGION_WRITE
			       ? "is written, and not all of its memory is mapped to be"
			       : "is read, and not all of its memory is mapped to be";
	return NULL;
}

int fay_host_provide(struct fay_host *host, const char *region, const void *memory, size_t size,
		     struct fay_error *error)
{
	const struct provided p = { (uintptr_t)memory, size };

	for (uint32_t i = 0; i < host->interface.region_count; i++) {
		const char *wrong;

		if (strcmp(host->names.region[i], region) != 0)
			continue;
		wrong = broken(host, i, &p);
		if (wrong)
			return fay_error_set(error, FAY_E_USAGE, "the region '%s' %s", region,
					     wrong);
		host->provided[i] = p;
		return FAY_OK;
	}
	return fay_error_set(error, FAY_E_USAGE, "the interface has no region '%s'", region);
}

/* What was provided may have been unmapped since. */
static int still_there(const struct fay_host *host, struct fay_error *error)
{
	for (uint32_t i = 0; i < host->interface.region_count; i++) {
		const struct provided *p = &host->provided[i];
		const char *wrong = p->size ? broken(host, i, p) : NULL;

		if (wrong)
			return fay_error_set(error, FAY_E_USAGE, "the region '%s' %s",
					     host->names.region[i], wrong);
	}
	return FAY_OK;
}

/* ---- mapping ---- */

/* The helpers' addresses are put into their slots. */
static int fill_slots(const struct fay_host *host, struct fay_layout *layout,
		      struct fay_error *error)
{
	for (uint32_t i = 0; i < layout->slot_count; i++) {
		uint32_t helper = layout->slots[i].helper;

		if (!host->bound[helper])
			return fay_error_set(error, FAY_E_USAGE, "the helper '%s' is not bound",
					     host->interface.helper[helper].name);
		memcpy(layout->bytes + layout->slots[i].offset, &host->bound[helper],
		       sizeof(host->bound[helper]));
	}
	return FAY_OK;
}

static bool write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		bytes += n;
		size -= (size_t)n;
	}
	return true;
}

/* A shared mapping of a file that is sealed against writing can never be made writable. */
static int map(const struct fay_layout *layout, struct fay_loaded *loaded, struct fay_error *error)
{
	const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	int fd = memfd_create("fay-extension", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *code = MAP_FAILED;

	if (fd >= 0 && write_all(fd, layout->bytes, layout->size) && !fcntl(fd, F_ADD_SEALS, seals))
		code = mmap(NULL, layout->size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	if (code == MAP_FAILED)
		fay_error_set(error, FAY_E_INTERNAL, "cannot map the code: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
	if (code == MAP_FAILED)
		return FAY_E_INTERNAL;
	loaded->code = code;
	loaded->code_size = layout->size;
	return FAY_OK;
}

/* ---- loading ---- */

/* What a load needs until it is done. */
struct load {
	uint8_t *image; /* a copy: nobody changes it */
	void *memory;
	struct fay_probe_facts *facts;
	struct fay_arena *arena;
};

static uint32_t features(void)
{
	uint32_t mask = 0;

	__builtin_cpu_init();
	mask |= __builtin_cpu_supports("sse3") ? FAY_CPU_SSE3 : 0;
	mask |= __builtin_cpu_supports("ssse3") ? FAY_CPU_SSSE3 : 0;
	mask |= __builtin_cpu_supports("sse4.1") ? FAY_CPU_SSE41 : 0;
	mask |= __builtin_cpu_supports("sse4.2") ? FAY_CPU_SSE42 : 0;
	mask |= __builtin_cpu_supports("avx") ? FAY_CPU_AVX : 0;
	mask |= __builtin_cpu_supports("avx2") ? FAY_CPU_AVX2 : 0;
	mask |= __builtin_cpu_supports("fma") ? FAY_CPU_FMA : 0;
	mask |= __builtin_cpu_supports("popcnt") ? FAY_CPU_POPCNT : 0;
	mask |= __builtin_cpu_supports("lzcnt") ? FAY_CPU_LZCNT : 0;
	mask |= __builtin_cpu_supports("bmi") ? FAY_CPU_BMI1 : 0;
	mask |= __builtin_cpu_supports("bmi2") ? FAY_CPU_BMI2 : 0;
	mask |= __builtin_cpu_supports("movbe") ? FAY_CPU_MOVBE : 0;
	return mask;
}

static int check(const struct fay_host *host, struct load *l, size_t size,
		 struct check_result *result, struct fay_error *error)
{
	const struct check_refusal *r = &result->refusal;
	uint32_t missing = 0;
	struct fay_policy policy;

	fay_host_policy(&host->interface, &policy);
	check_extension(&host->interface, l->image, size, NULL, 0, &policy, l->memory,
			check_room(size), l->facts, result);
	if (r->rule != FAY_RULE_NONE)
		return fay_error_set(error, FAY_E_REFUSED, "%s at 0x%llx: %s: %s",
				     fay_rule_id(r->rule), (unsigned long long)r->place,
				     fay_rule_title(r->rule), r->what ? r->what : "");
	for (uint32_t i = 0; i < result->probe_count; i++)
		missing |= l->facts[i].cpu_features & ~features();
	if (missing)
		return fay_error_set(error, FAY_E_REFUSED, "this processor lacks %s",
				     fay_cpu_feature_name((unsigned)__builtin_ctz(missing)));
	return FAY_OK;
}

/* The entries, which lead into the mapped code. */
static int find_entries(const struct load *l, const struct check_subject *s,
			struct fay_loaded *loaded, struct fay_error *error)
{
	loaded->entries = calloc(s->probe_count, sizeof(*loaded->entries));
	if (!loaded->entries)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	loaded->entry_count = s->probe_count;
	loaded->local_size = s->local_size;
	for (uint32_t i = 0; i < s->probe_count; i++) {
		struct check_probe probe = check_probe(s, i);
		struct entry *e = &loaded->entries[i];
		uintptr_t at = (uintptr_t)loaded->code + (uintptr_t)(probe.code - s->base);

		memcpy(e->name, probe.pattern, strlen(probe.pattern)); /* at most 255 bytes */
		e->instructions = l->facts[i].worst_instructions;
		e->stack = l->facts[i].worst_stack;
		e->function = (fay_host_function)at;
	}
	return FAY_OK;
}

static int load(const struct fay_host *host, struct load *l, size_t size, struct fay_loaded *loaded,
		struct fay_error *error)
{
	struct check_result result;
	struct fay_layout layout;
	int code = still_there(host, error);

	code = code ? code : check(host, l, size, &result, error);
	if (code)
		return code;
	if (!fay_accept_layout(l->arena, &result.subject, &layout))
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	code = fill_slots(host, &layout, error);
	code = code ? code : map(&layout, loaded, error);
	return code ? code : find_entries(l, &result.subject, loaded, error);
}

int fay_host_load(const struct fay_host *host, const void *image, size_t size,
		  struct fay_loaded **loaded, struct fay_error *error)
{
	struct fay_loaded *to = calloc(1, sizeof(*to));
	struct load l = { 0 };
	int code;

	*loaded = NULL;
	if (size <= FAY_IMAGE_MAX_FILE) {
		l.image = malloc(size + 1);
		l.memory = malloc(check_room(size));
		l.facts = calloc(FAY_IMAGE_MAX_PROBES, sizeof(*l.facts));
		l.arena = fay_arena_create(ARENA_BYTES);
	}
	if (!to || !l.image || !l.memory || !l.facts || !l.arena) {
		code = fay_error_set(error, FAY_E_LIMIT,
				     size > FAY_IMAGE_MAX_FILE ? "the image is too large"
							       : "out of memory");
	} else {
		memcpy(l.image, image, size);
		code = load(host, &l, size, to, error);
	}
	free(l.image);
	free(l.memory);
	free(l.facts);
	if (l.arena)
		fay_arena_destroy(l.arena);
	if (code)
		fay_host_unload(to);
	else
		*loaded = to;
	return code;
}

void fay_host_unload(struct fay_loaded *loaded)
{
	if (!loaded)
		return;
	if (loaded->code)
		munmap(loaded->code, loaded->code_size);
	free(loaded->entries);
	free(loaded);
}

/* ---- what was loaded ---- */

static const struct entry *find(const struct fay_loaded *loaded, const char *name)
{
	for (uint32_t i = 0; i < loaded->entry_count; i++)
		if (!strcmp(loaded->entries[i].name, name))
			return &loaded->entries[i];
	return NULL;
}

fay_host_function fay_loaded_entry(const struct fay_loaded *loaded, const char *name)
{
	const struct entry *e = find(loaded, name);

	return e ? e->function : NULL;
}

int fay_loaded_limits(const struct fay_loaded *loaded, const char *name, uint64_t *instructions,
		      uint64_t *stack)
{
	const struct entry *e = find(loaded, name);

	if (!e)
		return FAY_E_USAGE;
	*instructions = e->instructions;
	*stack = e->stack;
	return FAY_OK;
}

size_t fay_loaded_local_size(const struct fay_loaded *loaded)
{
	return loaded->local_size;
}

void *fay_loaded_instance(const struct fay_loaded *loaded)
{
	size_t size = (loaded->local_size + FAY_INTERFACE_ALIGNMENT) &
		      ~(size_t)(FAY_INTERFACE_ALIGNMENT - 1);
	void *local = aligned_alloc(FAY_INTERFACE_ALIGNMENT, size);

	if (local)
		memset(local, 0, size);
	return local;
}

void fay_instance_release(void *local)
{
	free(local);
}
