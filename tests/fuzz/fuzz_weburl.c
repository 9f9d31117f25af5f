/* fuzz_weburl.c - a URL of a webhook, as a tenant gives it: what is taken has
 * one reading, and put together again from its parts is taken again. */
#include "common/weburl.h"
#include "tests/fuzz/fuzz.h"

static void
check(const char *text, const struct weburl *u)
{
	const char *at = strstr(text, "://") + 3;
	size_t n = strcspn(at, "/?");
	struct weburl again;
	char *short_form;

	REQUIRE(strchr(text, '@') == NULL || strchr(text, '@') >= at + n);
	REQUIRE(strpbrk(text, " \t\r\n\\#") == NULL);
	REQUIRE(u->host[0] != '\0' && strlen(u->host) <= WEBURL_HOST_MAX);
	REQUIRE(strpbrk(u->host, "/?#@[]%\\ABCXYZ") == NULL);
	REQUIRE(u->port == 80 || u->port == 443 ||
	    (u->port >= 1024 && u->port <= 65535));
	short_form = xasprintf(
	    strchr(u->host, ':') != NULL ? "%s://[%s]:%u%s" : "%s://%s:%u%s",
	    u->is_https ? "https" : "http", u->host, u->port, at + n);
	if (strlen(short_form) <= WEBURL_MAX) {
		REQUIRE(weburl_parse(short_form, &again, NULL) == 0);
		REQUIRE(strcmp(again.host, u->host) == 0);
		REQUIRE(again.port == u->port);
		REQUIRE(again.is_https == u->is_https);
	}
	free(short_form);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) char *text = xstrndup((const char *)data, size);
	struct weburl u;
	struct err e = {0};

	if (weburl_parse(text, &u, &e) == 0)
		check(text, &u);
	else
		REQUIRE(e.msg[0] != '\0');
	return 0;
}
