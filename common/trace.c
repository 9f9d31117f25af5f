#include "common/trace.h"

#include <stdio.h>

#include "common/exit.h"
#include "common/hex.h"
#include "common/random.h"
#include "common/log.h"

#define VERSION_LEN 2
#define TRACE_AT (VERSION_LEN + 1)
#define SPAN_AT (TRACE_AT + TRACE_ID_LEN + 1)
#define FLAGS_AT (SPAN_AT + TRACE_SPAN_LEN + 1)

/* Lower case only. */
static bool
is_hex(const char *s, size_t n)
{
	return strspn(s, "0123456789abcdef") >= n;
}

static bool
is_zero(const char *s, size_t n)
{
	return strspn(s, "0") >= n;
}

/* Trace Context, section 3.2.2: all zeros is nobody. */
static bool
is_id(const char *s, size_t n)
{
	return is_hex(s, n) && !is_zero(s, n);
}

static bool
is_good(const char *s)
{
	size_t n = strnlen(s, TRACE_PARENT_LEN + 1);

	if (n < TRACE_PARENT_LEN || !is_hex(s, VERSION_LEN) ||
	    strncmp(s, "ff", VERSION_LEN) == 0)
		return false;
	if (n > TRACE_PARENT_LEN &&
	    (strncmp(s, "00", VERSION_LEN) == 0 || s[TRACE_PARENT_LEN] != '-'))
		return false;
	return s[TRACE_AT - 1] == '-' && s[SPAN_AT - 1] == '-' &&
	    s[FLAGS_AT - 1] == '-' && is_id(s + TRACE_AT, TRACE_ID_LEN) &&
	    is_id(s + SPAN_AT, TRACE_SPAN_LEN) && is_hex(s + FLAGS_AT, 2);
}

static void
make_id(char *out, size_t digits)
{
	uint8_t random[TRACE_ID_LEN / 2];

	do {
		random_fill(random, digits / 2);
		hex_encode(random, digits / 2, out);
	} while (is_zero(out, digits));
}

int
trace_continue(struct trace *t, const char *traceparent)
{
	if (traceparent == NULL || !is_good(traceparent))
		return -1;
	memcpy(t->id, traceparent + TRACE_AT, TRACE_ID_LEN);
	t->id[TRACE_ID_LEN] = '\0';
	memcpy(t->parent, traceparent + SPAN_AT, TRACE_SPAN_LEN);
	t->parent[TRACE_SPAN_LEN] = '\0';
	t->is_sampled = (hex_value(traceparent[FLAGS_AT + 1]) & 1) != 0;
	make_id(t->span, TRACE_SPAN_LEN);
	return 0;
}

void
trace_begin(struct trace *t)
{
	make_id(t->id, TRACE_ID_LEN);
	make_id(t->span, TRACE_SPAN_LEN);
	t->parent[0] = '\0';
	t->is_sampled = true;
}

void
trace_parent(const struct trace *t, char out[TRACE_PARENT_LEN + 1])
{
	(void)snprintf(out, TRACE_PARENT_LEN + 1, "00-%s-%s-%s", t->id, t->span,
	    t->is_sampled ? "01" : "00");
}
