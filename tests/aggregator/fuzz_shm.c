/* SPDX-License-Identifier: MIT */
/* libFuzzer: the input is laid over the control page, then over the slots; polls and snapshots must
 * stay inside the memory. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "producer.h"

static const char some_name[NAME_SIZE] = "name";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct test_shm shm;
	struct producer producer;
	struct fay_aggregator *aggregator;
	struct fay_error error;
	struct fay_result result;
	if (size < 64)
		return 0;
	size_t control = data[0] % 64;
	test_shm_init(&shm, 2, 2048);
	for (uint32_t i = 0; i < 2; i++) {
		producer_init(&producer, &shm, 1);
		for (int j = 0; j < 20; j++)
			producer_record(&producer, j, some_name, j);
	}
	/* The magic stays, else nothing else is ever looked at. */
	memcpy((uint8_t *)shm.control + 8, data, control);
	if (!fay_aggregator_create(&test_schema, &aggregator, &error)) {
		if (!fay_aggregator_add(aggregator, shm.control, shm.size, 0, &error)) {
			size_t rest = size - control, room = shm.size - 2 * FAY_SHM_PAGE;
			for (int round = 0; round < 2; round++) {
				fay_aggregator_poll(aggregator, &error);
				for (uint32_t state = 0; state < STATE_COUNT; state++)
					if (!fay_aggregator_snapshot(aggregator, state, &result,
								     &error))
						fay_result_deinit(&result);
				memcpy((uint8_t *)shm.control + 2 * FAY_SHM_PAGE, data + control,
				       rest < room ? rest : room);
			}
		}
		fay_aggregator_destroy(aggregator);
	}
	test_shm_deinit(&shm);
	return 0;
}
