#include "common/siphash.h"

struct siphash_state {
	uint64_t v[4];
};

static uint64_t
rotate(uint64_t x, unsigned int by)
{
	return x << by | x >> (64 - by);
}

static uint64_t
load(const uint8_t *p, size_t n)
{
	uint64_t x = 0;

	for (size_t i = 0; i < n; i++)
		x |= (uint64_t)p[i] << (8 * i);
	return x;
}

static void
rounds(struct siphash_state *s, unsigned int n)
{
	uint64_t *v = s->v;

	for (; n > 0; n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void
take(struct siphash_state *s, uint64_t word)
{
	s->v[3] ^= word;
	rounds(s, 2);
	s->v[0] ^= word;
}

uint64_t
siphash(const uint8_t key[SIPHASH_KEY_BYTES], const void *p, size_t n)
{
	const uint64_t k0 = load(key, 8), k1 = load(key + 8, 8);
	struct siphash_state s = {{k0 ^ UINT64_C(0x736f6d6570736575),
	    k1 ^ UINT64_C(0x646f72616e646f6d),
	    k0 ^ UINT64_C(0x6c7967656e657261),
	    k1 ^ UINT64_C(0x7465646279746573)}};
	const uint8_t *bytes = p;
	size_t i;

	for (i = 0; n - i >= 8; i += 8)
		take(&s, load(bytes + i, 8));
	take(&s, load(bytes + i, n - i) | (uint64_t)n << 56);
	s.v[2] ^= 0xff;
	rounds(&s, 4);
	return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}
