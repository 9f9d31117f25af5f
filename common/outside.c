#include "common/outside.h"

#include <strings.h>

#define V4_AT 12 /* in a mapped address */
#define V4_BYTES 4
#define HOST_MAX 253

struct inside { /* addresses that begin with these bits */
	uint8_t first[V4_BYTES];
	unsigned int bits;
};

/* IANA's registries of special-purpose addresses, what is not "globally
 * reachable", and multicast.  Relays (192.88.99.0/24, 6to4, Teredo) lead to
 * somebody else's idea of an address. */
static const struct inside inside_v4[] = {
    {{0, 0, 0, 0}, 8},
    {{10, 0, 0, 0}, 8},
    {{100, 64, 0, 0}, 10},
    {{127, 0, 0, 0}, 8},
    {{169, 254, 0, 0}, 16},
    {{172, 16, 0, 0}, 12},
    {{192, 0, 0, 0}, 24},
    {{192, 0, 2, 0}, 24},
    {{192, 88, 99, 0}, 24},
    {{192, 168, 0, 0}, 16},
    {{198, 18, 0, 0}, 15},
    {{198, 51, 100, 0}, 24},
    {{203, 0, 113, 0}, 24},
    {{224, 0, 0, 0}, 3},
};
/* Of 2000::/3; nothing else of IPv6 is public. */
static const struct inside inside_v6[] = {
    {{0x20, 0x01, 0x00, 0x00}, 23},
    {{0x20, 0x01, 0x0d, 0xb8}, 32},
    {{0x20, 0x02, 0x00, 0x00}, 16},
    {{0x3f, 0xff, 0x00, 0x00}, 20},
};
/* RFC 6052: the IPv4 address stands in the last four bytes. */
static const uint8_t nat64[V4_AT] = {0x00, 0x64, 0xff, 0x9b};

static uint32_t
word_of(const uint8_t b[V4_BYTES])
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
	    (uint32_t)b[2] << 8 | b[3];
}

static bool
is_in(const struct inside *list, size_t n, const uint8_t *bytes)
{
	for (size_t i = 0; i < n; i++)
		if ((word_of(bytes) ^ word_of(list[i].first)) >>
			(32 - list[i].bits) ==
		    0)
			return true;
	return false;
}

bool
outside_is_public(const struct netaddr *a)
{
	const uint8_t *v4 = a->bytes + V4_AT;

	if (a->kind == NETADDR_V4 ||
	    (a->kind == NETADDR_V6 &&
		memcmp(a->bytes, nat64, sizeof(nat64)) == 0))
		return !is_in(inside_v4, ARRAY_LEN(inside_v4), v4);
	return a->kind == NETADDR_V6 && (a->bytes[0] & 0xe0) == 0x20 &&
	    !is_in(inside_v6, ARRAY_LEN(inside_v6), a->bytes);
}

/* No address and no block. */
static bool
is_name(const char *text)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	size_t n = strlen(text);

	return n >= 1 && n <= HOST_MAX && strspn(text, good) == n &&
	    strspn(text, "0123456789.") != n && strcmp(text, "unix") != 0;
}

int
outside_parse(char *const *list, struct outside_allow *out, struct err *e)
{
	*out = (struct outside_allow){0};
	for (; *list != NULL; list++) {
		if (out->nblocks + out->nnames == OUTSIDE_ALLOW_MAX)
			return err_set(e, ERR_LIMIT, "more than %d entries",
			    OUTSIDE_ALLOW_MAX);
		if (is_name(*list)) {
			out->names[out->nnames++] = *list;
			continue;
		}
		if (strcmp(*list, "unix") == 0 ||
		    netblock_parse(*list, &out->blocks[out->nblocks], NULL) !=
			0)
			return err_set(e, ERR_INVAL,
			    "\"%.64s\" is no host's name, no address and no "
			    "ADDRESS/BITS",
			    *list);
		out->nblocks++;
	}
	return 0;
}

bool
outside_may_reach(const struct outside_allow *allow, const char *host,
    const struct netaddr *a)
{
	if (outside_is_public(a))
		return true;
	if (a->kind != NETADDR_V4 && a->kind != NETADDR_V6)
		return false;
	for (size_t i = 0; i < allow->nblocks; i++)
		if (netblock_has(&allow->blocks[i], a))
			return true;
	for (size_t i = 0; i < allow->nnames; i++)
		if (strcasecmp(allow->names[i], host) == 0)
			return true;
	return false;
}
