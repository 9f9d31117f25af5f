/* fuzz_log_digest.c - a kept digest that is not ours, and a log that does not
 * belong to it: what is taken keeps its bounds and is encoded the same again.
 * libs: core */
#include "supervisor/core/log_digest.h"
#include "tests/fuzz/fuzz.h"

#define NCOMMANDS 2

static const struct log_caps caps = {{64, 32}, 16, 0, 100};

static void
check_stream(const struct log_stream *s, uint32_t head)
{
	if (buf_len(&s->head) > head || buf_len(&s->tail) > caps.tail ||
	    s->head_len > s->bytes)
		abort();
	if (s->head_len + buf_len(&s->tail) > s->bytes)
		abort();
	if (!s->absent && buf_len(&s->head) != s->head_len)
		abort();
}

static void
check_digest(const struct log_digest *d)
{
	if (d->heads > caps.heads)
		abort();
	for (uint32_t i = 0; i < d->ncommands; i++)
		for (unsigned int k = 0; k < 2; k++)
			check_stream(&d->commands[i].out[k], caps.head[k]);
}

/* Over a log of the exact size, for the sanitizer. */
static void
advance(struct log_digest *d, const uint8_t *p, size_t n)
{
	AUTO(auto_free) uint8_t *copy = xmemdup(p, n);
	const struct runlog_source log = {-1, copy};
	const struct log_work none = {NULL, 0};

	REQUIRE(log_digest_advance(d, &log, n, &none, NULL) == 0);
	check_digest(d);
	for (uint32_t i = 0; i < d->ncommands; i++)
		if (d->commands[i].out[0].absent ||
		    d->commands[i].out[1].absent)
			abort();
}

static void
recode(const struct log_digest *d, const uint8_t *log, size_t n)
{
	struct log_digest *again;
	struct buf one, two;

	buf_init(&one, LOG_DIGEST_MAX);
	buf_init(&two, LOG_DIGEST_MAX);
	log_digest_encode(d, &one);
	if (log_digest_decode(buf_data(&one), buf_len(&one), NCOMMANDS, &caps,
		&again, NULL) != 0)
		abort();
	advance(again, log, n);
	log_digest_encode(again, &two);
	if (buf_len(&one) != buf_len(&two) ||
	    memcmp(buf_data(&one), buf_data(&two), buf_len(&one)) != 0)
		abort();
	log_digest_free(again);
	buf_clear(&one);
	buf_clear(&two);
}

/* Two bytes: how long the digest is.  Then it, then the log. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct log_digest *d;
	size_t n;

	if (size < 2)
		return 0;
	n = (size_t)(data[0] | data[1] << 8);
	data += 2;
	size -= 2;
	if (n > size)
		n = size;
	if (log_digest_decode(data, n, NCOMMANDS, &caps, &d, NULL) != 0)
		d = log_digest_new(NCOMMANDS, &caps);
	check_digest(d);
	advance(d, data + n, size - n);
	log_digest_drop(d);
	advance(d, data + n, size - n);
	recode(d, data + n, size - n);
	log_digest_free(d);
	return 0;
}
