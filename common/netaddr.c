#include "common/netaddr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#define V4_AT 12 /* where IPv4 begins in a mapped address */
#define V4_BITS 96

static const uint8_t mapped[V4_AT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static struct netaddr
from_bytes(const uint8_t bytes[NETADDR_BYTES])
{
	struct netaddr a = {.kind = NETADDR_V6};

	memcpy(a.bytes, bytes, sizeof(a.bytes));
	if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
		a.kind = NETADDR_V4;
	return a;
}

static struct netaddr
from_v4(const void *four)
{
	struct netaddr a = {.kind = NETADDR_V4};

	memcpy(a.bytes, mapped, sizeof(mapped));
	memcpy(a.bytes + V4_AT, four, NETADDR_BYTES - V4_AT);
	return a;
}

struct netaddr
netaddr_from_sockaddr(const struct sockaddr *sa)
{
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;

	switch (sa->sa_family) {
	case AF_INET:
		memcpy(&in4, sa, sizeof(in4));
		return from_v4(&in4.sin_addr);
	case AF_INET6:
		memcpy(&in6, sa, sizeof(in6));
		return from_bytes(in6.sin6_addr.s6_addr);
	case AF_UNIX:
		return (struct netaddr){.kind = NETADDR_UNIX};
	default:
		return (struct netaddr){.kind = NETADDR_NONE};
	}
}

int
netaddr_parse(const char *p, size_t n, struct netaddr *out)
{
	uint8_t bytes[NETADDR_BYTES];
	char text[NETADDR_TEXT_MAX];

	if (n == 0 || n >= sizeof(text) || memchr(p, '\0', n) != NULL)
		return ERR_INVAL;
	memcpy(text, p, n);
	text[n] = '\0';
	if (inet_pton(AF_INET, text, bytes) == 1)
		*out = from_v4(bytes);
	else if (inet_pton(AF_INET6, text, bytes) == 1)
		*out = from_bytes(bytes);
	else
		return ERR_INVAL;
	return 0;
}

const char *
netaddr_format(const struct netaddr *a, char out[NETADDR_TEXT_MAX])
{
	const char *text = NULL;

	if (a->kind == NETADDR_V4)
		text =
		    inet_ntop(AF_INET, a->bytes + V4_AT, out, NETADDR_TEXT_MAX);
	else if (a->kind == NETADDR_V6)
		text = inet_ntop(AF_INET6, a->bytes, out, NETADDR_TEXT_MAX);
	if (text == NULL)
		(void)snprintf(out, NETADDR_TEXT_MAX, "%s",
		    a->kind == NETADDR_UNIX ? "unix" : "unknown");
	return out;
}

bool
netaddr_is_loopback(const struct netaddr *a)
{
	static const uint8_t one[NETADDR_BYTES] = {[NETADDR_BYTES - 1] = 1};

	switch (a->kind) {
	case NETADDR_UNIX:
		return true;
	case NETADDR_V4:
		return a->bytes[V4_AT] == 127;
	case NETADDR_V6:
		return memcmp(a->bytes, one, sizeof(one)) == 0;
	case NETADDR_NONE:
	default:
		return false;
	}
}

/* ---- blocks */

static bool
same_bits(const uint8_t *a, const uint8_t *b, unsigned int bits)
{
	unsigned int whole = bits / 8, rest = bits % 8;
	uint8_t mask = (uint8_t)(0xff << (8 - rest));

	return memcmp(a, b, whole) == 0 &&
	    (rest == 0 || ((a[whole] ^ b[whole]) & mask) == 0);
}

static bool
is_first_of_block(const struct netblock *b)
{
	for (unsigned int i = b->bits; i < 8 * NETADDR_BYTES; i++)
		if ((b->first.bytes[i / 8] & (0x80 >> i % 8)) != 0)
			return false;
	return true;
}

/* One to three digits. */
static int
parse_bits(const char *text, unsigned int max, unsigned int *out)
{
	size_t n = strlen(text);
	unsigned long value;

	if (n < 1 || n > 3 || strspn(text, "0123456789") != n)
		return ERR_INVAL;
	value = strtoul(text, NULL, 10);
	if (value > max)
		return ERR_INVAL;
	*out = (unsigned int)value;
	return 0;
}

int
netblock_parse(const char *text, struct netblock *out, struct err *e)
{
	const char *slash = strchr(text, '/');
	size_t n = slash != NULL ? (size_t)(slash - text) : strlen(text);
	struct netblock b = {.bits = 0};
	unsigned int max, bits;

	if (strcmp(text, "unix") == 0) {
		b.first.kind = NETADDR_UNIX;
		*out = b;
		return 0;
	}
	if (netaddr_parse(text, n, &b.first) != 0)
		return err_set(e, ERR_INVAL,
		    "\"%.64s\" is no address, nor ADDRESS/BITS, nor unix",
		    text);
	max = b.first.kind == NETADDR_V4 ? 32 : 128;
	bits = max;
	if (slash != NULL && parse_bits(slash + 1, max, &bits) != 0)
		return err_set(e, ERR_INVAL,
		    "\"%.64s\": want 0 to %u bits behind the slash", text, max);
	b.bits = bits + (b.first.kind == NETADDR_V4 ? V4_BITS : 0);
	if (!is_first_of_block(&b))
		return err_set(e, ERR_INVAL,
		    "\"%.64s\": bits of the address are set behind the first "
		    "%u",
		    text, bits);
	*out = b;
	return 0;
}

bool
netblock_has(const struct netblock *b, const struct netaddr *a)
{
	if (b->first.kind == NETADDR_UNIX || a->kind == NETADDR_UNIX)
		return b->first.kind == a->kind;
	if (a->kind == NETADDR_NONE)
		return false;
	/* ::/0 is all of IPv6 and not the mapped IPv4. */
	return b->first.kind == a->kind &&
	    same_bits(b->first.bytes, a->bytes, b->bits);
}
