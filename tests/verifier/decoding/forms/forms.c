/* SPDX-License-Identifier: MIT */
/*
 * Integer idioms that make compilers choose particular instructions: what compiler_forms compiles at every level and reads with the allow-list decoder.
 * None of it is run. Macro F(name) is a function of its own for each width.
 */
#include <stdint.h>

typedef unsigned __int128 u128;
typedef __int128 i128;

#define EACH(M) M(8) M(16) M(32) M(64)
#define WIDTH(w) \
	uint##w##_t add##w(uint##w##_t a, uint##w##_t b) { return a + b * 3; } \
	uint##w##_t logic##w(uint##w##_t a, uint##w##_t b) { return (a & b) ^ (a | 17) ^ (uint##w##_t)~b; } \
	uint##w##_t shifts##w(uint##w##_t a, unsigned n) { return (a << (n & (w - 1))) ^ (a >> (n & (w - 1))) ^ ((int##w##_t)a >> (n & (w - 1))); } \
	uint##w##_t shift3##w(uint##w##_t a) { return (a << 3) ^ (a >> 5) ^ (uint##w##_t)((int##w##_t)a >> 7); } \
	uint##w##_t rotl##w(uint##w##_t a, unsigned n) { return a << (n & (w - 1)) | a >> (-n & (w - 1)); } \
	uint##w##_t rotr##w(uint##w##_t a) { return a >> 3 | a << (w - 3); } \
	uint##w##_t udiv##w(uint##w##_t a, uint##w##_t b) { return a / b + a % b; } \
	int##w##_t sdiv##w(int##w##_t a, int##w##_t b) { return a / b - a % b; } \
	uint##w##_t udivc##w(uint##w##_t a) { return a / 10 + a % 7 + a / 8; } \
	int##w##_t sdivc##w(int##w##_t a) { return a / 10 + a % 7 + a / 8; } \
	uint##w##_t mulc##w(uint##w##_t a) { return a * 100 + a * 37; } \
	int##w##_t min##w(int##w##_t a, int##w##_t b) { return a < b ? a : b; } \
	uint##w##_t max##w(uint##w##_t a, uint##w##_t b) { return a > b ? a : b; } \
	int##w##_t abs##w(int##w##_t a) { return a < 0 ? -a : a; } \
	int compare##w(int##w##_t a, int##w##_t b) { return (a > b) - (a < b); } \
	int ucompare##w(uint##w##_t a, uint##w##_t b) { return (a > b) - (a < b) + (a == b) * 2 + (a >= 7); } \
	int add_overflow##w(int##w##_t a, int##w##_t b, int##w##_t *r) { return __builtin_add_overflow(a, b, r); } \
	int usub_overflow##w(uint##w##_t a, uint##w##_t b, uint##w##_t *r) { return __builtin_sub_overflow(a, b, r); } \
	int mul_overflow##w(int##w##_t a, int##w##_t b, int##w##_t *r) { return __builtin_mul_overflow(a, b, r); } \
	int umul_overflow##w(uint##w##_t a, uint##w##_t b, uint##w##_t *r) { return __builtin_mul_overflow(a, b, r); } \
	uint##w##_t saturate##w(uint##w##_t a, uint##w##_t b) { uint##w##_t r; return __builtin_add_overflow(a, b, &r) ? (uint##w##_t)-1 : r; } \
	uint64_t widen##w(uint##w##_t *a, int##w##_t *b) { return (uint64_t)*a + (uint64_t)(int64_t)*b; } \
	void store##w(uint##w##_t *p, int i) { p[0] = 0; p[1] = 1; p[i] = (uint##w##_t)-1; p[2] += 5; p[3] -= p[4]; p[5] |= 4; p[6] &= 3; p[7] ^= 9; p[8]++; p[9]--; \
		p[10] <<= 2; p[11] >>= 1; p[12] = -p[12]; p[13] = ~p[13]; p[14] *= 5; } \
	int flags##w(uint##w##_t *p) { return !!(*p & 4) + (p[1] == 0) * 3 + (((int##w##_t)p[2]) < 0); } \
	uint##w##_t fetch_add##w(uint##w##_t *p, uint##w##_t v) { return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST); } \
	void atomic_add##w(uint##w##_t *p, uint##w##_t v) { __atomic_fetch_add(p, v, 0); __atomic_fetch_add(p, 1, 0); __atomic_fetch_sub(p, 1, 0); __atomic_fetch_or(p, 4, 0); \
		__atomic_fetch_and(p, v, 0); __atomic_fetch_xor(p, 3, 0); __atomic_fetch_sub(p, v, 0); } \
	uint##w##_t fetch_or##w(uint##w##_t *p, uint##w##_t v) { return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST); } \
	uint##w##_t exchange##w(uint##w##_t *p, uint##w##_t v) { return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST); } \
	void atomic_store##w(uint##w##_t *p, uint##w##_t v) { __atomic_store_n(p, v, __ATOMIC_SEQ_CST); } \
	int cas##w(uint##w##_t *p, uint##w##_t *e, uint##w##_t v) { return __atomic_compare_exchange_n(p, e, v, 0, 5, 5); } \
	uint##w##_t sub_test##w(uint##w##_t *p) { return __atomic_sub_fetch(p, 1, 5) == 0; } \
	uint##w##_t popcount##w(uint##w##_t a) { return (uint##w##_t)__builtin_popcountll(a); } \
	uint##w##_t pick##w(uint##w##_t a, uint##w##_t b, int c) { return c ? a : b; } \
	uint##w##_t pickm##w(uint##w##_t *a, uint##w##_t b, int c) { uint##w##_t v = *a; return c > 3 ? v : b; } \
	uint##w##_t loop##w(const uint##w##_t *p, unsigned n) { uint##w##_t s = 0; for (unsigned i = 0; i < n; i++) s = s * 31 + p[i]; return s; }
EACH(WIDTH)

#define BITS(w, suffix) \
	int ctz##w(uint##w##_t a) { return __builtin_ctz##suffix(a); } \
	int clz##w(uint##w##_t a) { return __builtin_clz##suffix(a); } \
	int ctz_or##w(uint##w##_t a) { return a ? __builtin_ctz##suffix(a) : w; } \
	int clz_or##w(uint##w##_t a) { return a ? __builtin_clz##suffix(a) : w; } \
	int ffs##w(uint##w##_t a) { return __builtin_ffs##suffix(a); } \
	int parity##w(uint##w##_t a) { return __builtin_parity##suffix(a); } \
	int log##w(uint##w##_t a) { return w - 1 - __builtin_clz##suffix(a | 1); } \
	uint##w##_t bswap##w(uint##w##_t a) { return __builtin_bswap##w(a); } \
	uint##w##_t bswapm##w(uint##w##_t *a, uint##w##_t *b) { *b = __builtin_bswap##w(*a); return __builtin_bswap##w(b[1]); } \
	int bt##w(uint##w##_t a, unsigned n) { return a >> (n & (w - 1)) & 1; } \
	int btif##w(uint##w##_t a, unsigned n) { if (a & ((uint##w##_t)1 << (n & (w - 1)))) return compare64(a, 3); return 0; } \
	uint##w##_t bts##w(uint##w##_t a, unsigned n) { return a | (uint##w##_t)1 << (n & (w - 1)); } \
	uint##w##_t btr##w(uint##w##_t a, unsigned n) { return a & ~((uint##w##_t)1 << (n & (w - 1))); } \
	uint##w##_t btc##w(uint##w##_t a, unsigned n) { return a ^ (uint##w##_t)1 << (n & (w - 1)); } \
	uint##w##_t bthigh##w(uint##w##_t a) { return (a | (uint##w##_t)1 << (w - 1)) ^ (a & ~((uint##w##_t)1 << (w - 2))); } \
	void btm##w(uint##w##_t *a, unsigned n) { a[n / w] |= (uint##w##_t)1 << (n % w); a[5] &= ~((uint##w##_t)1 << (n % w)); a[6] ^= (uint##w##_t)1 << (w - 1); } \
	int lock_bts##w(uint##w##_t *p) { return !!(__atomic_fetch_or(p, (uint##w##_t)1 << (w - 4), 5) & (uint##w##_t)1 << (w - 4)); } \
	int lock_btr##w(uint##w##_t *p, int n) { return !!(__atomic_fetch_and(p, ~((uint##w##_t)1 << (n & (w - 1))), 5) & (uint##w##_t)1 << (n & (w - 1))); } \
	int lock_btc##w(uint##w##_t *p) { return !!(__atomic_fetch_xor(p, (uint##w##_t)1 << 9, 5) & (uint##w##_t)1 << 9); } \
	uint##w##_t shld##w(uint##w##_t a, uint##w##_t b, unsigned n) { n &= w - 1; return n ? a << n | b >> (w - n) : a; } \
	uint##w##_t shld_c##w(uint##w##_t a, uint##w##_t b) { return a << 5 | b >> (w - 5); } \
	uint##w##_t blsr##w(uint##w##_t a) { return a & (a - 1); } \
	uint##w##_t blsi##w(uint##w##_t a) { return a & -a; } \
	uint##w##_t blsmsk##w(uint##w##_t a) { return a ^ (a - 1); } \
	uint##w##_t andn##w(uint##w##_t a, uint##w##_t b) { return ~a & b; } \
	uint##w##_t bzhi##w(uint##w##_t a, unsigned n) { return a & (((uint##w##_t)1 << (n & (w - 1))) - 1); } \
	uint##w##_t bextr##w(uint##w##_t a) { return a >> 7 & 0xff; } \
	uint##w##_t mask##w(uint##w##_t a, unsigned n) { return a >> (n & (w - 1)) & 0x3f; } \
	uint##w##_t rorx##w(uint##w##_t a, uint##w##_t b) { return (a >> 7 | a << (w - 7)) ^ (b >> 11 | b << (w - 11)); }
BITS(32, )
BITS(64, ll)

uint16_t bswap16(uint16_t a) { return __builtin_bswap16(a); }
void bswap16m(uint16_t *a) { a[0] = __builtin_bswap16(a[1]); }
u128 add128(u128 a, u128 b) { return a + b; }
u128 sub128(u128 a, u128 b) { return a - b; }
u128 mul128(u128 a, u128 b) { return a * b; }
u128 wide(uint64_t a, uint64_t b) { return (u128)a * b; }
i128 swide(int64_t a, int64_t b) { return (i128)a * b; }
uint64_t high(uint64_t a, uint64_t b) { return (uint64_t)((u128)a * b >> 64); }
u128 shl128(u128 a, unsigned n) { return a << (n & 127); }
u128 shr128(u128 a, unsigned n) { return a >> (n & 127); }
i128 sar128(i128 a, unsigned n) { return a >> (n & 127); }
u128 shr1_128(u128 a) { return a >> 1; }
u128 shl3_128(u128 a) { return a << 3; }
int cmp128(i128 a, i128 b) { return a < b; }
uint64_t second_byte(uint64_t a) { return (a >> 8 & 0xff) + (a & 0xff); }
int second_byte_test(unsigned a) { return (a & 0x8000) ? 3 : (a & 0x0100) ? 5 : (a & 0xff00) == 0x1200; }
unsigned set_second_byte(unsigned a, uint8_t b) { return (a & ~0xff00u) | (unsigned)b << 8; }
unsigned mix(unsigned a, unsigned b) { return (a >> 8 & 0xff) ^ (b >> 8 & 0xff) ^ (b & 0xff); }
struct pair { uint8_t a, b; uint16_t c; };
struct pair pairs(uint8_t a, uint8_t b) { return (struct pair){ b, a, (uint16_t)(a + b) }; }
void pairm(struct pair *p, unsigned v) { p->a = (uint8_t)(v >> 8); p->b = (uint8_t)v; p->c = (uint16_t)(v >> 16); }
void zero(uint64_t *p) { for (int i = 0; i < 16; i++) p[i] = 0; }
void copy(uint64_t *p, const uint64_t *q) { for (int i = 0; i < 16; i++) p[i] = q[i]; }
struct big { uint64_t w[20]; };
uint64_t local_zero(unsigned i) { struct big b = { 0 }; ((volatile uint64_t *)b.w)[i & 15] = i; return ((volatile uint64_t *)b.w)[3]; }
uint64_t local_copy(const struct big *q, unsigned i) { struct big b = *q; ((volatile uint64_t *)b.w)[i & 15] = i; return ((volatile uint64_t *)b.w)[3]; }
int classify(int c)
{
	switch (c) {
	case 1: return 7;
	case 2: return 9;
	case 3: return 70;
	case 4: return 17;
	case 5: return 27;
	case 6: return 37;
	case 9: return 47;
	default: return -1;
	}
}
int is_space(unsigned char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }
uint64_t hash(const uint8_t *p, unsigned n)
{
	uint64_t h = 14695981039346656037u;
	for (unsigned i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}
uint32_t murmur(uint32_t h) { h ^= h >> 16; h *= 0x85ebca6b; h ^= h >> 13; h *= 0xc2b2ae35; return h ^ h >> 16; }
uint64_t splitmix(uint64_t z) { z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9; z = (z ^ z >> 27) * 0x94d049bb133111eb; return z ^ z >> 31; }
int sign(int64_t a) { return (a > 0) - (a < 0); }
_Bool both(int a, int b) { return a > 3 && b < 7; }
uint64_t carry_chain(const uint64_t *a, const uint64_t *b, uint64_t *r)
{
	unsigned __int128 c = 0;
	for (int i = 0; i < 4; i++) {
		c += (unsigned __int128)a[i] + b[i];
		r[i] = (uint64_t)c;
		c >>= 64;
	}
	return (uint64_t)c;
}
void fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
uint64_t stamp(void) { return __builtin_ia32_rdtsc(); }
void pause_loop(volatile int *p) { while (*p) __builtin_ia32_pause(); }
int64_t six(int64_t a, int64_t b, int64_t c, int64_t d, int64_t e, int64_t f, int64_t g, int64_t h) { return a + b * c - d / 3 + (e ^ f) + g - h; }
int64_t call_six(int64_t *p) { return six(p[0], p[1], p[2], p[3], p[4], p[5], p[6], 12345) + six(1, 2, 3, 4, 5, 6, 7, p[9]); }
int bitfield(struct { unsigned a : 3, b : 7, c : 12; signed d : 9; } *p) { p->b = p->a; p->d = (int)p->c; return p->d + (int)p->b; }
