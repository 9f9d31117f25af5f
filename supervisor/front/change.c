#include "supervisor/front/change.h"

#include "common/xmalloc.h"
#include "supervisor/front/etag.h"
#include "supervisor/front/scope.h"

struct change *
change_new(const struct front *f, struct http_exchange *x)
{
	struct change *c = xcalloc(1, sizeof(*c));

	c->x = x;
	c->acts = core_acts(f->core);
	c->pending = 1; /* until change_answer */
	http_hold(x, NULL, NULL);
	return c;
}

static void
fail(const struct change *c)
{
	json_decref(c->answer);
	if (c->is_repeatable)
		http_error(c->x, 500, "not_on_disk",
		    "it holds, but not beyond a restart: set it again: %s",
		    c->why.msg);
	else
		http_error(c->x, 500, "not_on_disk",
		    "it holds, but not beyond a restart yet: %s", c->why.msg);
}

static void
step(struct change *c)
{
	if (--c->pending > 0)
		return;
	if (c->rc != 0) {
		fail(c);
	} else {
		if (c->shows == CHANGE_SHOWS_IT)
			etag_add(c->x, c->answer);
		if (c->location[0] != '\0')
			http_add_header(c->x, "Location", c->location);
		http_reply_json(c->x, c->status, c->answer);
	}
	free(c);
}

void
change_on_disk(int rc, const struct err *why, void *arg)
{
	struct change *c = arg;

	if (rc != 0 && c->rc == 0) {
		c->rc = rc;
		c->why = *why;
	}
	step(c);
}

void *
change_part(struct change *c)
{
	c->pending++;
	return c;
}

void
change_tell(struct change *c, const char *what, const char *tenant,
    const char *subject, const char *detail)
{
	char client[NETADDR_TEXT_MAX];
	struct act act = scope_act(c->x, what, client);

	act.tenant = tenant;
	act.subject = subject;
	act.detail = detail;
	acts_tell(c->acts, &act, change_on_disk, change_part(c));
}

void
change_answer(
    struct change *c, int status, json_t *answer, enum change_shows shows)
{
	c->status = status;
	c->answer = answer;
	c->shows = shows;
	step(c);
}

void
change_refuse(struct change *c, const struct err *e)
{
	struct http_exchange *x = c->x;

	free(c);
	http_error_from(x, e->code, e);
}
