#include "images/agent/left_answer.h"

#include <errno.h>

static void
send_answer(struct mux *mux, uint32_t chan, const struct buf *b)
{
	const struct frame_data m = {
	    .chan = chan, .bytes = {.p = buf_data(b), .n = buf_len(b)}};

	uplink_put(mux->uplink, frame_put_data(&mux->uplink->out, &m));
	mux_refuse(mux, chan, 0, "");
	uplink_urgent(mux->uplink);
}

/* How many were killed; false: there is no such process. */
static bool
do_kill(struct remnants *ls, const struct frame_open_left *m, uint32_t *killed)
{
	(void)remnants_count(ls); /* look first */
	if (m->process == 0) {
		*killed = remnants_kill_run(ls, &m->run, LEFTLIST_KILLED);
		return true;
	}
	*killed = remnants_kill_one(ls, &m->run, m->process);
	return *killed > 0;
}

int
left_answer_on_open(struct mux *mux, struct remnants *ls,
    const struct frame_open_left *m, struct err *e)
{
	static struct leftlist l;
	uint32_t killed = 0;
	struct buf b;

	if (mux_claim(mux, m->chan, e) != 0)
		return ERR_PROTO;
	if (m->limit < LEFTLIST_BYTES_MAX) {
		mux_refuse(mux, m->chan, EINVAL, "no room for an answer");
		return 0;
	}
	if (m->action == FRAME_LEFT_ACTION_KILL && !do_kill(ls, m, &killed)) {
		mux_refuse(mux, m->chan, ESRCH, "no such process");
		return 0;
	}
	remnants_list(ls, &m->run, &l);
	l.killed = killed;
	buf_init(&b, LEFTLIST_BYTES_MAX);
	leftlist_encode(&l, &b);
	send_answer(mux, m->chan, &b);
	buf_clear(&b);
	return 0;
}
