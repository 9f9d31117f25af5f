/* fuzz_etag.c - lists of entity tags, as anybody may send them.  The first
 * line is a tag of ours without its quotes, the others are the list. */
#include "supervisor/front/etag.h"
#include "tests/fuzz/fuzz.h"

static void
check(const char *list, const char *tag)
{
	enum etag_found strong = etag_find(list, tag, ETAG_STRONG);
	enum etag_found weak = etag_find(list, tag, ETAG_WEAK);
	enum etag_found none = etag_find(list, NULL, ETAG_STRONG);
	AUTO(auto_free) char *more = xasprintf("%s, %s", list, tag);

	/* What is equal strongly is equal weakly; the form is one thing. */
	REQUIRE(strong != ETAG_YES || weak == ETAG_YES);
	REQUIRE((strong == ETAG_MALFORMED) == (weak == ETAG_MALFORMED));
	REQUIRE((strong == ETAG_MALFORMED) == (none == ETAG_MALFORMED));
	REQUIRE(none != ETAG_YES);
	/* A list that has it names it, or is "*". */
	REQUIRE(weak != ETAG_YES || strstr(list, tag) != NULL ||
	    strchr(list, '*') != NULL);
	if (strong != ETAG_MALFORMED && strchr(list, '*') == NULL)
		REQUIRE(etag_find(more, tag, ETAG_STRONG) == ETAG_YES);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) char *text = xstrndup((const char *)data, size);
	AUTO(auto_free) char *tag = NULL;
	char ours[ETAG_BYTES];
	char *list = fuzz_cut_line(text);

	if (list == NULL)
		return 0;
	etag_of_bytes(data, size, ours);
	check(list, ours);
	tag = xasprintf("\"%s\"", text);
	if (etag_find(tag, tag, ETAG_STRONG) == ETAG_YES)
		check(list, tag);
	return 0;
}
