/* SPDX-License-Identifier: MIT */
/*
 * The cluster's scale. `agents URL SIGNERS N KEYS STEPS`: N agents, a process each, whose counts
 * are made up: each of KEYS groups is counted once a 10 ms until it has STEPS, so that the total of
 * a query is N x KEYS x STEPS. `merge PARTIALS GROUPS`: merging that many partials of so many
 * groups, as a root does, beside adding the same pairs up in a plain hash table. `costs`: of one
 * message, for cluster_sim, as a JSON line.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster/agent/agent.h"
#include "fay/clock.h"

#define STEP 10000000ull /* ns */
#define CONNECT_TRIES 20u
/* nothing happens between two windows: a thousand agents on one machine must not look all the time
 * */
#define BUSY_MS 50

static uint64_t keys_of_feed, steps_of_feed;

struct made_up {
	const struct fay_schema *schema;
	const struct fay_job *job;
	uint64_t began, stopped;
	uint64_t first_window; /* monotonic ns: when window 0 begins here */
	/* ns; how long after their ends windows were told */
	uint64_t window, lateness, lateness_max, windows;
};
static unsigned number_of_agent;

static uint64_t steps_now(const struct made_up *made_up)
{
	uint64_t steps =
		((made_up->stopped ? made_up->stopped : fay_monotonic()) - made_up->began) / STEP;
	return steps < steps_of_feed ? steps : steps_of_feed;
}

static void tick(void *context)
{
}

static bool alive(void *context)
{
	return true;
}

static void stop(void *context)
{
	struct made_up *made_up = context;
	made_up->stopped = fay_monotonic();
}

static int snapshot(void *context, uint32_t state, struct fay_result *result,
		    struct fay_error *error)
{
	struct made_up *made_up = context;
	const struct fay_schema_state *of = &made_up->schema->states[state];
	uint64_t steps = steps_now(made_up),
		 late = (fay_monotonic() - made_up->first_window) % made_up->window;
	made_up->windows++;
	made_up->lateness += late;
	made_up->lateness_max = late > made_up->lateness_max ? late : made_up->lateness_max;
	memset(result, 0, sizeof(*result));
	result->state = state;
	result->row_size = of->row_size;
	result->row_count = steps ? keys_of_feed : 0;
	result->rows = calloc(keys_of_feed, of->row_size);
	if (!result->rows)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (uint64_t i = 0; i < result->row_count; i++)
		for (unsigned c = 0; c < (unsigned)of->keys + of->values; c++) {
			const struct fay_schema_column *column =
				&made_up->schema->columns[of->first_column + c];
			memcpy(result->rows + i * of->row_size + column->offset,
			       c < of->keys ? &i : &steps, 8);
		}
	return FAY_OK;
}

static const char *name(void *context, uint64_t hash)
{
	return NULL;
}

/* A line of the file that the environment names: bench/cluster/cluster.sh makes sums of them. */
static void note(const char *variable, const char *format, ...)
{
	const char *path = getenv(variable);
	FILE *file = path ? fopen(path, "ae") : NULL;
	va_list arguments;
	if (!file)
		return;
	va_start(arguments, format);
	vfprintf(file, format, arguments);
	va_end(arguments);
	fclose(file);
}

/* There are no rows of events; but with this comes the job. */
static void on_row(void *context, fay_row_function *function, void *function_context)
{
	struct made_up *made_up = context;
	made_up->job = function_context;
}

/* What the tree and the scheduler did to this agent. */
static void destroy(void *context)
{
	struct made_up *made_up = context;
	const struct fay_job *job = made_up->job;
	if (job)
		note("STATS", "%u %llu %llu %llu %llu %llu\n", number_of_agent,
		     (unsigned long long)job->resent, (unsigned long long)job->inner_refused,
		     (unsigned long long)job->inner_duplicates,
		     (unsigned long long)(made_up->windows ? made_up->lateness / made_up->windows
							   : 0),
		     (unsigned long long)made_up->lateness_max);
	free(made_up);
}

static int make_feed(const struct fay_verdict *verdict, const struct fay_wire_start *start,
		     struct fay_feed *feed, struct fay_error *error)
{
	struct made_up *made_up = calloc(1, sizeof(*made_up));
	if (!made_up)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	*made_up = (struct made_up){ .schema = &verdict->schema,
				     .began = fay_monotonic(),
				     .window = start->window };
	made_up->first_window = made_up->began - start->elapsed;
	note("PHASES", "%u %llu\n", number_of_agent, (unsigned long long)made_up->first_window);
	*feed = (struct fay_feed){ .context = made_up,
				   .tick = tick,
				   .alive = alive,
				   .stop = stop,
				   .snapshot = snapshot,
				   .name = name,
				   .on_row = on_row,
				   .destroy = destroy,
				   .processes = 1,
				   .functions = 1 };
	return FAY_OK;
}

static int run_agent(const char *url, const char *signers, unsigned number)
{
	char node[32];
	struct fay_keys keys;
	struct fay_error error;
	struct fay_agent *agent;
	number_of_agent = number;
	snprintf(node, sizeof(node), "agent%04u", number);
	struct fay_agent_options options = { .bus = { .url = url, .name = node },
					     .name = node,
					     .labels = node,
					     .signers = signers,
					     .limits = { .memory = 64u << 20 },
					     .feed = make_feed,
					     .busy_ms = BUSY_MS };
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fay_keys_init(&error))
		return 1;
	fay_keys_make(&keys);
	/* A server that greets a thousand at once on a busy machine may be too slow for some. */
	for (unsigned tries = 1; fay_agent_create(&options, &keys, &agent, &error); tries++) {
		if (tries == CONNECT_TRIES) {
			fprintf(stderr, "%s: %s\n", node, error.message);
			return 1;
		}
		sleep(1);
	}
	while (!fay_agent_tick(agent, &error))
		;
	fprintf(stderr, "%s: %s\n", node, error.message);
	return 1;
}

static int run_agents(char **arguments)
{
	unsigned count = (unsigned)atoi(arguments[2]);
	keys_of_feed = strtoull(arguments[3], NULL, 10);
	steps_of_feed = strtoull(arguments[4], NULL, 10);
	for (unsigned i = 0; i < count; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return 1;
		if (!pid)
			exit(run_agent(arguments[0], arguments[1], i));
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

/* --- merging --- */

static struct fay_schema_column columns[] = {
	{ .name = "key", .type = FAY_TYPE_U64, .merge = FAY_MERGE_KEY, .offset = 8, .size = 8 },
	{ .name = "count",
	  .type = FAY_TYPE_U64,
	  .merge = FAY_MERGE_COUNT,
	  .offset = 16,
	  .size = 8 },
};
static struct fay_schema_state states[] = { { .name = "t",
					      .kind = FAY_STATE_TABLE,
					      .scope = FAY_SCOPE_LOCAL,
					      .rows = 2,
					      .row_size = 24,
					      .size = 64,
					      .keys = 1,
					      .values = 1 } };
static const struct fay_schema schema = {
	.local_size = 64, .state_count = 1, .column_count = 2, .states = states, .columns = columns
};

static double plain(const uint64_t *rows, size_t partials, size_t groups)
{
	size_t size = 1;
	while (size < 2 * groups)
		size *= 2;
	uint64_t *table = calloc(2 * size, sizeof(*table));
	uint64_t since = fay_monotonic();
	for (size_t p = 0; table && p < partials; p++)
		for (size_t i = 0; i < groups; i++) {
			size_t at = (rows[3 * i + 1] * 0x9fb21c651e98df25u >> 20) & (size - 1);
			while (table[2 * at] && table[2 * at] != rows[3 * i + 1])
				at = (at + 1) & (size - 1);
			table[2 * at] = rows[3 * i + 1];
			table[2 * at + 1] += rows[3 * i + 2];
		}
	double seconds = (double)(fay_monotonic() - since) / 1e9;
	free(table);
	return seconds;
}

static int run_merge(char **arguments)
{
	size_t partials = strtoull(arguments[0], NULL, 10),
	       groups = strtoull(arguments[1], NULL, 10);
	uint64_t *rows = calloc(groups, 24), seed = 1;
	struct fay_aggregator *aggregator;
	struct fay_error error;
	if (!rows || !groups || fay_aggregator_create(&schema, &aggregator, &error))
		return 1;
	for (size_t i = 0; i < groups; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		rows[3 * i + 1] = seed | 1;
		rows[3 * i + 2] = 1;
	}
	uint64_t since = fay_monotonic();
	for (size_t p = 0; p < partials; p++)
		if (fay_aggregator_merge(aggregator, 0, (const uint8_t *)rows, groups, &error))
			return 1;
	double seconds = (double)(fay_monotonic() - since) / 1e9,
	       bound = plain(rows, partials, groups);
	printf("%zu partials of %zu groups: %.1f million groups/s; plain hash table %.1f "
	       "million/s; ratio %.2f\n",
	       partials, groups, (double)(partials * groups) / seconds / 1e6,
	       (double)(partials * groups) / bound / 1e6, seconds / bound);
	fay_aggregator_destroy(aggregator);
	free(rows);
	return 0;
}

/* --- what one message costs --- */

/* ns to sign a message with a body of `size` bytes, and to check it. */
static void time_message(const struct fay_keys *keys, size_t size, double *sign, double *verify)
{
	struct fay_writer_buffer out = { 0 };
	struct fay_wire_head head;
	uint8_t *body = calloc(1, size);
	unsigned rounds = 200, good = 0;
	uint64_t since = fay_monotonic();
	for (unsigned i = 0; body && i < rounds; i++) {
		fay_wire_begin(&out, FAY_WIRE_PARTIAL, 1, 1);
		fay_wire_put(&out, body, size);
		fay_wire_end(&out, keys);
	}
	*sign = (double)(fay_monotonic() - since) / rounds;
	since = fay_monotonic();
	for (unsigned i = 0; i < rounds; i++)
		good += fay_wire_open(out.bytes, out.size, &head);
	*verify = (double)(fay_monotonic() - since) / rounds;
	if (good != rounds)
		abort();
	fay_wire_free(&out);
	free(body);
}

static int run_costs(void)
{
	enum { SMALL = 64, LARGE = 65536, GROUPS = 1000, ROUNDS = 200 };
	struct fay_keys keys;
	struct fay_error error;
	struct fay_aggregator *aggregator;
	static uint64_t rows[3 * GROUPS];
	double sign[2], verify[2];
	if (fay_keys_init(&error) || fay_aggregator_create(&schema, &aggregator, &error))
		return 1;
	fay_keys_make(&keys);
	time_message(&keys, SMALL, &sign[0], &verify[0]);
	time_message(&keys, LARGE, &sign[1], &verify[1]);
	for (uint64_t i = 0; i < GROUPS; i++)
		rows[3 * i + 1] = i * 0x9fb21c651e98df25u;
	uint64_t since = fay_monotonic();
	for (unsigned i = 0; i < ROUNDS; i++)
		if (fay_aggregator_merge(aggregator, 0, (const uint8_t *)rows, GROUPS, &error))
			return 1;
	double merge = (double)(fay_monotonic() - since) / ROUNDS / GROUPS;
	fay_aggregator_destroy(aggregator);
	printf("{\"sign_ns\":%.0f,\"sign_byte_ns\":%.3f,\"verify_ns\":%.0f,\"verify_byte_ns\":%.3f,"
	       "\"merge_ns\":%.2f}\n",
	       sign[0], (sign[1] - sign[0]) / (LARGE - SMALL), verify[0],
	       (verify[1] - verify[0]) / (LARGE - SMALL), merge);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 7 && !strcmp(argv[1], "agents"))
		return run_agents(argv + 2);
	if (argc == 4 && !strcmp(argv[1], "merge"))
		return run_merge(argv + 2);
	if (argc == 2 && !strcmp(argv[1], "costs"))
		return run_costs();
	fprintf(stderr,
		"usage: %s agents URL SIGNERS N KEYS STEPS | merge PARTIALS GROUPS | costs\n",
		argv[0]);
	return 2;
}
