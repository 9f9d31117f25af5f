#include "supervisor/tools/progress_text.h"

#include "common/js.h"
#include "common/utf8.h"

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

static void
add_text(struct buf *b, const uint8_t *p, size_t n)
{
	size_t at = buf_len(b);

	(void)!utf8_append_repaired(b, p, n); /* it has no limit */
	for (; at < buf_len(b); at++)         /* a text ends at its NUL */
		if (buf_data(b)[at] == '\0')
			buf_data(b)[at] = ' ';
}

/* How many of n bytes at p go, so that the rest, from a character on, costs at
 * most *room as JSON; that is taken of it. */
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

static void
cut_part(struct news_part *part, size_t *room)
{
	size_t skip = skip_to_fit(part->p, part->n, room);

	part->p += skip;
	part->n -= skip;
	part->before += skip;
}

static void
add_part(struct buf *b, const struct news_part *part)
{
	if (part->before > 0) {
		end_line(b);
		add_left_out(b, part->before);
	}
	add_text(b, part->p, part->n);
}

/* What a stream has beyond from: of its head, and of its tail, which is cut
 * last. */
static void
add_stream(struct buf *b, const struct log_stream *s, uint64_t from)
{
	const size_t nhead = buf_len(&s->head), ntail = buf_len(&s->tail);
	const uint64_t tail_at = s->bytes - ntail;
	const size_t behind = from > nhead ? nhead : (size_t)from;
	const size_t skip = from > tail_at ? (size_t)(from - tail_at) : 0;
	struct news_part head = {
	    buf_data(&s->head) + behind, nhead - behind, 0};
	struct news_part tail = {buf_data(&s->tail) + skip, ntail - skip, 0};
	size_t room = PROGRESS_TEXT_MAX;

	if (from >= s->bytes)
		return;
	if (tail_at > nhead && from < tail_at)
		tail.before = tail_at - (from > nhead ? from : nhead);
	cut_part(&tail, &room);
	cut_part(&head, &room);
	if (head.n == 0) { /* then nothing stands between what is left out */
		tail.before += head.before;
		head.before = 0;
	}
	add_part(b, &head);
	add_part(b, &tail);
}

/* What came last is what is wanted.  What has been written to say what is left
 * out has room beside it. */
static void
take_end(struct buf *out, struct buf *all)
{
	size_t room = PROGRESS_TEXT_MAX + WORDS_MAX;
	size_t skip = skip_to_fit(buf_data(all), buf_len(all), &room);

	if (skip > 0)
		(void)buf_printf(
		    out, "[... what came before is left out ...]\n");
	(void)!buf_append(out, buf_data(all) + skip, buf_len(all) - skip);
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

			add_stream(&all, s, told[i][k]);
			told[i][k] = s->bytes;
			total += s->bytes;
		}
	take_end(out, &all);
	buf_clear(&all);
	return total;
}
