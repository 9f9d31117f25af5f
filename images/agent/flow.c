#include "images/agent/flow.h"

void
flow_init(struct flow *f, uint8_t stream, size_t max)
{
	memset(f, 0, sizeof(*f));
	f->stream = stream;
	ring_init(&f->ring, max);
}

void
flow_clear(struct flow *f)
{
	ring_clear(&f->ring);
}

int
flow_open(
    struct flow *f, uint32_t chan, uint64_t from, uint64_t limit, struct err *e)
{
	if (from < f->ring.start)
		return err_set(e, ERR_NOTFOUND,
		    "the log is kept from byte %llu on, not from %llu",
		    (unsigned long long)f->ring.start,
		    (unsigned long long)from);
	if (from > f->ring.end)
		return err_set(e, ERR_NOTFOUND,
		    "the log ends at byte %llu, before %llu",
		    (unsigned long long)f->ring.end, (unsigned long long)from);
	ring_release(&f->ring, from);
	credit_open(&f->credit, from, limit);
	f->chan = chan;
	return 0;
}

void
flow_close(struct flow *f)
{
	f->chan = 0;
}

int
flow_grant(struct flow *f, uint64_t taken, uint64_t limit, struct err *e)
{
	if (credit_grant(&f->credit, taken, limit, e) != 0)
		return ERR_PROTO;
	ring_release(&f->ring, f->credit.taken);
	return 0;
}

size_t
flow_sendable(const struct flow *f)
{
	uint64_t n = credit_left(&f->credit);
	uint64_t have = f->ring.end - f->credit.sent;

	if (f->chan == 0)
		return 0;
	return (size_t)(n < have ? n : have);
}
