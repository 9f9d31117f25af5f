#include "common/credit.h"

void
credit_open(struct credit *c, uint64_t from, uint64_t limit)
{
	c->sent = from;
	c->taken = from;
	c->limit = limit;
}

int
credit_grant(struct credit *c, uint64_t taken, uint64_t limit, struct err *e)
{
	if (taken > c->sent)
		return err_set(e, ERR_PROTO, "taken up to %llu, sent %llu",
		    (unsigned long long)taken, (unsigned long long)c->sent);
	if (taken > c->taken)
		c->taken = taken;
	if (limit > c->limit)
		c->limit = limit;
	return 0;
}

void
grant_open(struct grant *g, uint64_t from, uint64_t limit)
{
	g->got = from;
	g->limit = limit;
}

int
grant_take(struct grant *g, uint64_t offset, uint64_t n, struct err *e)
{
	if (offset != g->got)
		return err_set(e, ERR_PROTO, "offset %llu, want %llu",
		    (unsigned long long)offset, (unsigned long long)g->got);
	if (n == 0)
		return err_set(e, ERR_PROTO, "nothing at offset %llu",
		    (unsigned long long)offset);
	if (g->limit < g->got || n > g->limit - g->got)
		return err_set(e, ERR_PROTO,
		    "%llu at offset %llu, credit ends at %llu",
		    (unsigned long long)n, (unsigned long long)offset,
		    (unsigned long long)g->limit);
	g->got += n;
	return 0;
}
