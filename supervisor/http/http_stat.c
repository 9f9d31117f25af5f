/* http_stat.c - what a server counts, and the ids of its requests */
#include "supervisor/http/http_int.h"

#include <stdio.h>

void
http_server_stats(const struct http_server *s, struct http_stats *out)
{
	*out = s->stats;
	out->waiting_memory = s->memory_bytes;
	out->waiting_files = http_waiting_files(s);
	for (unsigned int i = 0; i < LIMITER_REASONS; i++)
		out->refused[i] =
		    limiter_refused(s->limiter, (enum limiter_reason)i);
}

void
http_stat_next_id(struct http_server *s, char out[HTTP_ID_MAX])
{
	(void)snprintf(
	    out, HTTP_ID_MAX, "%08x-%08x", s->id_start, s->id_next++);
}

void
http_stat_count(struct http_server *s, int status)
{
	s->stats.requests++;
	if (status >= 100 && status < 600)
		s->stats.by_class[status / 100]++;
}
