/* fuzz_lines.c - what a client writes, line by line, and what the bridge reads
 * of each */
#include "common/buf.h"
#include "supervisor/stdio/header.h"
#include "supervisor/stdio/lines.h"
#include "supervisor/stdio/message.h"
#include "tests/fuzz/fuzz.h"

#define MAX 512

/* A glimpse and a parser see the same id: an error with one answers what the
 * other has. */
static void
compare(const char *line, size_t n, struct message *m)
{
	AUTO(auto_free) char *error = NULL;
	struct glimpse g;

	glimpse_init(&g);
	glimpse_feed(&g, line, n);
	if (!glimpse_is_request(&g))
		return; /* its keys are escaped, or its id is long */
	error = message_error(g.id, MESSAGE_BROKEN, "x");
	REQUIRE(message_take_answer(m, error, strlen(error)) == 0);
	REQUIRE(m->nids == 0);
}

static void
check_name(const char *name)
{
	AUTO(auto_free) char *value = header_encode(name);

	REQUIRE(header_is_plain(value));
}

static void
line_cb(const char *line, size_t n, void *arg)
{
	struct message m;
	struct err e;

	(void)arg;
	REQUIRE(n > 0 && n <= MAX && memchr(line, '\n', n) == NULL);
	if (message_read(line, n, &m, &e) != 0)
		return;
	if (m.name != NULL)
		check_name(m.name);
	if (m.method != NULL)
		check_name(m.method);
	for (size_t i = 0; i < m.nids; i++)
		REQUIRE(message_has_id(&m, m.ids[i]));
	if (m.kind == MESSAGE_REQUEST)
		compare(line, n, &m);
	message_clear(&m);
}

static void
too_long_cb(const struct glimpse *what, void *arg)
{
	(void)arg;
	REQUIRE(strlen(what->id) <= GLIMPSE_ID_MAX);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct lines_ops ops = {line_cb, too_long_cb};
	struct lines l;
	size_t half = size / 2;

	lines_init(&l, MAX, &ops, NULL);
	lines_feed(&l, (const char *)data, half);
	lines_feed(&l, (const char *)data + half, size - half);
	lines_end(&l);
	lines_clear(&l);
	return 0;
}
