/* http_stat.c - what a server counts, and the ids of its requests */
#include "supervisor/http/http_int.h"

#include <endian.h>

#include "common/hex.h"

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
	const uint32_t start = htobe32(s->id_start), n = htobe32(s->id_next++);

	hex_encode(&start, sizeof(start), out);
	out[8] = '-';
	hex_encode(&n, sizeof(n), out + 9);
}

void
http_stat_count(struct http_server *s, int status)
{
	s->stats.requests++;
	if (status >= 100 && status < 600)
		s->stats.by_class[status / 100]++;
}
