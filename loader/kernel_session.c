/* SPDX-License-Identifier: MIT */
/*
 * Attaching to the kernel: patterns to functions, functions that have the same probes to sets, sets to trampolines, all that into a module, and fay.ko's word that
 * it is what was verified. docs/kernel.md has the order of things.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernel.h"
#include "stop.h"
#include "target.h"

#define PAGE 4096u
#define SPILL_MIN 65536u
#define CATCH_UP_MAX 1000u

struct kernel_point {
	struct fay_kernel_point place;
	const char *name;
	uint64_t probes;
	int stack_words;
	uint32_t set;
};

struct fay_kernel_session {
	const struct fay_verdict *verdict; /* during attach only */
	int device;
	char ko[PATH_MAX]; /* fay.ko's path */
	char name[32];     /* of the session's module */
	bool loaded, attached;
	struct fay_kernel_create made;
	struct fay_kernel_probe probes[FAY_KERNEL_PROBES_MAX];
	uint64_t periods[FAY_KERNEL_PROBES_MAX], due[FAY_KERNEL_PROBES_MAX];
	uint32_t probe_count;
	const struct fay_kernel_symbols *symbols;
	const struct fay_kernel_btf *btf;
	struct fay_kernel_symbols own_symbols; /* unless the caller has some */
	struct fay_kernel_btf *own_btf;
	struct kernel_point *points;
	size_t point_count;
	struct fay_skipped_point *skipped;
	size_t skipped_count, skipped_room;
	struct fay_kernel_set sets[FAY_KERNEL_SETS_MAX];
	uint32_t set_count;
	uint8_t *text;
	size_t text_size, text_room;
	struct fay_kernel_relocation *relocations;
	size_t relocation_count;
	struct fay_shm_control *shm;
};

bool fay_kernel_is_target(const struct fay_verdict *verdict)
{
	bool kernel = false;

	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		const char *pattern = verdict->probes[i].pattern;

		if (!pattern || !*pattern)
			continue;
		if (strncmp(pattern, FAY_KERNEL_MODULE_NAME "!", sizeof(FAY_KERNEL_MODULE_NAME)))
			return false;
		kernel = true;
	}
	return kernel;
}

static bool hosted(uint32_t kind)
{
	return kind == FAY_PROBE_BEGIN || kind == FAY_PROBE_END || kind == FAY_PROBE_TIMER;
}

/* ---- what is attached ---- */

static int take_probes(struct fay_kernel_session *session, struct fay_error *error)
{
	const struct fay_verdict *verdict = session->verdict;

	if (verdict->outcome != FAY_ACCEPTED)
		return fay_error_set(error, FAY_E_REFUSED, "the image was not accepted by the verifier");
	if (verdict->probe_count > FAY_KERNEL_PROBES_MAX)
		return fay_error_set(error, FAY_E_REFUSED, "the image has %u probes; in the kernel %u are possible", verdict->probe_count, FAY_KERNEL_PROBES_MAX);
	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		const struct fay_probe_facts *facts = &verdict->probes[i];
		uint32_t can = facts->kind == FAY_PROBE_ENTRY	 ? FAY_KERNEL_FIELDS_ENTRY
			       : facts->kind == FAY_PROBE_RETURN ? FAY_KERNEL_FIELDS_RETURN
								 : FAY_FIELDS_ALWAYS;

		if (facts->kind != FAY_PROBE_ENTRY && facts->kind != FAY_PROBE_RETURN && !hosted(facts->kind))
			return fay_error_set(error, FAY_E_REFUSED, "probe %u: the kernel has no probes of kind \"%s\"", i, fay_probe_kind_name(facts->kind));
		if (facts->clobbered_vectors || facts->uses_mxcsr)
			return fay_error_set(error, FAY_E_REFUSED, "probe %u uses vector registers, which the kernel's programs do not have", i);
		if (facts->event_fields & ~can)
			return fay_error_set(error, FAY_E_REFUSED, "probe %u (%s) reads event.%s, which it does not have in the kernel", i, facts->pattern,
					     fay_event_field_name((unsigned)__builtin_ctz(facts->event_fields & ~can)));
		session->probes[i] = (struct fay_kernel_probe){ .kind = facts->kind, .code_offset = facts->code_offset, .fields = facts->event_fields,
								.clobbers = (uint16_t)facts->clobbered_gprs, .arguments = (uint16_t)facts->arguments_used };
		session->periods[i] = facts->kind == FAY_PROBE_TIMER ? facts->parameter : 0;
	}
	session->probe_count = verdict->probe_count;
	return FAY_OK;
}

static int skip(struct fay_kernel_session *session, const char *name, const char *reason)
{
	if (session->skipped_count == session->skipped_room) {
		size_t room = session->skipped_room ? session->skipped_room * 2 : 64;
		struct fay_skipped_point *grown = realloc(session->skipped, room * sizeof(*grown));

		if (!grown)
			return -1;
		session->skipped = grown;
		session->skipped_room = room;
	}
	struct fay_skipped_point *one = &session->skipped[session->skipped_count++];
	snprintf(one->function, sizeof(one->function), FAY_KERNEL_MODULE_NAME "!%s", name);
	snprintf(one->reason, sizeof(one->reason), "%s", reason);
	return 0;
}

static uint64_t matching(const struct fay_kernel_session *session, const char *name)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < session->probe_count; i++) {
		struct fay_glob glob;

		if (hosted(session->probes[i].kind))
			continue;
		fay_glob_init(&glob, session->verdict->probes[i].pattern + sizeof(FAY_KERNEL_MODULE_NAME));
		if (fay_glob_match(&glob, name, strlen(name)))
			mask |= UINT64_C(1) << i;
	}
	return mask;
}

/* Every symbol that some pattern wants, each address once. */
static int find_points(struct fay_kernel_session *session, struct fay_error *error)
{
	const struct fay_kernel_symbols *symbols = session->symbols;

	session->points = calloc(symbols->count + 1, sizeof(*session->points));
	for (size_t i = 0; session->points && i < symbols->count; i++) {
		const struct fay_kernel_symbol *symbol = &symbols->items[i];
		uint64_t mask = matching(session, symbol->name);
		struct kernel_point *last = session->point_count ? &session->points[session->point_count - 1] : NULL;

		if (!mask)
			continue;
		if (symbol->in_module) {
			if (skip(session, symbol->name, "is in a loadable module, which could be unloaded under the trace"))
				break;
		} else if (last && last->place.address == symbol->address) {
			last->probes |= mask;
		} else {
			session->points[session->point_count++] =
				(struct kernel_point){ .place = { symbol->address, fay_name_hash(symbol->name) }, .name = symbol->name, .probes = mask };
		}
	}
	if (!session->points)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (session->point_count > FAY_KERNEL_CHECK_MAX)
		return fay_error_set(error, FAY_E_LIMIT, "%zu kernel functions match; %u can be looked at", session->point_count, FAY_KERNEL_CHECK_MAX);
	return FAY_OK;
}

/* Functions that are not left by a return: their calls would never end. */
static bool never_returns(const char *name)
{
	static const char *const names[] = { "do_exit", "do_group_exit", "do_task_dead", "make_task_dead", "kthread_exit", "kthread_complete_and_exit",
					     "__module_put_and_kthread_exit", "__x64_sys_exit", "__x64_sys_exit_group", "__ia32_sys_exit",
					     "__ia32_sys_exit_group", "__do_sys_exit_group", "panic", "nmi_panic", "stop_this_cpu", "cpu_startup_entry", "start_secondary",
					     "rest_init", "kthread", "machine_restart", "machine_halt", "machine_power_off", "emergency_restart",
					     "vcpu_exit", "__stack_chk_fail" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* By any name that the function has: system calls have several, and BTF knows one. */
static int stack_words(const struct fay_kernel_session *session, uint64_t address)
{
	const struct fay_kernel_symbols *symbols = session->symbols;
	size_t low = 0, high = symbols->count;
	int words = -1;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->items[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; words < 0 && low < symbols->count && symbols->items[low].address == address; low++)
		words = fay_kernel_btf_stack_words(session->btf, symbols->items[low].name);
	return words;
}

static const char *return_refusal(struct fay_kernel_session *session, struct kernel_point *point)
{
	if (never_returns(point->name))
		return "does not return";
	point->stack_words = stack_words(session, point->place.address);
	return point->stack_words < 0 ? "its return cannot be traced: the kernel's BTF does not say which arguments it takes on the stack" : NULL;
}

static uint64_t return_probes(const struct fay_kernel_session *session)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < session->probe_count; i++)
		if (session->probes[i].kind == FAY_PROBE_RETURN)
			mask |= UINT64_C(1) << i;
	return mask;
}

/* What ftrace cannot trace, or whose return cannot be. */
static int judge_points(struct fay_kernel_session *session, struct fay_error *error)
{
	size_t count = session->point_count, kept = 0;
	uint64_t returns = return_probes(session), *addresses = calloc(count + 1, sizeof(*addresses));
	uint8_t *answers = calloc(count + 1, 1);
	struct fay_kernel_check check = { (uint64_t)addresses, (uint64_t)answers, (uint32_t)count, 0 };
	int result = addresses && answers ? FAY_OK : fay_error_set(error, FAY_E_LIMIT, "out of memory");

	for (size_t i = 0; !result && i < count; i++)
		addresses[i] = session->points[i].place.address;
	if (!result && count && ioctl(session->device, FAY_KERNEL_CHECK, &check))
		result = fay_error_set(error, FAY_E_INTERNAL, "fay.ko does not say what can be traced: %s", strerror(errno));
	for (size_t i = 0; !result && i < count; i++) {
		struct kernel_point *point = &session->points[i];
		const char *reason = !answers[i]		? "has no hotpatch point (notrace, inlined code, or assembly)"
				     : point->probes & returns ? return_refusal(session, point)
								: NULL;

		if (!reason)
			session->points[kept++] = *point;
		else if (skip(session, point->name, reason))
			result = fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	free(addresses);
	free(answers);
	session->point_count = kept;
	if (!result && kept > FAY_KERNEL_POINTS_MAX)
		result = fay_error_set(error, FAY_E_LIMIT, "%zu kernel functions match; %u can be traced at once", kept, FAY_KERNEL_POINTS_MAX);
	return result;
}

static int no_match(const struct fay_kernel_session *session, struct fay_error *error)
{
	for (uint32_t i = 0; i < session->probe_count; i++)
		if (!hosted(session->probes[i].kind) && session->skipped_count)
			return fay_error_set(error, FAY_E_REFUSED, "no kernel function that matches `%s` can be traced: %s: %s", session->verdict->probes[i].pattern,
					     session->skipped[0].function, session->skipped[0].reason);
		else if (!hosted(session->probes[i].kind))
			return fay_error_set(error, FAY_E_USAGE, "no kernel function matches `%s`", session->verdict->probes[i].pattern);
	return fay_error_set(error, FAY_E_USAGE, "the image has no probe at a kernel function");
}

/* ---- fay.ko ---- */

static bool readable(const char *path) { return access(path, R_OK) == 0; }

/* Where it is installed, or beside the build that this program is of. */
static bool find_ko(char path[PATH_MAX])
{
	struct utsname system;
	char own[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	uname(&system);
	snprintf(path, PATH_MAX, "/lib/modules/%s/extra/fay.ko", system.release);
	if (readable(path))
		return true;
	snprintf(path, PATH_MAX, "/lib/modules/%s/updates/dkms/fay.ko", system.release);
	if (readable(path))
		return true;
	if (length <= 0)
		return false;
	own[length] = 0;
	for (int i = 0; i < 2 && strrchr(own, '/'); i++)
		*strrchr(own, '/') = 0;
	return snprintf(path, PATH_MAX, "%s/kernel/fay.ko", own) < PATH_MAX && readable(path);
}

bool fay_kernel_present(void)
{
	char path[PATH_MAX];

	return access(FAY_KERNEL_DEVICE, F_OK) == 0 || find_ko(path);
}

static int load_refused(const char *what, struct fay_error *error)
{
	int code = errno;
	const char *why = code == ENOEXEC      ? "it was built for another kernel (version magic or symbol versions; the kernel's log has more)"
			  : code == EPERM      ? "loading modules is not permitted: CAP_SYS_MODULE is missing, kernel.modules_disabled is 1, or lockdown is on"
			  : code == EKEYREJECTED || code == ENOKEY ? "this kernel takes signed modules only"
			  : code == ENOSYS     ? "this kernel was built without loadable modules"
			  : code == EOPNOTSUPP ? "it does not fit this kernel (the kernel's log says why)"
					       : strerror(code);

	return fay_error_set(error, FAY_E_REFUSED, "cannot load %s: %s", what, why);
}

static int open_device(struct fay_kernel_session *session, const char *ko, struct fay_error *error)
{
	bool have = ko ? snprintf(session->ko, sizeof(session->ko), "%s", ko) < PATH_MAX : find_ko(session->ko);

	session->device = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
	if (session->device < 0 && (errno == ENOENT || errno == ENXIO) && have) {
		int file = open(session->ko, O_RDONLY | O_CLOEXEC);
		long loaded = file < 0 ? -1 : syscall(SYS_finit_module, file, "", 0);

		if (loaded && errno != EEXIST) {
			load_refused(session->ko, error);
			if (file >= 0)
				close(file);
			return error->code;
		}
		close(file);
		session->device = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
	}
	if (!have)
		return fay_error_set(error, FAY_E_REFUSED, "kernel functions need fay.ko, which is not there for this kernel: "
							   "scripts/kernel-module builds it (kernel headers are needed)");
	if (session->device < 0)
		return fay_error_set(error, FAY_E_REFUSED, "cannot open " FAY_KERNEL_DEVICE ": %s", strerror(errno));
	return FAY_OK;
}

static int create(struct fay_kernel_session *session, struct fay_error *error)
{
	const struct fay_layout *layout = &session->verdict->layout;
	const struct fay_schema *schema = &session->verdict->schema;
	struct fay_kernel_slot slots[FAY_KERNEL_SLOTS_MAX];
	struct fay_kernel_state *states = calloc(schema->state_count + 1, sizeof(*states));
	uint64_t spill = 0;

	if (!states)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (uint32_t i = 0; i < schema->state_count; i++) {
		const struct fay_schema_state *s = &schema->states[i];

		states[i] = (struct fay_kernel_state){ s->kind, s->offset, s->rows, s->row_size };
		if (s->kind != FAY_STATE_CELL)
			for (spill = spill ? spill : SPILL_MIN; spill < 2 * (uint64_t)s->size;)
				spill *= 2;
	}
	for (uint32_t i = 0; i < layout->slot_count; i++)
		slots[i] = (struct fay_kernel_slot){ layout->slots[i].offset, layout->slots[i].helper };
	session->made = (struct fay_kernel_create){
		.abi = FAY_KERNEL_ABI, .local_size = schema->local_size, .global_size = schema->global_size, .spill_size = (uint32_t)spill,
		.layout_size = (uint32_t)layout->size, .code_offset = layout->code_offset, .code_size = layout->code_size,
		.slot_count = layout->slot_count, .probe_count = session->probe_count, .state_count = schema->state_count,
		.slots = (uint64_t)slots, .probes = (uint64_t)session->probes, .states = (uint64_t)states,
	};
	memcpy(session->made.sha256, layout->sha256, sizeof(layout->sha256));
	int failed = layout->size > FAY_KERNEL_LAYOUT_MAX ? (errno = E2BIG, -1) : ioctl(session->device, FAY_KERNEL_CREATE, &session->made);
	int code = errno;
	free(states);
	if (failed)
		return fay_error_set(error, code == ENOMEM || code == EUSERS || code == E2BIG ? FAY_E_LIMIT : FAY_E_INTERNAL, "fay.ko makes no session: %s",
				     code == ENOMEM   ? "its state does not fit into the kernel's memory"
				     : code == EUSERS ? "sixteen traces run already"
						      : strerror(code));
	snprintf(session->name, sizeof(session->name), FAY_KERNEL_MODULE_PREFIX "%u", session->made.session);
	session->shm = mmap(NULL, session->made.shm_size, PROT_READ | PROT_WRITE, MAP_SHARED, session->device, 0);
	if (session->shm == MAP_FAILED) {
		session->shm = NULL;
		return fay_error_set(error, FAY_E_INTERNAL, "cannot map the session's state: %s", strerror(errno));
	}
	return FAY_OK;
}

/* ---- the module ---- */

static int choose_sets(struct fay_kernel_session *session, struct fay_error *error)
{
	for (size_t i = 0; i < session->point_count; i++) {
		struct kernel_point *point = &session->points[i];
		uint32_t at = 0;

		while (at < session->set_count &&
		       (session->sets[at].probes != point->probes || session->sets[at].stack_words != (uint32_t)point->stack_words))
			at++;
		if (at == FAY_KERNEL_SETS_MAX)
			return fay_error_set(error, FAY_E_LIMIT, "more than %u different sets of probes at functions", FAY_KERNEL_SETS_MAX);
		if (at == session->set_count)
			session->sets[session->set_count++] = (struct fay_kernel_set){ .probes = point->probes, .stack_words = (uint32_t)point->stack_words };
		point->set = at;
		session->sets[at].point_count++;
	}
	for (uint32_t i = 0; i < session->set_count; i++)
		if (session->sets[i].point_count > FAY_KERNEL_DIRECT_MAX && session->sets[i].probes & return_probes(session))
			return fay_error_set(error, FAY_E_LIMIT, "%u functions have the same return probes; returns of at most %u can be traced at once",
					     session->sets[i].point_count, FAY_KERNEL_DIRECT_MAX);
	for (uint32_t i = 0; i < session->probe_count; i++) {
		if (!hosted(session->probes[i].kind))
			continue;
		if (session->set_count == FAY_KERNEL_SETS_MAX)
			return fay_error_set(error, FAY_E_LIMIT, "more than %u different sets of probes", FAY_KERNEL_SETS_MAX);
		session->sets[session->set_count++] = (struct fay_kernel_set){ .probes = UINT64_C(1) << i };
	}
	for (uint32_t i = 0, first = 0; i < session->set_count; i++) {
		session->sets[i].first_point = first;
		first += session->sets[i].point_count;
	}
	return FAY_OK;
}

static int write_text(struct fay_kernel_session *session, struct fay_error *error)
{
	const struct fay_layout *layout = &session->verdict->layout;
	size_t at = (layout->size + PAGE - 1) / PAGE * PAGE;

	session->text_room = at + session->set_count * (size_t)FAY_KERNEL_TRAMPOLINE_MAX;
	session->text = calloc(1, session->text_room);
	session->relocations = calloc(session->set_count * (size_t)FAY_KERNEL_RELOCATIONS_MAX + 1, sizeof(*session->relocations));
	if (!session->text || !session->relocations)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	memset(session->text, 0xcc, session->text_room);
	memcpy(session->text, layout->bytes, layout->size);
	for (uint32_t i = 0; i < layout->slot_count; i++)
		memcpy(session->text + layout->slots[i].offset, &session->made.places.helpers[layout->slots[i].helper], 8);
	for (uint32_t i = 0; i < session->set_count; i++) {
		struct fay_kernel_trampoline trampoline = { .places = &session->made.places, .probes = session->probes, .set = session->sets[i].probes,
							    .stack_words = session->sets[i].stack_words,
							    .callback = session->sets[i].point_count > FAY_KERNEL_DIRECT_MAX, .address = at,
							    .relocations = session->relocations + session->relocation_count };
		uint32_t size = fay_kernel_trampoline_write(&trampoline, session->text + at, FAY_KERNEL_TRAMPOLINE_MAX);

		if (!size)
			return fay_error_set(error, FAY_E_LIMIT, "too many probes at one function");
		for (uint32_t k = 0; k < trampoline.relocation_count; k++)
			session->relocations[session->relocation_count++].offset += (uint32_t)at;
		session->sets[i].trampoline = (uint32_t)at;
		at = (at + size + 15) / 16 * 16;
	}
	session->text_size = at;
	return FAY_OK;
}

static int load_module(struct fay_kernel_session *session, struct fay_error *error)
{
	bool returns = false;
	uint8_t *bytes;
	size_t size;

	for (uint32_t i = 0; i < session->probe_count; i++)
		returns |= session->probes[i].kind == FAY_PROBE_RETURN;
	struct fay_kernel_object object = { .reference = session->ko, .text = session->text, .text_size = session->text_size,
					    .relocations = session->relocations, .relocation_count = session->relocation_count, .name = session->name,
					    .indirect = returns || session->verdict->layout.slot_count };
	int result = fay_kernel_object_write(&object, session->btf, &bytes, &size, error);

	if (result)
		return result;
	/* One of this name is a killed fay's: its session is gone, or its number would not be ours. */
	syscall(SYS_delete_module, session->name, O_NONBLOCK);
	if (syscall(SYS_init_module, bytes, size, ""))
		result = load_refused("the probes' module", error);
	session->loaded = !result;
	free(bytes);
	return result;
}

static int attach(struct fay_kernel_session *session, struct fay_error *error)
{
	struct fay_kernel_point *points = calloc(session->point_count + 1, sizeof(*points));
	uint32_t next[FAY_KERNEL_SETS_MAX];
	struct fay_kernel_attach attach = { (uint64_t)session->sets, (uint64_t)points, session->set_count, (uint32_t)session->point_count };

	if (!points)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (uint32_t i = 0; i < session->set_count; i++)
		next[i] = session->sets[i].first_point;
	for (size_t i = 0; i < session->point_count; i++)
		points[next[session->points[i].set]++] = session->points[i].place;
	int failed = ioctl(session->device, FAY_KERNEL_ATTACH, &attach), code = errno;
	free(points);
	session->attached = !failed;
	if (!failed)
		return FAY_OK;
	return fay_error_set(error, code == ENOMEM ? FAY_E_LIMIT : FAY_E_REFUSED, "fay.ko does not attach: %s",
			     code == EBUSY	    ? "another tracer (BPF, or another fay) holds one of these functions by a direct call"
			     : code == EKEYREJECTED ? "the code in place is not what was verified"
						    : strerror(code));
}

static int read_kernel(struct fay_kernel_session *session, struct fay_error *error)
{
	if (session->symbols)
		return FAY_OK;
	if (fay_kernel_btf_open(&session->own_btf, error) || fay_kernel_symbols_read(&session->own_symbols, error))
		return error->code;
	session->symbols = &session->own_symbols;
	session->btf = session->own_btf;
	return FAY_OK;
}

static int build(struct fay_kernel_session *session, const char *ko, struct fay_error *error)
{
	int result;

	if ((result = take_probes(session, error)) || (result = open_device(session, ko, error)) || (result = read_kernel(session, error)) ||
	    (result = find_points(session, error)) || (result = judge_points(session, error)))
		return result;
	if (!session->point_count)
		return no_match(session, error);
	if ((result = create(session, error)) || (result = choose_sets(session, error)) || (result = write_text(session, error)) ||
	    (result = load_module(session, error)))
		return result;
	for (uint32_t i = 0; i < session->probe_count; i++)
		session->due[i] = fay_loader_clock_ns() + session->periods[i];
	return attach(session, error);
}

int fay_kernel_session_attach_with(const struct fay_verdict *verdict, const char *fay_ko, const struct fay_kernel_symbols *symbols,
				   const struct fay_kernel_btf *btf, struct fay_kernel_session **result, struct fay_error *error)
{
	struct fay_kernel_session *session = calloc(1, sizeof(*session));

	if (!session)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	session->verdict = verdict;
	session->symbols = symbols;
	session->btf = btf;
	session->device = -1;
	if (build(session, fay_ko, error)) {
		fay_kernel_session_destroy(session);
		return error->code;
	}
	session->verdict = NULL;
	*result = session;
	return FAY_OK;
}

int fay_kernel_session_attach(const struct fay_verdict *verdict, const char *fay_ko, struct fay_kernel_session **result, struct fay_error *error)
{
	return fay_kernel_session_attach_with(verdict, fay_ko, NULL, NULL, result, error);
}

/* ---- running, leaving ---- */

void fay_kernel_session_run(struct fay_kernel_session *session, uint32_t kind)
{
	for (uint32_t i = 0; i < session->set_count; i++) {
		uint32_t probe = (uint32_t)__builtin_ctzll(session->sets[i].probes);

		if (!session->sets[i].point_count && session->probes[probe].kind == kind)
			ioctl(session->device, FAY_KERNEL_RUN, &i);
	}
}

void fay_kernel_session_tick(struct fay_kernel_session *session)
{
	uint64_t now = fay_loader_clock_ns();

	for (uint32_t i = 0; i < session->set_count; i++) {
		uint32_t probe = (uint32_t)__builtin_ctzll(session->sets[i].probes);
		unsigned round = 0;

		if (session->sets[i].point_count || session->probes[probe].kind != FAY_PROBE_TIMER)
			continue;
		for (; session->due[probe] <= now && round < CATCH_UP_MAX; round++, session->due[probe] += session->periods[probe])
			ioctl(session->device, FAY_KERNEL_RUN, &i);
		if (round == CATCH_UP_MAX)
			session->due[probe] = now + session->periods[probe];
	}
}

int fay_kernel_session_detach(struct fay_kernel_session *session, struct fay_error *error)
{
	struct fay_kernel_detached answer;

	if (!session->attached)
		return FAY_OK;
	session->attached = false;
	if (!ioctl(session->device, FAY_KERNEL_DETACH, &answer))
		return FAY_OK;
	if (errno != EAGAIN)
		return fay_error_set(error, FAY_E_INTERNAL, "fay.ko does not detach: %s", strerror(errno));
	return fay_error_set(error, FAY_E_LIMIT, "%llu calls of traced functions have not returned yet; nothing is traced any more, but module %s stays until they have",
			     (unsigned long long)answer.calls, session->name);
}

void fay_kernel_session_destroy(struct fay_kernel_session *session)
{
	struct fay_error error;

	if (!session)
		return;
	if (session->device >= 0)
		fay_kernel_session_detach(session, &error);
	if (session->shm)
		munmap(session->shm, session->made.shm_size);
	if (session->loaded)
		syscall(SYS_delete_module, session->name, O_NONBLOCK);
	if (session->device >= 0)
		close(session->device);
	fay_kernel_symbols_deinit(&session->own_symbols);
	fay_kernel_btf_close(session->own_btf);
	free(session->points);
	free(session->skipped);
	free(session->text);
	free(session->relocations);
	free(session);
}

struct fay_shm_control *fay_kernel_session_shm(struct fay_kernel_session *session, size_t *size)
{
	*size = session->made.shm_size;
	return session->shm;
}

size_t fay_kernel_session_point_count(const struct fay_kernel_session *session) { return session->point_count; }
size_t fay_kernel_session_skipped_count(const struct fay_kernel_session *session) { return session->skipped_count; }
const struct fay_skipped_point *fay_kernel_session_skipped(const struct fay_kernel_session *session, size_t index) { return &session->skipped[index]; }

const char *fay_kernel_session_function_name(const struct fay_kernel_session *session, uint64_t hash)
{
	for (size_t i = 0; i < session->point_count; i++)
		if (session->points[i].place.function == hash)
			return session->points[i].name;
	return NULL;
}
