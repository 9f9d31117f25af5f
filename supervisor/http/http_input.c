/*
 * http_input.c - requests that are not whole, all of them together
 *
 * What came of a request counts until a handler has it, also the chunks of a
 * body that evhttp has put aside.  Beyond HTTP_INPUT_TOTAL_MAX the request that
 * is under way longest gives way, of those that have more than HTTP_INPUT_FAIR:
 * who sends without end loses to who has only just come.
 */
#include "supervisor/http/http_int.h"

void
http_input_count(struct http_conn *c, size_t n)
{
	c->server->input_bytes += n;
	c->server->input_bytes -= c->input_bytes;
	c->input_bytes = n;
}

static struct http_conn *
longest(const struct http_server *s)
{
	struct http_conn *c, *found = NULL;

	TAILQ_FOREACH (c, &s->conns, link)
		if (c->input_bytes > HTTP_INPUT_FAIR &&
		    c->state <= HTTP_CONN_READING &&
		    (found == NULL ||
			c->request_since_ms < found->request_since_ms))
			found = c;
	return found;
}

struct http_conn *
http_input_take_excess(struct http_server *s)
{
	struct http_conn *c = NULL;

	if (s->input_bytes > HTTP_INPUT_TOTAL_MAX)
		c = longest(s);
	if (c != NULL)
		http_input_count(c, 0);
	return c;
}
