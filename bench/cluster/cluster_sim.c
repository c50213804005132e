/* SPDX-License-Identifier: MIT */
/*
 * A discrete-event simulation of windows going up a tree of agents, for more machines than can be
 * had: what arrives at the root, and how long after a window's end all of it is merged there.
 *
 *     cluster_sim MACHINES FANOUT GROUPS WINDOW_S SPREAD_MS POLL_MS PROCESSORS HELLOS LATENCY_US
 *       SIGN_NS SIGN_BYTE_NS VERIFY_NS VERIFY_BYTE_NS MERGE_NS [PHASES]
 *
 * prints a JSON line. SPREAD: the machines' windows end within so long of one another, as START
 * reached them. PHASES: a file that says how long, in ms, the windows of each machine are behind,
 * in the order of the tree; instead of SPREAD. POLL: a machine notices that its window is over up
 * to so long later. PROCESSORS: that all machines share, being processes of one; 0: each has its
 * own. HELLOS: that come to the root each second.
 *
 * The rules are those of cluster/job/reduce.c: a parent sends on what it has merged when its
 * children have told the window that it has closed itself, when half a window has passed since the
 * first of it came, or when a message is full of bytes or members. Each machine, and the root, does
 * one thing at a time; a message takes LATENCY_US. All machines have the same groups, as those of
 * bench/cluster/cluster.sh do. Not in the model: the NATS servers, lost messages, acknowledgements.
 * The limit of 4,096 machines a query (docs/cluster.md) is left out.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOWS 6u
#define SETTLED 2u /* windows that are not measured */
#define ROW 24u    /* bytes of a group's row */
#define MEMBER 38u /* docs/cluster.md, PARTIAL */
#define FIXED 183u /* of a PARTIAL without rows and members */
#define MESSAGE_MAX (512u << 10)
#define MEMBERS_MAX 2048u
#define HELLO_BYTES 203u
#define PROCESSORS_MAX 64u

enum what { CLOSE, ARRIVE, TIMEOUT };

struct event {
	uint64_t time;
	uint32_t machine, from, generation;
	/* the sender's own windows up to this one, counted from 1, are told with it */
	uint32_t own;
	uint32_t members[WINDOWS];
	enum what what;
};

struct machine {
	uint64_t free_at; /* when it has done what it was given so far */
	uint32_t pending, members[WINDOWS], generation;
	uint32_t closed; /* its own windows, counted from 1 */
	uint32_t told;   /* of these its parent has */
};

static struct {
	uint64_t count, fanout, groups, window, spread, poll, processors, hellos, latency, sign,
		sign_byte, verify, verify_byte, merge;
} model;

static struct event *heap;
static size_t heap_count, heap_room;
static struct machine *machines;            /* the last one is the root */
static uint64_t *phases;                    /* ns of each machine's windows behind the query's */
static uint64_t processors[PROCESSORS_MAX]; /* when each is free, if machines share them */
static uint64_t messages, bytes, busy, merged_at[WINDOWS], merged_members[WINDOWS],
	random_state = 1;

static uint64_t next_random(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return random_state >> 33;
}

static void push(struct event event)
{
	if (heap_count == heap_room) {
		heap_room = heap_room ? 2 * heap_room : 1024;
		heap = realloc(heap, heap_room * sizeof(*heap));
		if (!heap)
			abort();
	}
	size_t at = heap_count++;
	for (; at && heap[(at - 1) / 2].time > event.time; at = (at - 1) / 2)
		heap[at] = heap[(at - 1) / 2];
	heap[at] = event;
}

static struct event pop(void)
{
	struct event first = heap[0], last = heap[--heap_count];
	size_t at = 0;
	for (;;) {
		size_t child = 2 * at + 1;
		if (child >= heap_count)
			break;
		child += child + 1 < heap_count && heap[child + 1].time < heap[child].time;
		if (heap[child].time >= last.time)
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = last;
	return first;
}

static uint32_t parent_of(uint32_t machine)
{
	return model.fanout && machine >= model.fanout ? (uint32_t)(machine / model.fanout - 1)
						       : (uint32_t)model.count;
}

static uint64_t message_bytes(uint32_t members)
{
	return FIXED + model.groups * ROW + (uint64_t)members * MEMBER;
}

/* The machine works so long, behind what it has to do already, on the processor that is free first;
 * returns when it is done. */
static uint64_t work(struct machine *machine, uint64_t now, uint64_t duration)
{
	uint64_t *processor = processors;
	for (uint64_t i = 1; i < model.processors; i++)
		if (processors[i] < *processor)
			processor = &processors[i];
	machine->free_at = machine->free_at > now ? machine->free_at : now;
	if (model.processors && *processor > machine->free_at)
		machine->free_at = *processor;
	machine->free_at += duration;
	*processor = machine->free_at;
	return machine->free_at;
}

static uint32_t all_members(const uint32_t members[WINDOWS])
{
	uint32_t sum = 0;
	for (uint32_t w = 0; w < WINDOWS; w++)
		sum += members[w];
	return sum;
}

/* Sends what is pending. */
static void forward(uint32_t index, uint64_t now)
{
	struct machine *machine = &machines[index];
	if (!machine->pending)
		return;
	uint64_t done = work(machine, now,
			     model.sign + model.sign_byte * message_bytes(machine->pending) / 1000);
	struct event event = { .time = done + model.latency,
			       .machine = parent_of(index),
			       .from = index,
			       .own = machine->closed,
			       .what = ARRIVE };
	memcpy(event.members, machine->members, sizeof(event.members));
	push(event);
	memset(machine->members, 0, sizeof(machine->members));
	machine->pending = 0;
	machine->generation++;
}

/* The newest window of which anything is there is closed by the machine and told by its children.
 * */
static bool window_closed(uint32_t index)
{
	const struct machine *machine = &machines[index];
	uint64_t first = ((uint64_t)index + 1) * model.fanout;
	uint32_t newest = machine->closed;
	for (uint32_t w = newest; w < WINDOWS; w++)
		newest = machine->members[w] ? w + 1 : newest;
	if (machine->closed < newest)
		return false;
	for (uint64_t i = first; i < first + model.fanout && i < model.count; i++)
		if (machines[i].told < newest)
			return false;
	return true;
}

/* What came, or the machine's own, joins what is pending. */
static void collect(uint32_t index, uint64_t now, const uint32_t members[WINDOWS])
{
	struct machine *machine = &machines[index];
	uint32_t count = all_members(members);
	if (machine->pending && (machine->pending + count > MEMBERS_MAX ||
				 message_bytes(machine->pending + count) > MESSAGE_MAX))
		forward(index, now);
	if (!machine->pending)
		push((struct event){ .time = now + model.window / 2,
				     .machine = index,
				     .generation = machine->generation,
				     .what = TIMEOUT });
	machine->pending += count;
	for (uint32_t w = 0; w < WINDOWS; w++)
		machine->members[w] += members[w];
	if (window_closed(index))
		forward(index, now);
}

static void arrive_at_root(const struct event *event)
{
	struct machine *root = &machines[model.count];
	uint64_t size = message_bytes(all_members(event->members)),
		 duration = model.verify + model.verify_byte * size / 1000 +
			    model.merge * model.groups / 1000;
	uint64_t done = work(root, event->time, duration);
	uint32_t newest = 0;
	for (uint32_t w = 0; w < WINDOWS; w++) {
		merged_members[w] += event->members[w];
		if (event->members[w])
			newest = w;
		if (event->members[w] && merged_members[w] == model.count)
			merged_at[w] = done;
	}
	if (newest < SETTLED)
		return;
	messages++;
	bytes += size;
	busy += duration;
}

static void handle(const struct event *event)
{
	struct machine *machine = &machines[event->machine];
	if (event->what == TIMEOUT) {
		if (event->generation == machine->generation)
			forward(event->machine, event->time);
	} else if (event->what == CLOSE) {
		machine->closed++;
		collect(event->machine,
			work(machine, event->time, model.merge * model.groups / 1000),
			event->members);
	} else if (event->machine == model.count) {
		arrive_at_root(event);
	} else {
		uint64_t duration =
			model.verify +
			model.verify_byte * message_bytes(all_members(event->members)) / 1000 +
			model.merge * model.groups / 1000;
		machines[event->from].told = event->own;
		collect(event->machine, work(machine, event->time, duration), event->members);
	}
}

/* `path` NULL: made up. */
static bool read_phases(const char *path)
{
	FILE *file = path ? fopen(path, "re") : NULL;
	double ms;
	uint32_t known = 0;
	for (uint32_t i = 0; !path && i < model.count; i++)
		phases[i] = next_random() % (model.spread + 1);
	for (; file && known < model.count && fscanf(file, "%lf", &ms) == 1 && ms >= 0 && ms < 1e9;
	     known++)
		phases[known] = (uint64_t)(ms * 1e6);
	if (file)
		fclose(file);
	return !path || known == model.count;
}

/* The windows' ends. */
static void prepare(void)
{
	for (uint32_t w = 0; w < WINDOWS; w++)
		for (uint32_t i = 0; i < model.count; i++) {
			struct event event = { .time = (w + 1) * model.window + phases[i] +
						       next_random() % (model.poll + 1),
					       .machine = i,
					       .what = CLOSE };
			event.members[w] = 1;
			push(event);
		}
}

static bool read_model(char **argv)
{
	/* In ns and bytes; what a byte or a group costs in ps. */
	const struct {
		uint64_t *field;
		double unit;
	} fields[] = {
		{ &model.count, 1 },         { &model.fanout, 1 },      { &model.groups, 1 },
		{ &model.window, 1e9 },      { &model.spread, 1e6 },    { &model.poll, 1e6 },
		{ &model.processors, 1 },    { &model.hellos, 1 },      { &model.latency, 1e3 },
		{ &model.sign, 1 },          { &model.sign_byte, 1e3 }, { &model.verify, 1 },
		{ &model.verify_byte, 1e3 }, { &model.merge, 1e3 },
	};
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		*fields[i].field = (uint64_t)(strtod(argv[i + 1], NULL) * fields[i].unit + 0.5);
	return model.count && model.count < 10000000 && model.window &&
	       model.processors <= PROCESSORS_MAX;
}

int main(int argc, char **argv)
{
	if ((argc != 15 && argc != 16) || !read_model(argv)) {
		fprintf(stderr,
			"usage: %s MACHINES FANOUT GROUPS WINDOW_S SPREAD_MS POLL_MS PROCESSORS "
			"HELLOS LATENCY_US SIGN_NS SIGN_BYTE_NS VERIFY_NS VERIFY_BYTE_NS MERGE_NS "
			"[PHASES]\n",
			argv[0]);
		return 2;
	}
	machines = calloc(model.count + 1, sizeof(*machines));
	phases = calloc(model.count, sizeof(*phases));
	if (!machines || !phases)
		return 1;
	if (!read_phases(argv[15])) {
		fprintf(stderr, "%s: %s does not have a number for each machine\n", argv[0],
			argv[15]);
		return 2;
	}
	prepare();
	while (heap_count) {
		struct event event = pop();
		handle(&event);
	}
	uint64_t worst = 0;
	for (uint32_t w = SETTLED; w < WINDOWS; w++) {
		if (merged_members[w] != model.count)
			return 1; /* a window's machines were not all merged once */
		uint64_t late = merged_at[w] - (w + 1) * model.window;
		worst = late > worst ? late : worst;
	}
	double seconds = (double)(WINDOWS - SETTLED) * (double)model.window / 1e9;
	printf("{\"machines\":%" PRIu64 ",\"fanout\":%" PRIu64 ",\"groups\":%" PRIu64
	       ",\"messages_per_s\":%.1f,\"bytes_per_s\":%.0f,\"root_busy\":%.4f,\"latency_ms\":%."
	       "2f}\n",
	       model.count, model.fanout, model.groups,
	       (double)messages / seconds + (double)model.hellos,
	       (double)bytes / seconds + (double)(model.hellos * HELLO_BYTES),
	       (double)busy / seconds / 1e9, (double)worst / 1e6);
	free(heap);
	free(machines);
	free(phases);
	return 0;
}
