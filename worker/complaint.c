#include "worker/complaint.h"

#include "common/log.h"
#include "common/text.h"

int
complaint_add(struct complaint *c, const uint8_t *p, size_t n)
{
	if (c->n < sizeof(c->first) && n > 0)
		memcpy(c->first + c->n, p,
		    n < sizeof(c->first) - c->n ? n : sizeof(c->first) - c->n);
	c->n += n;
	return c->n > COMPLAINT_MAX ? -1 : 0;
}

void
complaint_log(const struct complaint *c)
{
	static struct log_limit limit;
	char text[sizeof(c->first)];

	if (c->n == 0)
		return;
	text_clean(text, sizeof(text), c->first,
	    c->n < sizeof(c->first) ? c->n : sizeof(c->first));
	log_warn_limited(
	    &limit, "exec: the program in the sandbox says: %s", text);
}
