#include "supervisor/tools/progress.h"

#include "common/buf.h"
#include "common/js.h"
#include "common/timer.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/core/bus.h"
#include "supervisor/core/run.h"

#define TEXT_MAX (16u << 10) /* of one notification, also as JSON */
#define TEXT_COST 8          /* a byte is at most so many as JSON */

struct progress {
	struct run *run;
	struct call *call;
	struct bus_member member;
	struct timer *timer;
	struct log_request *request;
	uint64_t (*told)[2]; /* bytes of each command's stdout and stderr */
	bool is_due;         /* it grew while the last digest was made */
};

static void
add_text(struct buf *b, const uint8_t *p, size_t n)
{
	size_t at = buf_len(b);

	if (n > buf_room(b)) {
		p += n - buf_room(b);
		n = buf_room(b);
	}
	if (buf_append(b, p, n) != 0)
		return;
	for (; at < buf_len(b); at++) /* a text ends at its NUL */
		if (buf_data(b)[at] == '\0')
			buf_data(b)[at] = ' ';
}

/* What a stream has beyond from, as far as it is at hand: its head, its tail,
 * and how many bytes between them are not. */
static void
add_stream(struct buf *b, const struct log_stream *s, uint64_t from)
{
	uint64_t head = buf_len(&s->head),
		 tail_at = s->bytes - buf_len(&s->tail);
	uint64_t skip = from > tail_at ? from - tail_at : 0;

	if (from >= s->bytes)
		return;
	if (from < head)
		add_text(b, buf_data(&s->head) + from, (size_t)(head - from));
	if (tail_at > head && from < tail_at)
		(void)buf_printf(b, "\n[... %llu bytes left out ...]\n",
		    (unsigned long long)(tail_at -
			(from > head ? from : head)));
	if (skip < buf_len(&s->tail))
		add_text(b, buf_data(&s->tail) + skip,
		    (size_t)(buf_len(&s->tail) - skip));
}

/* What came last is what is wanted. */
static void
cut_front(struct buf *b)
{
	const size_t n = TEXT_MAX / TEXT_COST;

	if (buf_len(b) <= n ||
	    js_bytes_cost(buf_data(b), buf_len(b)) <= TEXT_MAX)
		return;
	buf_consume(b, buf_len(b) - n);
	buf_consume(b, utf8_broken_start_len(buf_data(b), buf_len(b)));
}

static uint64_t
add_new(struct progress *p, const struct log_digest *d, struct buf *b)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < d->ncommands; i++)
		for (unsigned int k = 0; k < 2; k++) {
			const struct log_stream *s = &d->commands[i].out[k];

			add_stream(b, s, p->told[i][k]);
			p->told[i][k] = s->bytes;
			total += s->bytes;
		}
	return total;
}

static void
digest_cb(int rc, const struct log_digest *d, const struct err *why, void *arg)
{
	struct progress *p = arg;
	struct call_progress told;
	struct buf text;

	(void)why;
	p->request = NULL;
	if (rc != 0)
		return;
	buf_init(&text, TEXT_MAX);
	told.done = add_new(p, d, &text);
	cut_front(&text);
	if (buf_len(&text) > 0) {
		AUTO(auto_free)
		char *copy =
		    xstrndup((const char *)buf_data(&text), buf_len(&text));

		told.text = copy;
		call_progress(p->call, &told);
	}
	buf_clear(&text);
	if (p->is_due)
		timer_set_ms(p->timer, PROGRESS_EVERY_MS);
}

static void
look(struct progress *p)
{
	p->is_due = false;
	log_view_digest(
	    run_view(p->run), p->run->length, digest_cb, p, &p->request);
}

static void
timer_cb(void *arg)
{
	look(arg);
}

static void
on_bus(const struct bus_event *ev, void *arg)
{
	struct progress *p = arg;

	if (ev->kind != BUS_RUN_GREW)
		return;
	p->is_due = true;
	if (p->request == NULL && !timer_is_set(p->timer))
		timer_set_ms(p->timer, PROGRESS_EVERY_MS);
}

struct progress *
progress_new(struct event_base *base, struct run *run, struct call *call)
{
	struct progress *p = xcalloc(1, sizeof(*p));

	p->run = run;
	p->call = call;
	p->told = xcalloc(run->row.ncommands, sizeof(*p->told));
	p->timer = timer_new(base, timer_cb, p);
	bus_join(&run->bus, &p->member, on_bus, p);
	return p;
}

void
progress_free(struct progress *p)
{
	if (p == NULL)
		return;
	bus_leave(&p->run->bus, &p->member);
	log_request_cancel(p->request);
	timer_free(p->timer);
	free(p->told);
	free(p);
}
