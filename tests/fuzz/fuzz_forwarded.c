/* fuzz_forwarded.c - X-Forwarded-For, -Proto and -Host, as anybody may send
 * them.  The first line is an entry of TRUSTED_PROXIES, the others are lines
 * of a header, the last line of the request first. */
#include "supervisor/http/forwarded.h"
#include "tests/fuzz/fuzz.h"

/* What it is known as is an address again. */
static void
check_client(const struct netaddr *a)
{
	char text[NETADDR_TEXT_MAX];
	struct netaddr again;

	REQUIRE(a->kind == NETADDR_V4 || a->kind == NETADDR_V6);
	(void)netaddr_format(a, text);
	REQUIRE(netaddr_parse(text, strlen(text), &again) == 0);
	REQUIRE(memcmp(a->bytes, again.bytes, sizeof(again.bytes)) == 0);
}

static void
walk(const struct forwarded_proxies *proxies, char *line)
{
	const char *peer = "10.0.0.1", *last;
	struct netaddr client = {.kind = NETADDR_NONE};
	struct forwarded_walk w = {.proxies = proxies, .client = &client};
	struct netaddr before;
	char *next;
	size_t n;

	REQUIRE(netaddr_parse(peer, strlen(peer), &client) == 0);
	for (; line != NULL; line = next) {
		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		last = forwarded_last(line, &n);
		REQUIRE(last == NULL ||
		    (n > 0 && last >= line && last + n <= strchr(line, '\0') &&
			memchr(last, ',', n) == NULL));
		before = client;
		forwarded_step(&w, line);
		check_client(&client);
		REQUIRE(forwarded_is_proxy(proxies, &before) ||
		    memcmp(&before, &client, sizeof(client)) == 0);
		REQUIRE(w.hops <= FORWARDED_HOPS_MAX + 1);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct forwarded_proxies proxies;
	AUTO(auto_free) char *text = xstrndup((const char *)data, size);
	char *rest = fuzz_cut_line(text);
	char *list[2] = {text, NULL};
	struct err e;

	if (forwarded_parse_proxies(list, &proxies, &e) != 0)
		REQUIRE(e.msg[0] != '\0');
	else
		walk(&proxies, rest);
	return 0;
}
