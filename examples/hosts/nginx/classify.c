/* SPDX-License-Identifier: MIT */
/* A classifier for requests.host: 1 for what calls itself a bot, 2 for files of style, else 0. */
#include <fay/host/entry.h>

FAY_EXTENSION(1, 0);
FAY_ENTRY(classify);

uint64_t classify(const uint8_t *path, uint64_t path_size, const uint8_t *agent,
		  uint64_t agent_size);
uint64_t classify(const uint8_t *path, uint64_t path_size, const uint8_t *agent,
		  uint64_t agent_size)
{
	for (uint64_t i = 0; i + 3 <= agent_size; i++)
		if (agent[i] == 'b' && agent[i + 1] == 'o' && agent[i + 2] == 't')
			return 1;
	if (path_size >= 4) {
		const uint8_t *end = path + path_size;

		if (end[-4] == '.' && end[-3] == 'c' && end[-2] == 's' && end[-1] == 's')
			return 2;
	}
	return 0;
}
