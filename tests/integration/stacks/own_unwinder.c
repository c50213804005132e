/* SPDX-License-Identifier: MIT */
/* Where libgcc's unwinder, linked in, finds unwind information: as up to gcc 11 by
 * dl_iterate_phdr(), in each module's table (.eh_frame_hdr; LSB 5.0, 10.6.2). */
#include <link.h>
#include <stdint.h>

struct bases {
	void *text, *data, *function;
};
/* as libgcc_eh.a has it */
__attribute__((visibility("hidden"))) const void *_Unwind_Find_FDE(void *at, struct bases *bases);

struct row {
	int32_t function, description; /* from the table's header */
};
struct header {
	uint8_t version, frame, count, table;
	int32_t frame_at;
	uint32_t rows;
	struct row row[];
};

struct search {
	uintptr_t at;
	const int32_t *found;
	struct bases *bases;
};

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
	struct search *search = context;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const struct header *header =
			(const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);

		if (info->dlpi_phdr[i].p_type != PT_GNU_EH_FRAME || header->count != 0x03 ||
		    header->table != 0x3b)
			continue;
		for (uint32_t k = 0; k < header->rows; k++) {
			uintptr_t function = (uintptr_t)header + (uintptr_t)header->row[k].function;
			const int32_t *description =
				(const void *)((uintptr_t)header +
					       (uintptr_t)header->row[k].description);

			if (search->at - function >= (uint32_t)description[3]) /* its length */
				continue;
			*search->bases = (struct bases){ 0, 0, (void *)function };
			search->found = description;
			return 1;
		}
	}
	return 0;
}

const void *_Unwind_Find_FDE(void *at, struct bases *bases)
{
	struct search search = { (uintptr_t)at, 0, bases };

	dl_iterate_phdr(look, &search);
	return search.found;
}
