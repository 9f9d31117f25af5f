/*
 * progress.c - what is new of a run's output, and when the call hears of it
 */
#include "supervisor/tools/progress.h"

#include "common/clock.h"
#include "common/js.h"
#include "common/timer.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/core/bus.h"
#include "supervisor/core/run.h"
#include "supervisor/tools/screen.h"
#include "supervisor/tools/view.h"

#define WORDS_MAX 128

static void
add_left_out(struct buf *b, uint64_t n)
{
	(void)buf_printf(
	    b, "[... %llu bytes left out ...]\n", (unsigned long long)n);
}

static void
end_line(struct buf *b)
{
	if (buf_len(b) > 0 && buf_data(b)[buf_len(b) - 1] != '\n')
		(void)buf_printf(b, "\n");
}

/* Bytes to skip at p, so that the rest begins with a character and costs at
 * most *room as JSON; the cost is taken from *room. */
static size_t
skip_to_fit(const uint8_t *p, size_t n, size_t *room)
{
	const bool is_lossy = !utf8_is_valid(p, n);
	size_t skip = n, cost;

	for (; skip > 0; skip--) {
		cost = js_byte_cost(p[skip - 1], is_lossy);
		if (cost > *room)
			break;
		*room -= cost;
	}
	return skip +
	    (skip > 0 ? utf8_broken_start_len(p + skip, n - skip) : 0);
}

struct news_part { /* of a stream, as far as it is at hand */
	const uint8_t *p;
	size_t n;
	uint64_t before; /* bytes that are left out before it */
};

static struct news_part
part_behind(const struct buf *b, size_t skip)
{
	if (skip >= buf_len(b))
		return (struct news_part){0};
	return (struct news_part){buf_data(b) + skip, buf_len(b) - skip, 0};
}

static void
cut_part(struct news_part *part, size_t *room)
{
	size_t skip = skip_to_fit(part->p, part->n, room);

	if (skip > 0)
		skip += screen_broken_start_len(part->p + skip, part->n - skip);
	else if (part->before > 0)
		skip = screen_broken_start_len(part->p, part->n);
	if (skip == 0)
		return;
	part->p += skip;
	part->n -= skip;
	part->before += skip;
}

/* Parts with nothing between them are one: raw is what came just before. */
static void
add_part(struct buf *b, struct buf *raw, const struct news_part *part)
{
	if (part->before > 0) {
		screen_show(b, buf_data(raw), buf_len(raw));
		buf_clear(raw);
		end_line(b);
		add_left_out(b, part->before);
	}
	(void)!buf_append(raw, part->p, part->n); /* it has no limit */
}

/*
 * What a stream has beyond from: of its head, and of its tail, which is cut
 * last.  Returns up to where it is told: a sequence that has begun is left for
 * the next time.
 */
static uint64_t
add_stream(struct buf *b, const struct log_stream *s, uint64_t from)
{
	const size_t nhead = buf_len(&s->head), ntail = buf_len(&s->tail);
	const uint64_t tail_at = s->bytes - ntail;
	const size_t behind = from > nhead ? nhead : (size_t)from;
	const size_t skip = from > tail_at ? (size_t)(from - tail_at) : 0;
	struct news_part head = part_behind(&s->head, behind);
	struct news_part tail = part_behind(&s->tail, skip);
	size_t room = PROGRESS_TEXT_MAX, begun;
	struct buf raw;

	if (tail_at > nhead && from < tail_at)
		tail.before = tail_at - (from > nhead ? from : nhead);
	cut_part(&tail, &room);
	cut_part(&head, &room);
	if (head.n == 0) { /* then nothing stands between what is left out */
		tail.before += head.before;
		head.before = 0;
	}
	buf_init(&raw, 0);
	add_part(b, &raw, &head);
	add_part(b, &raw, &tail);
	begun = screen_unfinished_len(buf_data(&raw), buf_len(&raw));
	screen_show(b, buf_data(&raw), buf_len(&raw) - begun);
	buf_clear(&raw);
	return s->bytes - begun;
}

/* Append the end of all; WORDS_MAX is for what says what is left out. */
static void
take_end(struct buf *out, struct buf *all)
{
	size_t room = PROGRESS_TEXT_MAX + WORDS_MAX;
	size_t skip = skip_to_fit(buf_data(all), buf_len(all), &room);

	if (skip > 0) {
		(void)buf_printf(
		    out, "[... what came before is left out ...]\n");
		buf_consume(all, skip);
	}
	(void)!buf_append(out, buf_data(all), buf_len(all));
}

uint64_t
progress_text_add(
    struct buf *out, const struct log_digest *d, uint64_t (*told)[2])
{
	uint64_t total = 0;
	struct buf all;

	buf_init(&all, 0);
	for (uint32_t i = 0; i < d->ncommands; i++)
		for (unsigned int k = 0; k < 2; k++) {
			const struct log_stream *s = &d->commands[i].out[k];

			if (told[i][k] < s->bytes)
				told[i][k] = add_stream(&all, s, told[i][k]);
			total += s->bytes;
		}
	take_end(out, &all);
	buf_clear(&all);
	return total;
}

/* ---- that the call goes on */

/* To the nearest: a timer may be early. */
static long long
seconds(uint64_t ms)
{
	return (long long)((ms + 500) / 1000);
}

static uint64_t
run_age_ms(const struct store_run *row)
{
	const int64_t now = clock_wall_ms();
	const int64_t since =
	    row->started_ms > 0 ? row->started_ms : row->created_ms;

	return now > since ? (uint64_t)(now - since) : 0;
}

void
progress_note_add(struct buf *out, const struct progress_quiet *q)
{
	const char *waits_for;

	if (q->row == NULL) {
		(void)buf_printf(
		    out, "waiting for %lld s", seconds(q->waited_ms));
	} else if (q->row->state == RUN_STATE_QUEUED) {
		waits_for = view_wait_word(q->waits);
		(void)buf_printf(out, "queued for %lld s%s%s",
		    seconds(run_age_ms(q->row)),
		    waits_for[0] != '\0' ? ", waits for " : "", waits_for);
	} else {
		(void)buf_printf(out,
		    "running for %lld s, nothing printed for %lld s",
		    seconds(run_age_ms(q->row)), seconds(q->silent_ms));
	}
}

/* ---- one call's */

struct progress {
	struct run *run; /* NULL: none */
	struct call *call;
	struct bus_member member;
	struct timer *timer;   /* to look */
	struct timer *silence; /* runs from one notification to the next */
	struct log_request *request;
	uint64_t (*told)[2]; /* bytes of each command's stdout and stderr */
	bool is_due;         /* it grew while the last digest was made */
	uint64_t done;       /* as it was told last */
	uint64_t began_ms, printed_ms; /* clock_mono_ms */
};

/* It must grow with each notification (MCP 2025-11-25, progress). */
static void
tell(struct progress *p, uint64_t done, const struct buf *text)
{
	AUTO(auto_free)
	char *copy = xstrndup((const char *)buf_data(text), buf_len(text));

	p->done = done > p->done ? done : p->done + 1;
	timer_set_ms(p->silence, PROGRESS_SILENCE_MS);
	call_progress(
	    p->call, &(struct call_progress){.done = p->done, .text = copy});
}

static void
silence_cb(void *arg)
{
	struct progress *p = arg;
	const uint64_t now = clock_mono_ms();
	struct buf text;

	buf_init(&text, 0);
	progress_note_add(&text,
	    &(struct progress_quiet){p->run == NULL ? NULL : &p->run->row,
		run_waits_for(p->run), now - p->began_ms, now - p->printed_ms});
	tell(p, p->done, &text);
	buf_clear(&text);
}

static void
digest_cb(int rc, const struct log_digest *d, const struct err *why, void *arg)
{
	struct progress *p = arg;
	struct buf text;
	uint64_t done;

	(void)why;
	p->request = NULL;
	if (rc != 0)
		return;
	buf_init(&text, 0); /* progress_text_add has a limit */
	done = progress_text_add(&text, d, p->told);
	if (buf_len(&text) > 0) {
		p->printed_ms = clock_mono_ms();
		tell(p, done, &text);
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
	p->began_ms = p->printed_ms = clock_mono_ms();
	p->silence = timer_new(base, silence_cb, p);
	timer_set_ms(p->silence, PROGRESS_FIRST_MS);
	if (run == NULL)
		return p;
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
	if (p->run != NULL)
		bus_leave(&p->run->bus, &p->member);
	log_request_cancel(p->request);
	timer_free(p->timer);
	timer_free(p->silence);
	free(p->told);
	free(p);
}
