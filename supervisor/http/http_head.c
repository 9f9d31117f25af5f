/*
 * http_head.c - lines of a request's head that others may read differently
 *
 * evhttp takes a bare LF for the end of a line, joins folded lines and skips
 * what it does not understand.  A proxy before us may see one request where we
 * see two (RFC 9112, sections 2.2 and 5.2), so each byte of a head passes here
 * on its way in, before evhttp parses it.
 */
#include "supervisor/http/http_int.h"

#include <ctype.h>

static const char chunked_line[] = "transfer-encoding:chunked";

#define NOT_LIKE SIZE_MAX

void
http_head_begin(struct http_head *h)
{
	*h = (struct http_head){0};
}

static void
head_fault(struct http_head *h, const char *text)
{
	if (h->fault == NULL)
		h->fault = text;
}

/* As evhttp decides it: the whole value is this word. */
static void
compare_byte(struct http_head *h, uint8_t c)
{
	if (h->like == NOT_LIKE || c == ' ' || c == '\t' || c == '\r')
		return;
	if (h->like < sizeof(chunked_line) - 1 &&
	    tolower(c) == chunked_line[h->like])
		h->like++;
	else
		h->like = NOT_LIKE;
}

/* LF: the line has n bytes, the CR before it counted. */
static void
end_line(struct http_head *h)
{
	if (h->last != '\r')
		head_fault(h, "a line of the head ends without CR");
	if (h->line > 0 && h->last == '\r')
		h->line--;
	if (h->line == 0 && h->nlines > 0)
		h->done = true;
	else if (h->line > 0)
		h->nlines++; /* empty ones before the first are skipped */
	if (h->like == sizeof(chunked_line) - 1)
		h->is_chunked = true;
	h->like = 0;
	h->line = 0;
}

static void
take_byte(struct http_head *h, uint8_t c)
{
	if (c == '\n') {
		end_line(h);
	} else {
		if (h->last == '\r' && h->line > 0)
			head_fault(h, "a CR within a line of the head");
		if (h->line == 0 && h->nlines > 0 && (c == ' ' || c == '\t'))
			head_fault(h, "a folded line in the head");
		if (c == '\0')
			head_fault(h, "a NUL in the head");
		compare_byte(h, c);
		h->line++;
	}
	h->last = c;
}

void
http_head_take(struct http_head *h, const uint8_t *p, size_t n)
{
	for (; n > 0 && !h->done; n--)
		take_byte(h, *p++);
	if (n > 0 && h->is_chunked)
		http_chunks_take(&h->chunks, p, n);
}

void
http_head_take_end(struct http_head *h, struct evbuffer *in, size_t n)
{
	struct evbuffer_iovec pieces[8];
	struct evbuffer_ptr at;
	int used;

	while (n > 0 && (!h->done || h->is_chunked)) {
		size_t start = evbuffer_get_length(in) - n, took = 0;

		if (evbuffer_ptr_set(in, &at, start, EVBUFFER_PTR_SET) != 0)
			return;
		used = evbuffer_peek(
		    in, (ev_ssize_t)n, &at, pieces, ARRAY_LEN(pieces));
		for (int i = 0; i < used && i < (int)ARRAY_LEN(pieces); i++) {
			size_t len = pieces[i].iov_len;

			if (len > n - took)
				len = n - took;
			http_head_take(h, pieces[i].iov_base, len);
			took += len;
		}
		if (took == 0)
			return;
		n -= took;
	}
}
