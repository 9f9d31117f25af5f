/*
 * http_waiting.c - how much waits for clients, over all connections
 *
 * Bytes in memory are counted as the buffers of connections say, bytes in
 * files (http_large.c) as long as anybody has the file.  The count of files
 * outlives the server: libevent frees what a connection had a turn later.
 */
#include "supervisor/http/http_int.h"

#include "common/xmalloc.h"

#define WAITING_FAIR (16u << 10) /* of an answer when memory is short */
#define WAITING_SMALL (1u << 10) /* an error is always sent */
#define WAITING_NO_FILE 4 /* times waiting_memory, where there are no files */

struct http_waiting *
http_waiting_new(void)
{
	struct http_waiting *w = xcalloc(1, sizeof(*w));

	w->refs = 1;
	return w;
}

void
http_waiting_unref(struct http_waiting *w)
{
	if (--w->refs == 0)
		free(w);
}

uint64_t
http_waiting_files(const struct http_server *s)
{
	return s->waiting->files;
}

bool
http_waiting_is_much(const struct http_server *s)
{
	return s->memory_bytes >= s->limits.waiting_memory;
}

enum http_room
http_waiting_room(const struct http_server *s, size_t n)
{
	const struct http_limits *l = &s->limits;
	bool much = s->memory_bytes + n > l->waiting_memory;

	if (n > HTTP_MEMORY_MAX || (much && n > WAITING_FAIR)) {
		if (s->large_fd != -1)
			return s->waiting->files + n > l->waiting_files ?
			    HTTP_ROOM_NONE :
			    HTTP_ROOM_FILE;
		return s->memory_bytes + n >
			WAITING_NO_FILE * (uint64_t)l->waiting_memory ?
		    HTTP_ROOM_NONE :
		    HTTP_ROOM_MEMORY;
	}
	return n > WAITING_SMALL &&
		s->memory_bytes + n > 2 * (uint64_t)l->waiting_memory ?
	    HTTP_ROOM_NONE :
	    HTTP_ROOM_MEMORY;
}

void
http_waiting_add_file(struct http_conn *c, uint64_t n)
{
	struct http_part *p = xcalloc(1, sizeof(*p));

	p->begin =
	    c->drained + evbuffer_get_length(bufferevent_get_output(c->bev));
	p->end = p->begin + n;
	STAILQ_INSERT_TAIL(&c->parts, p, link);
}

/* What of its files is still to be sent.  Of those that are not, nothing is
 * kept. */
static uint64_t
file_bytes(struct http_conn *c, size_t length)
{
	struct http_part *p;
	uint64_t sum = 0;

	while ((p = STAILQ_FIRST(&c->parts)) != NULL &&
	    (length == 0 || p->end <= c->drained)) {
		STAILQ_REMOVE_HEAD(&c->parts, link);
		free(p);
	}
	STAILQ_FOREACH (p, &c->parts, link)
		sum += p->end - (p->begin > c->drained ? p->begin : c->drained);
	return sum;
}

void
http_waiting_count(struct http_conn *c, size_t length)
{
	struct http_server *s = c->server;
	uint64_t files = file_bytes(c, length);
	uint64_t now = length > files ? length - files : 0;

	s->memory_bytes += now;
	s->memory_bytes -= c->memory_bytes;
	c->memory_bytes = now;
}
