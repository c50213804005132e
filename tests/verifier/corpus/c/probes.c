/* SPDX-License-Identifier: MIT */
/*
 * Small probes as a vendor would write them in C, all safe as they stand: which of them pass the verifier as compiled, without any guard of our compiler, is
 * what c_accept_rate counts. One function a probe; compiled one at a time with -DPROBE=name.
 */
#include <stdint.h>

#include "fay/event.h"

typedef const struct fay_event *event_t;
#define P(name) void name(event_t e, uint64_t *l, uint64_t *g); void name(event_t e, uint64_t *l, uint64_t *g)
/* LOCAL has 64 words, GLOBAL 64. */
extern int64_t fay_try_read(void *to, uint64_t size, uint64_t address);
extern uint64_t fay_emit(void *local, uint64_t state, const void *row);
extern uint64_t fay_flush(void *local, uint64_t state);

P(count) { l[0]++; }
P(sum) { l[0] += e->arg[2]; }
P(average) { l[0] += e->arg[2]; l[1]++; }
P(maximum) { if (e->arg[0] > l[0]) l[0] = e->arg[0]; }
P(minimum) { if (~e->arg[0] > l[0]) l[0] = ~e->arg[0]; }
P(signed_maximum) { int64_t x = (int64_t)e->arg[1]; if (x > (int64_t)l[0]) l[0] = (uint64_t)x; }
P(filter) { if (e->arg[2] >= 4096 && e->pid != 1) l[0]++; }
P(filter_comm) { if (e->comm[0] == 'r' && e->comm[1] == 'e' && e->comm[2] == 'd') l[0]++; }
P(histogram_masked) { l[e->arg[2] & 63]++; }
P(histogram_branch) { uint64_t i = e->arg[2] / 1024; if (i < 64) l[i]++; }
P(histogram_clamped) { uint64_t i = e->arg[2] / 1024; l[i > 63 ? 63 : i]++; }
P(histogram_log2) { uint64_t x = e->arg[2]; l[x ? (64 - __builtin_clzll(x)) & 63 : 0]++; }
P(histogram_log2_loop) { uint64_t x = e->arg[2]; unsigned b = 0; while (x > 1 && b < 63) { x >>= 1; b++; } l[b]++; }
P(histogram_int) { int i = (int)e->arg[2]; if (i >= 0 && i < 64) l[i]++; }
P(histogram_unsigned) { unsigned i = (unsigned)e->arg[2]; if (i < 64) l[i]++; }
P(histogram_offset) { int64_t i = (int64_t)e->arg[2] - 100; if (i >= 0 && i < 64) l[i]++; }
P(histogram_char) { l[(uint8_t)e->arg[0] >> 2]++; }
P(histogram_modulo) { l[e->arg[0] % 64]++; }
P(histogram_modulo_prime) { l[e->arg[0] % 61]++; }
P(histogram_range) { uint64_t x = e->arg[0]; if (x >= 1000 && x < 1064) l[x - 1000]++; }
P(two_dimensions) { uint64_t i = e->arg[0], j = e->arg[1]; if (i < 8 && j < 8) l[i * 8 + j]++; }
P(per_cpu) { if (e->cpu < 64) l[e->cpu]++; }
P(clear) { for (int i = 0; i < 64; i++) l[i] = 0; }
P(sum_all) { uint64_t s = 0; for (int i = 1; i < 64; i++) s += l[i]; l[0] = s; }
P(shift_window) { for (int i = 63; i > 0; i--) l[i] = l[i - 1]; l[0] = e->arg[0]; }
P(find) { for (unsigned i = 0; i < 64; i++) if (l[i] == e->arg[0]) { g[i] = 1; return; } }
P(find_or_insert) { for (unsigned i = 0; i < 32; i++) { if (l[2 * i] == e->arg[0]) { l[2 * i + 1]++; return; } if (!l[2 * i]) { l[2 * i] = e->arg[0]; l[2 * i + 1] = 1; return; } } }
P(hash_table) { uint64_t h = e->arg[0] * 0x9e3779b97f4a7c15u >> 59; for (int n = 0; n < 32; n++, h = (h + 1) & 31) { if (l[2 * h] == e->arg[0] + 1 || !l[2 * h]) { l[2 * h] = e->arg[0] + 1; l[2 * h + 1]++; return; } } }
P(bubble) { for (int i = 0; i < 63; i++) if (l[i] > l[i + 1]) { uint64_t t = l[i]; l[i] = l[i + 1]; l[i + 1] = t; } }
P(nested) { for (int i = 0; i < 8; i++) for (int j = 0; j < 8; j++) l[8 * i + j] += (uint64_t)(i * j); }
P(bounded_loop) { uint64_t n = e->arg[0]; if (n > 64) n = 64; for (uint64_t i = 0; i < n; i++) l[i]++; }
P(bounded_loop_down) { unsigned n = (unsigned)e->arg[0] & 63; while (n--) l[n]++; }
P(pointers) { for (uint64_t *p = l, *end = l + 64; p != end; p++) *p += 1; }
P(pointers_two) { uint64_t *p = l, *q = g; for (int i = 0; i < 64; i++) *q++ = *p++; }
P(hash_string) { uint64_t h = 0xcbf29ce484222325u; for (unsigned i = 0; i < FAY_COMM_SIZE && e->comm[i]; i++) h = (h ^ (uint8_t)e->comm[i]) * 0x100000001b3u; l[h >> 58]++; }
P(divide) { if (e->arg[1]) l[0] = e->arg[0] / e->arg[1]; }
P(divide_constant) { l[0] += e->arg[0] / 1000; l[1] += (uint64_t)((int64_t)e->arg[1] / 7); }
P(divide_int) { unsigned d = (unsigned)e->arg[1]; if (d) l[0] = (unsigned)e->arg[0] / d; }
P(average_now) { if (l[1]) l[2] = l[0] / l[1]; }
P(atomic) { __atomic_fetch_add(&g[0], 1, __ATOMIC_RELAXED); }
P(atomic_indexed) { __atomic_fetch_add(&g[e->cpu & 63], 1, __ATOMIC_RELAXED); }
P(atomic_once) { uint64_t old = g[0]; __atomic_compare_exchange_n(&g[0], &old, old + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED); }
P(switch_small) { switch (e->arg[0]) { case 0: l[0]++; break; case 1: l[1]++; break; case 7: l[2]++; break; default: l[3]++; } }
P(switch_large) { switch (e->arg[0]) { case 0: l[0]++; break; case 1: l[5]++; break; case 2: l[2]++; break; case 3: l[9]++; break; case 4: l[4]++; break; case 5: l[1]++; break; default: l[63]++; } }
P(table) { static const uint8_t map[16] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 }; l[map[e->arg[0] & 15]]++; }
P(bits) { l[__builtin_ctzll(e->arg[0] | 1ull << 40)]++; }
P(bits_swap) { l[0] = __builtin_bswap64(e->arg[0]); l[1] = __builtin_bswap32((uint32_t)e->arg[1]); }
P(mix) { uint64_t x = e->arg[0]; x ^= x >> 33; x *= 0xff51afd7ed558ccdu; x ^= x >> 33; l[x >> 58]++; }
P(state_machine) { uint64_t s = l[0]; if (s < 3) l[1 + s]++; l[0] = s >= 3 ? 0 : s + 1; }
P(ring) { uint64_t at = l[0] & 31; l[1 + at] = e->arg[0]; l[0] = at + 1; }
P(read_int) { uint64_t x; if (fay_try_read(&x, 8, e->arg[0]) == 0) l[0] += x; }
P(read_string) { char s[32]; unsigned i; if (fay_try_read(s, sizeof(s), e->arg[0])) return; for (i = 0; i < sizeof(s) && s[i]; i++) ; l[i]++; }
P(read_struct) { struct { uint32_t a, b; uint64_t c; } s; fay_try_read(&s, sizeof(s), e->arg[0] + 16); if (s.a == 1) l[0] += s.c; else l[1] += s.b; }
P(read_chain) { uint64_t p = e->arg[0]; for (int i = 0; i < 8 && p; i++) { if (fay_try_read(&p, 8, p)) return; l[i]++; } }
P(emit) { uint64_t row[2] = { e->time, e->arg[0] }; fay_emit(l, 1, row); }
P(flush_when_full) { if (l[0]++ > 100) { if (fay_flush(l, 2)) return; l[0] = 0; } }
P(early_returns) { if (!e->arg[0]) return; if (e->arg[1] > 10) return; if (e->tid == e->pid) return; l[e->arg[1]]++; }
static __attribute__((noinline)) void bump(uint64_t *cell, uint64_t by) { *cell += by; }
P(inner_function) { bump(&l[1], e->arg[0]); bump(&l[2], e->arg[1]); }
static __attribute__((noinline)) uint64_t clamp(uint64_t x) { return x > 63 ? 63 : x; }
P(inner_clamp) { l[clamp(e->arg[0])]++; }
