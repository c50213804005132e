/* SPDX-License-Identifier: MIT */
/* A structure that arguments_target.c knows by name only. */
struct hidden {
	char pad[3];
	int value;
};

struct hidden *hidden_make(int value);
struct hidden *hidden_make(int value)
{
	static struct hidden it;
	it.value = value;
	return &it;
}
