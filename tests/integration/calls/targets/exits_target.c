/* SPDX-License-Identifier: MIT */
/* Each line of input is a number of rounds of exits.S's functions, or exits_parts.S's. Says which
 * of them gave a wrong answer or crashed, then "done". */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t function(uint64_t value, uint64_t addend);

#ifdef PARTS
#define FUNCTIONS(F)                                                                               \
	F(split, 3)                                                                                \
	F(split_off, 3)                                                                            \
	F(split_called, 3)                                                                         \
	F(split_data, 3)                                                                           \
	F(split_lea, 3)                                                                            \
	F(split_mov, 3)                                                                            \
	F(split_one, 3)                                                                            \
	F(split_other, 3)                                                                          \
	F(split_near, 3)                                                                           \
	F(split_nearer, 3)                                                                         \
	F(labels_two, 3)                                                                           \
	F(labels_word, 3)                                                                          \
	F(labels_sum, 3)                                                                           \
	F(labels_other, 3)                                                                         \
	F(numbered, 3)                                                                             \
	F(numbered_by, 3)                                                                          \
	F(jumped_by, 3)                                                                            \
	F(jumped_bnd_by, 3)                                                                        \
	F(jumped_hint_by, 3)                                                                       \
	F(jumped_short_by, 3)
#else
#define FUNCTIONS(F)                                                                               \
	F(cf_user, 0)                                                                              \
	F(stc_user, 0)                                                                             \
	F(with_carry, 0)                                                                           \
	F(fall_carry, 0)                                                                           \
	F(fall_zone, 0)                                                                            \
	F(calls_alt, 0)                                                                            \
	F(outer, 0)                                                                                \
	F(calls_alt2, 0)                                                                           \
	F(outer_local, 0)                                                                          \
	F(subroutine, 0)                                                                           \
	F(subroutine_flags, 0)                                                                     \
	F(rep_ret, 0)                                                                              \
	F(bnd_ret, 0)                                                                              \
	F(call_imm, 0)                                                                             \
	F(carry_user, 0)                                                                           \
	F(dec_user, 0)                                                                             \
	F(passes_on, 0)                                                                            \
	F(unsized, 0)                                                                              \
	F(uses_inner, 0)                                                                           \
	F(base_table, 3)                                                                           \
	F(base_table16, 3)                                                                         \
	F(multiplied, 3)                                                                           \
	F(multiplied2, 3)                                                                          \
	F(text_table, 3)                                                                           \
	F(loop_table, 3)                                                                           \
	F(spoilt_table, 3)                                                                         \
	F(behind_call, 3)                                                                          \
	F(label_table, 3)                                                                          \
	F(label_spoilt, 3)                                                                         \
	F(label_itself, 3)                                                                         \
	F(own16, 3)                                                                                \
	F(other32, 3)                                                                              \
	F(times3, 3)                                                                               \
	F(before4, 3)                                                                              \
	F(rdisp, 3)                                                                                \
	F(bypointer, 3)                                                                            \
	F(xlat, 3)                                                                                 \
	F(pushed, 3)                                                                               \
	F(joined, 3)                                                                               \
	F(by_indexed, 3)                                                                           \
	F(by_based, 3)                                                                             \
	F(dispatcher, 1)                                                                           \
	F(dispatcher16, 1)
#endif

#define DECLARE(name, most) function name;
FUNCTIONS(DECLARE)
#define LIST(name, most) { #name, name, most },
static const struct {
	const char *name;
	function *call;
	uint64_t most; /* the largest second argument; 0: there is none */
} all[] = { FUNCTIONS(LIST) };

static sigjmp_buf back;

static void crashed(int signal)
{
	siglongjmp(back, signal);
}

/* dispatcher() and dispatcher16() add one in any case. */
static uint64_t result_of(size_t i, uint64_t round)
{
	uint64_t addend = all[i].most ? round % (all[i].most + 1) : 0,
		 rest = all[i].most == 3 ? addend : 1 + addend;

	return all[i].call(round - (all[i].most ? rest : 0), addend);
}

static void try_one(size_t i, unsigned rounds)
{
	volatile unsigned wrong = 0, crashes = 0;

	for (volatile unsigned round = 4; round < rounds + 4; round++) {
		if (sigsetjmp(back, 1))
			crashes++;
		else if (result_of(i, round) != round + (all[i].most == 0))
			wrong++;
	}
	if (wrong || crashes)
		printf("%s: %u wrong, %u crashed\n", all[i].name, wrong, crashes);
}

int main(void)
{
	static const int signals[] = { SIGSEGV, SIGILL, SIGTRAP, SIGBUS, SIGFPE };
	static char memory[65536];
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	struct sigaction action = { .sa_handler = crashed, .sa_flags = SA_NODEFER | SA_ONSTACK };
	unsigned rounds;

	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	puts("ready");
	fflush(stdout);
	while (scanf("%u", &rounds) == 1) {
		for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
			try_one(i, rounds);
		puts("done");
		fflush(stdout);
	}
	return 0;
}
