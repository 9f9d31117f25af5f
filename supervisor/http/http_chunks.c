/*
 * http_chunks.c - what is wrong with the chunks of a body, in words
 *
 * evhttp reads chunks and answers all that it does not like with one status.
 * Here the lines of their sizes are read as evhttp reads them (lines end with
 * LF, empty ones are skipped, a blank ends the number), so that the client is
 * told what it was.  RFC 9112, section 7.1.1, has extensions of chunks, which
 * evhttp does not know: they are refused by name.
 */
#include "supervisor/http/http_int.h"

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
take_byte(struct http_chunks *k, uint8_t c)
{
	if (c == '\n')
		end_size(k);
	else if (k->n == sizeof(k->line) - 1)
		k->fault = "the line of a chunk's size is too long";
	else
		k->line[k->n++] = (char)c;
}

void
http_chunks_take(struct http_chunks *k, const uint8_t *p, size_t n)
{
	while (n > 0 && !k->done && k->fault == NULL) {
		size_t skip = k->left < n ? (size_t)k->left : n;

		k->left -= skip;
		if (skip == 0) {
			take_byte(k, *p);
			skip = 1;
		}
		p += skip;
		n -= skip;
	}
}
