// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What trampolines and probes call: in every context, NMI included, with preemption off, so no
 * locks, no sleeping. The slot headers are mapped by the user side and are not believed: the ring's
 * head is kept in the context, a tail that makes no sense is a full ring.
 */
#include <asm/msr.h>
#include <asm/tsc.h>
#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "fay.h"

/* ---- the event ---- */

static u64 function_of(const struct fay_session *session, u64 address)
{
	u32 at = fay_point_hash(address) & session->table_mask;

	if (!session->table)
		return 0;
	while (session->table[at].address && session->table[at].address != address)
		at = (at + 1) & session->table_mask;
	return session->table[at].function;
}

void fay_fill(struct fay_kernel_context *context, u32 fields)
{
	struct fay_event *event = &context->event;

	if (fields & FAY_FIELD_TIME)
		event->time = ktime_get_real_fast_ns();
	if (fields & FAY_FIELD_CYCLES)
		event->cycles = rdtsc();
	if (fields & FAY_FIELD_FUNCTION)
		event->function =
			function_of((const struct fay_session *)context->session, event->address);
	if (fields & FAY_FIELD_MODULE)
		event->module = fay_name_hash("kernel");
	if (fields & FAY_FIELD_PID)
		event->pid = current->tgid;
	if (fields & FAY_FIELD_TID)
		event->tid = current->pid;
	if (fields & FAY_FIELD_CPU)
		event->cpu = raw_smp_processor_id();
	if (fields & FAY_FIELD_COMM) {
		unsigned int i = 0;

		for (; i < FAY_COMM_SIZE - 1 && current->comm[i]; i++)
			event->comm[i] = current->comm[i];
		for (; i < FAY_COMM_SIZE; i++)
			event->comm[i] = 0;
	}
	/* below zero: the clock went back, by suspension or for another CPU's */
	if (fields & FAY_FIELD_DURATION)
		event->duration = (s64)event->duration >= 0
					  ? mul_u64_u32_div(event->duration, 1000000, tsc_khz)
					  : 0;
}

/* Gives the CPU away if that was asked for while a trampoline held it. */
void fay_resched(void)
{
	preempt_disable_notrace();
	preempt_enable_notrace();
}

/* ---- rings ---- */

/* The session and context that LOCAL belongs to; NULL: none. */
static struct fay_kernel_context *context_of(const void *local)
{
	for (unsigned int i = 0; i < FAY_KERNEL_SESSIONS_MAX; i++) {
		struct fay_session *session = READ_ONCE(fay_sessions[i]);
		u64 distance;

		if (!session)
			continue;
		distance =
			(u64)local - ((u64)session->shm + session->slots_offset + FAY_SLOT_HEADER);
		if (distance / session->slot_stride < session->slot_count &&
		    distance % session->slot_stride == 0)
			return &session->contexts[distance / session->slot_stride];
	}
	return NULL;
}

static struct fay_slot_header *slot_of(const struct fay_kernel_context *context)
{
	return (struct fay_slot_header *)(context->local - FAY_SLOT_HEADER);
}

static bool ring_has_room(const struct fay_kernel_context *context, u64 bytes)
{
	const struct fay_session *session = (const struct fay_session *)context->session;
	u64 size = session->spill_size;
	u64 used = context->head - smp_load_acquire(&slot_of(context)->spill_tail);

	return used <= size && bytes <= size - used;
}

/* Copies to ring position `at`, in two pieces if it wraps. Returns the position after. */
static u64 ring_put(const struct fay_kernel_context *context, u64 at, const void *from, u64 size)
{
	const struct fay_session *session = (const struct fay_session *)context->session;
	char *ring = (char *)slot_of(context) + session->spill_offset;
	u64 start = at & (session->spill_size - 1);
	u64 first = min(session->spill_size - start, size);

	memcpy(ring + start, from, first);
	memcpy(ring, from + first, size - first);
	return at + size;
}

static void ring_publish(struct fay_kernel_context *context, u64 head)
{
	context->head = head;
	smp_store_release(&slot_of(context)->spill_head, head);
}

static u64 lost_full(const struct fay_kernel_context *context)
{
	slot_of(context)->lost_full++;
	return 1;
}

static const struct fay_image_state *state_of(const struct fay_kernel_context *context, u64 state,
					      u32 kind)
{
	const struct fay_session *session = (const struct fay_session *)context->session;

	return state < session->code.state_count && session->code.states[state].kind == kind
		       ? &session->code.states[state]
		       : NULL;
}

#define RECORD_ROWS_MAX 65535u

/*
 * All of a table goes out at once or not at all. A row's tag is read once: the user side can write
 * it, and must not make this write more than there is room for.
 */
u64 fay_flush(void *local, u64 state)
{
	struct fay_kernel_context *context = context_of(local);
	const struct fay_image_state *table =
		context ? state_of(context, state, FAY_STATE_TABLE) : NULL;
	struct fay_slot_header *slot;
	struct fay_table_header *header;
	u64 occupied = 0, records, head;
	char *rows;
	u32 at = 0;

	if (!table)
		return context ? lost_full(context) : 1;
	slot = slot_of(context);
	header = local + table->offset;
	rows = (char *)(header + 1);
	for (u32 i = 0; i < table->rows; i++)
		occupied += READ_ONCE(*(const u64 *)(rows + (u64)i * table->row_size)) != 0;
	records = DIV_ROUND_UP(occupied, RECORD_ROWS_MAX);
	if (!ring_has_room(context,
			   occupied * table->row_size + records * sizeof(struct fay_spill_record)))
		return lost_full(context);

	smp_store_release(&slot->sequence, slot->sequence + 1);
	smp_mb();
	head = context->head;
	while (occupied) {
		u32 in_record = (u32)min_t(u64, occupied, RECORD_ROWS_MAX);
		struct fay_spill_record record = { .size = (u32)sizeof(record) +
							   in_record * table->row_size,
						   .state = (u16)state,
						   .rows = (u16)in_record };

		head = ring_put(context, head, &record, sizeof(record));
		for (u32 left = in_record; left; left--) {
			/* Should rows have vanished meanwhile, the last one stands in: the user
			 * side spoils its own result only. */
			while (at < table->rows - 1 &&
			       !READ_ONCE(*(const u64 *)(rows + (u64)at * table->row_size)))
				at++;
			head = ring_put(context, head, rows + (u64)at * table->row_size,
					table->row_size);
			if (at < table->rows - 1)
				at++;
		}
		occupied -= in_record;
	}
	ring_publish(context, head);
	memset(rows, 0, (u64)table->rows * table->row_size);
	header->used = 0;
	smp_store_release(&slot->sequence, slot->sequence + 1);
	return 0;
}

u64 fay_emit(void *local, u64 state, const void *row)
{
	struct fay_kernel_context *context = context_of(local);
	const struct fay_image_state *stream =
		context ? state_of(context, state, FAY_STATE_STREAM) : NULL;
	struct fay_spill_record record;
	u64 head;

	if (!stream)
		return context ? lost_full(context) : 1;
	record = (struct fay_spill_record){ .size = (u32)sizeof(record) + stream->row_size,
					    .state = (u16)state,
					    .rows = 1 };
	if (!ring_has_room(context, record.size))
		return lost_full(context);
	head = ring_put(context, context->head, &record, sizeof(record));
	head = ring_put(context, head, row, stream->row_size);
	ring_publish(context, head);
	return 0;
}

/* ---- memory ---- */

/*
 * Pages that were read from and that nobody else has any more (another CPU gave them up meanwhile).
 * Freeing them takes locks, which what is traced may hold: an interrupt does it, which comes when
 * no lock is held that interrupts need.
 */
#define PAGES_KEPT 16u
#define PAGE_RESERVED ((struct page *)1)

struct kept_pages {
	struct irq_work work;
	/* NULL: free; PAGE_RESERVED: for a read that has not ended, which this interrupts */
	struct page *pages[PAGES_KEPT];
};

static void put_kept_pages(struct irq_work *work)
{
	struct kept_pages *kept = container_of(work, struct kept_pages, work);

	for (unsigned int i = 0; i < PAGES_KEPT; i++) {
		struct page *page = READ_ONCE(kept->pages[i]);

		if (!page || page == PAGE_RESERVED)
			continue;
		WRITE_ONCE(kept->pages[i], NULL);
		put_page(page);
	}
}

static DEFINE_PER_CPU(struct kept_pages, kept_pages) = { .work = IRQ_WORK_INIT(put_kept_pages) };

/* Before a page is taken, so that there is always a place for it. NULL: there is none. */
static struct page **reserve_page(void)
{
	struct kept_pages *kept = this_cpu_ptr(&kept_pages);

	for (unsigned int i = 0; i < PAGES_KEPT; i++)
		if (!cmpxchg_local(&kept->pages[i], NULL, PAGE_RESERVED))
			return &kept->pages[i];
	return NULL;
}

static void let_page_go(struct page *page, struct page **reserved)
{
	struct page *head = compound_head(page);

	if (!is_zone_device_page(head) && page_ref_add_unless(head, -1, 1)) {
		WRITE_ONCE(*reserved, NULL);
		return;
	}
	WRITE_ONCE(*reserved, page);
	irq_work_queue(&this_cpu_ptr(&kept_pages)->work);
}

void fay_pages_finish(void)
{
	int cpu;

	for_each_possible_cpu(cpu) irq_work_sync(&per_cpu(kept_pages, cpu).work);
}

/* The caller has page faults disabled, as access_ok() within asks for outside of a task's own code.
 * Device memory has no page that may be taken so, or one of its own zone. */
static bool read_user_piece(void *to, u64 size, u64 address)
{
	struct page *page, **reserved = reserve_page();
	bool readable;

	if (!reserved)
		return false;
	if (get_user_pages_fast_only(address, 1, 0, &page) != 1) {
		WRITE_ONCE(*reserved, NULL);
		return false;
	}
	readable = !is_zone_device_page(page);
	if (readable)
		memcpy(to, page_address(page) + (address & ~PAGE_MASK), size);
	let_page_go(page, reserved);
	return readable;
}

/* User memory page by page through the kernel's own mapping of the page. */
static bool read_user(void *to, u64 size, u64 address)
{
	bool readable = true;

	if (in_nmi() || !current->mm)
		return false; /* in an NMI this was never tried */
	pagefault_disable();
	while (readable && size) {
		u64 piece = min(size, PAGE_SIZE - (address & ~PAGE_MASK));

		readable = read_user_piece(to, piece, address);
		to += piece;
		address += piece;
		size -= piece;
	}
	pagefault_enable();
	return readable;
}

/* The video memory and ROMs of old, which the direct mapping includes. */
static bool is_video(unsigned long pfn)
{
	return pfn >= 0xa0 && pfn < 0x100;
}

/* RAM that the kernel itself must not touch: balloons' and memory that was unplugged in part, and
 * pages with errors that hardware has reported. */
static bool is_out_of_use(struct page *page)
{
	/* a huge page's head speaks for all of it */
	return PageOffline(page) || PageHWPoison(page) || PageHWPoison(compound_head(page));
}

/*
 * Whether a page of kernel memory is known to be no device's, and in use. The direct mapping has
 * RAM, the first megabyte, and devices' memory with a zone of its own (NVDIMMs, PCI peers);
 * reserved pages there are the kernel's own from its start (its image, memory of CPUs). In the
 * vmalloc area reserved pages are none of the page allocator's: a device's, or firmware's, mapped
 * by a driver. What struct page says holds only where memory is online.
 */
static bool is_memory(u64 address)
{
	bool mapped = is_vmalloc_addr((const void *)address);
	struct page *page;
	unsigned long pfn;

	if (!mapped && !virt_addr_valid(address))
		return address >= MODULES_VADDR && address < MODULES_END;
	page = mapped ? vmalloc_to_page((const void *)address) : virt_to_page(address);
	pfn = page ? page_to_pfn(page) : 0;
	if (!page || !pfn_valid(pfn) || !online_section_nr(pfn_to_section_nr(pfn)) ||
	    is_video(pfn) || is_zone_device_page(page) || is_out_of_use(page))
		return false;
	return !mapped || !PageReserved(page);
}

static bool read_kernel(void *to, u64 size, u64 address)
{
	for (u64 page = address & PAGE_MASK; page <= ((address + size - 1) & PAGE_MASK);
	     page += PAGE_SIZE)
		if (!is_memory(page))
			return false;
	return !copy_from_kernel_nofault(to, (const void *)address, size);
}

s64 fay_try_read(void *to, u64 size, u64 address)
{
	if (!size)
		return 0;
	if (size > FAY_TRY_READ_MAX)
		return -1;
	if (address + size > address &&
	    (address + size <= TASK_SIZE_MAX
		     ? read_user(to, size, address)
		     : address >= TASK_SIZE_MAX && read_kernel(to, size, address)))
		return 0;
	memset(to, 0, size);
	return -1;
}
