#include "images/agent/mux.h"

#include "common/utf8.h"

void
mux_init(struct mux *m, struct uplink *uplink)
{
	memset(m, 0, sizeof(*m));
	m->uplink = uplink;
}

/* ---- numbers */

int
mux_claim(struct mux *m, uint32_t number, struct err *e)
{
	if (number <= m->last)
		return err_set(
		    e, ERR_PROTO, "channel %u after %u", number, m->last);
	m->last = number;
	return 0;
}

void
mux_add(struct mux *m, struct chan *c, uint32_t number,
    const struct chan_ops *ops, void *arg)
{
	c->arg = arg;
	c->number = number;
	c->ops = ops;
	hashmap_put(&m->chans, &c->by_number, hashmap_key_u64(number));
}

/* 1: *c is open; 0: it was. */
static int
mux_find(struct mux *m, uint32_t number, struct chan **c, struct err *e)
{
	*c = HASH_OBJECT(
	    hashmap_get_u64(&m->chans, number), struct chan, by_number);
	if (*c != NULL)
		return 1;
	if (number == 0 || number > m->last)
		return err_set(e, ERR_PROTO, "channel %u never was", number);
	return 0;
}

/* ---- ends */

static void
mux_remove(struct mux *m, struct chan *c)
{
	hashmap_del(&m->chans, &c->by_number);
	c->number = 0;
}

void
mux_refuse(struct mux *m, uint32_t number, int code, const char *text)
{
	char cut[FRAME_CLOSE_TEXT_MAX + 1];
	const struct frame_close f = {
	    .chan = number, .code = code, .text = cut};

	utf8_copy(cut, sizeof(cut), text);
	uplink_put(m->uplink, frame_put_close(&m->uplink->out, &f));
	uplink_urgent(m->uplink);
}

void
mux_close(struct mux *m, struct chan *c, int code, const char *text)
{
	uint32_t number = c->number;

	if (number == 0)
		return;
	mux_remove(m, c);
	mux_refuse(m, number, code, text);
}

void
mux_on_lost(struct mux *m)
{
	struct hash_entry *en;

	while ((en = hashmap_next(&m->chans, NULL)) != NULL) {
		struct chan *c = HASH_OF(en, struct chan, by_number);

		mux_remove(m, c);
		c->ops->on_gone(c, CHAN_LOST);
	}
	m->last = 0;
}

int
mux_on_close(struct mux *m, const struct frame_close *f, struct err *e)
{
	struct chan *c;
	int rc = mux_find(m, f->chan, &c, e);

	if (rc <= 0)
		return rc;
	mux_remove(m, c);
	c->ops->on_gone(c, CHAN_CLOSED);
	return 0;
}

/* ---- what comes for an open one */

static int
not_this_kind(const struct chan *c, struct err *e)
{
	return err_set(
	    e, ERR_PROTO, "channel %u has no such stream", c->number);
}

int
mux_on_data(struct mux *m, const struct frame_data *f, struct err *e)
{
	struct chan *c;
	int rc = mux_find(m, f->chan, &c, e);

	if (rc <= 0)
		return rc;
	return c->ops->on_data == NULL ? not_this_kind(c, e) :
					 c->ops->on_data(c, f, e);
}

int
mux_on_credit(struct mux *m, const struct frame_credit *f, struct err *e)
{
	struct chan *c;
	int rc = mux_find(m, f->chan, &c, e);

	if (rc <= 0)
		return rc;
	return c->ops->on_credit == NULL ? not_this_kind(c, e) :
					   c->ops->on_credit(c, f, e);
}

int
mux_on_cancel(struct mux *m, const struct frame_cancel *f, struct err *e)
{
	struct chan *c;
	int rc = mux_find(m, f->chan, &c, e);

	if (rc <= 0)
		return rc;
	return c->ops->on_cancel == NULL ? not_this_kind(c, e) :
					   c->ops->on_cancel(c, f, e);
}

int
mux_on_stream_end(
    struct mux *m, const struct frame_stream_end *f, struct err *e)
{
	struct chan *c;
	int rc = mux_find(m, f->chan, &c, e);

	if (rc <= 0)
		return rc;
	return c->ops->on_stream_end == NULL ? not_this_kind(c, e) :
					       c->ops->on_stream_end(c, f, e);
}
