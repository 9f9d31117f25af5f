#include "supervisor/stdio/sse_reader.h"

#include <stdio.h>

static const char mark[] = "\xef\xbb\xbf"; /* of byte order, before the first */

void
sse_init(struct sse_reader *s, size_t max,
    void (*on_event)(const char *data, size_t n, void *arg), void *arg)
{
	memset(s, 0, sizeof(*s));
	s->on_event = on_event;
	s->arg = arg;
	s->retry_ms = -1;
	buf_init(&s->line, max);
	buf_init(&s->data, max);
}

void
sse_clear(struct sse_reader *s)
{
	buf_clear(&s->line);
	buf_clear(&s->data);
}

static void
drop_event(struct sse_reader *s)
{
	buf_clear(&s->data);
	s->has_data = false;
	s->type[0] = '\0';
	memcpy(s->id, s->last_id, sizeof(s->id));
}

void
sse_begin(struct sse_reader *s)
{
	buf_clear(&s->line);
	drop_event(s);
	s->after_cr = false;
	s->has_begun = false;
}

/* ---- fields */

/* It is sent back in a header. */
static void
take_id(struct sse_reader *s, const char *value, size_t n)
{
	if (n > SSE_ID_MAX)
		return;
	for (size_t i = 0; i < n; i++)
		if (value[i] >= '\0' && value[i] < ' ')
			return;
	memcpy(s->id, value, n);
	s->id[n] = '\0';
}

static void
take_retry(struct sse_reader *s, const char *value, size_t n)
{
	int64_t ms = 0;

	for (size_t i = 0; i < n; i++) {
		if (value[i] < '0' || value[i] > '9')
			return;
		if (ms <= SSE_RETRY_MAX_MS)
			ms = ms * 10 + (value[i] - '0');
	}
	if (n > 0)
		s->retry_ms = ms > SSE_RETRY_MAX_MS ? SSE_RETRY_MAX_MS : ms;
}

static int
take_data(struct sse_reader *s, const char *value, size_t n)
{
	if ((s->has_data && buf_append(&s->data, "\n", 1) != 0) ||
	    buf_append(&s->data, value, n) != 0)
		return -1;
	s->has_data = true;
	return 0;
}

static bool
is_named(const char *name, size_t n, const char *want)
{
	return n == strlen(want) && memcmp(name, want, n) == 0;
}

static int
take_field(struct sse_reader *s, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);
	size_t n = colon != NULL ? (size_t)(colon - line) : len;
	const char *value = colon != NULL ? colon + 1 : line + len;
	size_t value_len = (size_t)(line + len - value);

	if (value_len > 0 && value[0] == ' ') {
		value++;
		value_len--;
	}
	if (is_named(line, n, "data"))
		return take_data(s, value, value_len);
	if (is_named(line, n, "id"))
		take_id(s, value, value_len);
	else if (is_named(line, n, "retry"))
		take_retry(s, value, value_len);
	else if (is_named(line, n, "event"))
		(void)snprintf(s->type, sizeof(s->type), "%.*s",
		    (int)(value_len > SSE_TYPE_MAX ? SSE_TYPE_MAX : value_len),
		    value);
	return 0; /* a comment, or unknown */
}

/* ---- events */

static void
end_event(struct sse_reader *s)
{
	memcpy(s->last_id, s->id, sizeof(s->last_id));
	if (buf_len(&s->data) > 0 &&
	    (s->type[0] == '\0' || strcmp(s->type, "message") == 0))
		s->on_event((const char *)buf_data(&s->data), buf_len(&s->data),
		    s->arg);
	drop_event(s);
}

static int
end_line(struct sse_reader *s)
{
	const char *p = (const char *)buf_data(&s->line);
	size_t n = buf_len(&s->line);
	int rc = 0;

	if (!s->has_begun && n >= strlen(mark) &&
	    memcmp(p, mark, strlen(mark)) == 0) {
		p += strlen(mark);
		n -= strlen(mark);
	}
	s->has_begun = true;
	if (n == 0)
		end_event(s);
	else
		rc = take_field(s, p, n);
	buf_consume(&s->line, buf_len(&s->line));
	return rc;
}

static size_t
line_length(const char *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] != '\n' && p[i] != '\r')
		i++;
	return i;
}

static int
too_long(const struct sse_reader *s, struct err *e)
{
	return err_set(
	    e, ERR_LIMIT, "an event of more than %zu bytes", s->data.max);
}

int
sse_feed(struct sse_reader *s, const char *p, size_t n, struct err *e)
{
	while (n > 0) {
		size_t len = 0;

		if (!s->after_cr || p[0] != '\n') {
			len = line_length(p, n);
			if (buf_append(&s->line, p, len) != 0)
				return too_long(s, e);
			s->after_cr = len < n && p[len] == '\r';
			if (len < n && end_line(s) != 0)
				return too_long(s, e);
		} else {
			s->after_cr = false;
		}
		len += len < n ? 1 : 0; /* what ends the line */
		p += len;
		n -= len;
	}
	return 0;
}
