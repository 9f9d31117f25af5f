#include "images/agent/answers.h"

#include <errno.h>

#include "common/agent_ask.h"

/* Appends the answer to b, of at most ASK_ANSWER_MAX bytes; else an errno. */
typedef int (*answer_fn)(
    struct remnants *ls, struct span arguments, struct buf *b);

static void
put_left(
    struct remnants *ls, const struct uuid *run, uint32_t killed, struct buf *b)
{
	static struct leftlist l;

	remnants_list(ls, run, &l);
	l.killed = killed;
	leftlist_encode(&l, b);
}

static int
left_list(struct remnants *ls, struct span arguments, struct buf *b)
{
	struct leftlist_ask ask;

	if (leftlist_decode_ask(arguments, &ask, NULL) != 0)
		return EINVAL;
	put_left(ls, &ask.run, 0, b);
	return 0;
}

static int
left_kill(struct remnants *ls, struct span arguments, struct buf *b)
{
	struct leftlist_ask ask;
	uint32_t killed;

	if (leftlist_decode_ask(arguments, &ask, NULL) != 0)
		return EINVAL;
	(void)remnants_count(ls); /* look first */
	killed = ask.process == 0 ?
	    remnants_kill_run(ls, &ask.run, LEFTLIST_KILLED) :
	    remnants_kill_one(ls, &ask.run, ask.process);
	if (ask.process != 0 && killed == 0)
		return ESRCH;
	put_left(ls, &ask.run, killed, b);
	return 0;
}

static const answer_fn answers[ASK_KINDS] = {
    [ASK_LEFT_LIST] = left_list, [ASK_LEFT_KILL] = left_kill};

int
answers_on_open(struct mux *mux, struct remnants *ls,
    const struct frame_open_ask *m, struct err *e)
{
	struct frame_data data = {.chan = m->chan};
	struct buf b;
	int code;

	if (mux_claim(mux, m->chan, e) != 0)
		return ERR_PROTO;
	buf_init(&b, ASK_ANSWER_MAX);
	if (m->kind >= ASK_KINDS)
		code = ENOSYS;
	else if (m->limit < ASK_ANSWER_MAX)
		code = EINVAL;
	else
		code = answers[m->kind](ls, m->arguments, &b);
	if (code == 0 && buf_len(&b) > 0) {
		data.bytes = (struct span){buf_data(&b), buf_len(&b)};
		uplink_put(
		    mux->uplink, frame_put_data(&mux->uplink->out, &data));
	}
	mux_refuse(mux, m->chan, code, "");
	uplink_urgent(mux->uplink);
	buf_clear(&b);
	return 0;
}
