/*
 * http_head.c - what is wrong with a request's head, and with its chunks
 *
 * evhttp takes a bare LF for the end of a line, joins folded lines and skips
 * what it does not understand.  A proxy before us may see one request where we
 * see two (RFC 9112, sections 2.2 and 5.2), so each byte of a head passes here
 * on its way in, before evhttp parses it.
 *
 * evhttp answers all chunks that it does not like with one status.  The lines
 * of their sizes are read here as evhttp reads them (lines end with LF, empty
 * ones are skipped, a blank ends the number), so that the client is told what
 * was wrong.  Extensions of chunks (RFC 9112, section 7.1.1) are refused by
 * name: evhttp does not know them.
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

/* The number of a line that is whole. */
static void
end_size(struct http_chunks *k)
{
	long long size;
	char *end;

	if (k->n > 0 && k->line[k->n - 1] == '\r')
		k->n--;
	k->line[k->n] = '\0';
	if (k->n == 0)
		return;
	k->n = 0;
	size = strtoll(k->line, &end, 16);
	if (*end == ';' && end != k->line)
		k->fault = "a chunk has an extension (\";\" behind its size): "
			   "send chunks without";
	else if (end == k->line || (*end != '\0' && *end != ' ') || size < 0)
		k->fault = "the size of a chunk is not a hexadecimal number";
	else if (size == 0)
		k->done = true;
	else
		k->left = (uint64_t)size;
}

static void
chunk_byte(struct http_chunks *k, uint8_t c)
{
	if (c == '\n')
		end_size(k);
	else if (k->n == sizeof(k->line) - 1)
		k->fault = "the line of a chunk's size is too long";
	else
		k->line[k->n++] = (char)c;
}

static void
take_chunks(struct http_chunks *k, const uint8_t *p, size_t n)
{
	while (n > 0 && !k->done && k->fault == NULL) {
		size_t skip = k->left < n ? (size_t)k->left : n;

		k->left -= skip;
		if (skip == 0) {
			chunk_byte(k, *p);
			skip = 1;
		}
		p += skip;
		n -= skip;
	}
}

static void
take_bytes(struct http_head *h, const uint8_t *p, size_t n)
{
	for (; n > 0 && !h->done; n--)
		take_byte(h, *p++);
	if (n > 0 && h->is_chunked)
		take_chunks(&h->chunks, p, n);
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
			take_bytes(h, pieces[i].iov_base, len);
			took += len;
		}
		if (took == 0)
			return;
		n -= took;
	}
}
