#include "supervisor/stdio/lines.h"

#include "common/exit.h"
#include "common/log.h"

void
lines_init(struct lines *l, size_t max, const struct lines_ops *ops, void *arg)
{
	memset(l, 0, sizeof(*l));
	l->ops = ops;
	l->arg = arg;
	l->max = max;
	buf_init(&l->held, max + 1); /* a carriage return may come, too */
}

void
lines_clear(struct lines *l)
{
	buf_clear(&l->held);
}

static bool
is_blank(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r')
			return false;
	return true;
}

static void
begin_long(struct lines *l)
{
	l->is_long = true;
	glimpse_init(&l->too_long);
	glimpse_feed(
	    &l->too_long, (const char *)buf_data(&l->held), buf_len(&l->held));
	buf_clear(&l->held);
}

/* A piece of a line, without its newline. */
static void
take_piece(struct lines *l, const char *p, size_t n)
{
	if (!l->is_long && buf_room(&l->held) < n)
		begin_long(l);
	if (l->is_long)
		glimpse_feed(&l->too_long, p, n);
	else if (buf_append(&l->held, p, n) != 0)
		fatal(EXIT_BUG, "no room for a line");
}

static void
give_line(struct lines *l, const char *p, size_t n)
{
	if (n > 0 && p[n - 1] == '\r')
		n--;
	if (n > l->max) {
		glimpse_init(&l->too_long);
		glimpse_feed(&l->too_long, p, n);
		l->ops->on_too_long(&l->too_long, l->arg);
	} else if (!is_blank(p, n)) {
		l->ops->on_line(p, n, l->arg);
	}
}

void
lines_end(struct lines *l)
{
	if (l->is_long)
		l->ops->on_too_long(&l->too_long, l->arg);
	else if (buf_len(&l->held) > 0)
		give_line(
		    l, (const char *)buf_data(&l->held), buf_len(&l->held));
	l->is_long = false;
	buf_clear(&l->held);
}

void
lines_feed(struct lines *l, const char *p, size_t n)
{
	const char *end;

	while (n > 0 && (end = memchr(p, '\n', n)) != NULL) {
		size_t len = (size_t)(end - p);

		if (!l->is_long && buf_len(&l->held) == 0) {
			give_line(l, p, len);
		} else {
			take_piece(l, p, len);
			lines_end(l);
		}
		p += len + 1;
		n -= len + 1;
	}
	take_piece(l, p, n);
}
