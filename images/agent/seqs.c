#include "images/agent/seqs.h"

#include <errno.h>

#include "common/exit.h"
#include "common/log.h"
#include "images/agent/say.h"

static const struct chan_ops seq_chan_ops;

/* The journal is full, and this is the oldest. */
static void
drop_cb(struct seq *q)
{
	struct seqs *s = q->chan.arg;

	say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_RUN_DROPPED,
	    &q->log.run, "too many runs are not forgotten");
	mux_close(s->mux, &q->chan, ENOBUFS, "too many runs are not forgotten");
	seq_free(q);
}

void
seqs_init(struct seqs *s, struct mux *mux, struct procs *procs)
{
	memset(s, 0, sizeof(*s));
	s->mux = mux;
	s->procs = procs;
	journal_init(&s->journal, drop_cb);
}

/* ---- hello */

uint32_t
seqs_kept(const struct seqs *s)
{
	return s->journal.nkept;
}

static void
hello_one(struct seqs *s, const struct journal_entry *en)
{
	struct uplink *u = s->mux->uplink;
	const struct seq *q = en->seq;
	struct frame_hello_run m = {.run = en->key, .ended = en->ended};

	if (q == NULL)
		return;
	m.from = q->log.flow.ring.start;
	m.length = q->log.flow.ring.end;
	uplink_put(u, frame_put_hello_run(&u->out, &m));
}

void
seqs_hello(struct seqs *s)
{
	const struct journal_entry *en;

	TAILQ_FOREACH (en, &s->journal.live, by_age)
		hello_one(s, en);
	TAILQ_FOREACH (en, &s->journal.ended, by_age)
		hello_one(s, en);
}

/* ---- ends */

static void
seqs_forget(struct seqs *s, struct journal_entry *en)
{
	struct seq *q = journal_forget(&s->journal, en);

	if (q == NULL)
		return;
	mux_close(s->mux, &q->chan, 0, "");
	seq_free(q);
}

/* Moves an ended sequence to the journal's list of ended ones; an unwanted one
 * is forgotten. */
static void
seqs_settle(struct seqs *s, struct journal_entry *en)
{
	if (en->ended || en->seq->state != SEQ_ENDED)
		return;
	seq_count_kept(en->seq, &s->kept_bytes);
	journal_end(&s->journal, en, en->seq->log.flow.ring.end);
	if (en->seq->unwanted)
		seqs_forget(s, en);
}

/* ---- its channel */

static struct seq *
seq_of(struct chan *c)
{
	return HASH_OF(&c->by_number, struct seq, chan.by_number);
}

static int
on_credit(struct chan *c, const struct frame_credit *m, struct err *e)
{
	struct seqs *s = c->arg;
	struct seq *q = seq_of(c);

	if (m->stream != q->log.flow.stream)
		return err_set(e, ERR_PROTO, "stream %u", m->stream);
	if (flow_grant(&q->log.flow, m->taken, m->limit, e) != 0)
		return ERR_PROTO;
	seq_release_if_taken(q);
	uplink_kick(s->mux->uplink, &q->log.flow);
	seq_on_room(q);
	seqs_settle(s, journal_find(&s->journal, &q->log.run));
	return 0;
}

static int
on_cancel(struct chan *c, const struct frame_cancel *m, struct err *e)
{
	(void)e;
	seq_cancel(seq_of(c), (enum runlog_reason)m->reason, "");
	return 0;
}

static void
on_gone(struct chan *c, enum chan_gone how)
{
	struct seqs *s = c->arg;
	struct seq *q = seq_of(c);
	struct journal_entry *en = journal_find(&s->journal, &q->log.run);

	uplink_drop(s->mux->uplink, &q->log.flow);
	flow_close(&q->log.flow);
	if (how == CHAN_LOST)
		return;
	if (en->ended) {
		seqs_forget(s, en);
	} else {
		seq_unwant(q);
		seqs_settle(s, en);
	}
}

static const struct chan_ops seq_chan_ops = {
    .on_credit = on_credit, .on_cancel = on_cancel, .on_gone = on_gone};

/* ---- open */

static void
send_known(struct seqs *s, uint32_t chan, bool fresh, uint64_t length)
{
	struct uplink *u = s->mux->uplink;
	const struct frame_known m = {
	    .chan = chan, .fresh = fresh, .length = length};

	uplink_put(u, frame_put_known(&u->out, &m));
}

static void
start_fresh(struct seqs *s, const struct frame_open_sequence *m,
    struct runspec *spec, struct err *e)
{
	struct journal_entry *en;
	struct seq *q;

	if (s->journal.nlive >= SEQS_LIVE_MAX) {
		mux_refuse(
		    s->mux, m->chan, EAGAIN, "too many runs in this sandbox");
		return;
	}
	if (s->kept_bytes >= SEQS_KEPT_BYTES) {
		mux_refuse(s->mux, m->chan, ENOBUFS,
		    "too much output of ended runs is not taken yet");
		return;
	}
	q = seq_new(&m->run, spec, s->mux->uplink, s->procs);
	en = journal_add(&s->journal, &m->run, q);
	uplink_hold(s->mux->uplink);
	send_known(s, m->chan, true, 0);
	mux_add(s->mux, &q->chan, m->chan, &seq_chan_ops, s);
	if (flow_open(&q->log.flow, m->chan, 0, m->limit, e) != 0)
		fatal(EXIT_BUG, "new sequence: %s", e->msg);
	seq_start(q);
	seqs_settle(s, en);
}

/* A known key: go on sending its log from there. */
static void
open_known(struct seqs *s, struct journal_entry *en,
    const struct frame_open_sequence *m)
{
	struct uplink *u = s->mux->uplink;
	struct seq *q = en->seq;
	struct err e;

	if (q == NULL && m->from == en->length) {
		send_known(s, m->chan, false, en->length);
		mux_refuse(s->mux, m->chan, 0, "");
		return;
	}
	if (q == NULL || q->unwanted) {
		mux_refuse(s->mux, m->chan, ENOENT,
		    "the log was forgotten on request");
		return;
	}
	mux_close(s->mux, &q->chan, ECANCELED, "opened again");
	uplink_drop(u, &q->log.flow);
	if (flow_open(&q->log.flow, m->chan, m->from, m->limit, &e) != 0) {
		flow_close(&q->log.flow);
		mux_refuse(s->mux, m->chan, ENODATA, e.msg);
		return;
	}
	send_known(s, m->chan, false, q->log.flow.ring.end);
	mux_add(s->mux, &q->chan, m->chan, &seq_chan_ops, s);
	seq_release_if_taken(q);
	uplink_kick(u, &q->log.flow);
	uplink_urgent(u);
	seq_on_room(q);
	seqs_settle(s, en);
}

int
seqs_on_open(struct seqs *s, const struct frame_open_sequence *m, struct err *e)
{
	struct journal_entry *en;
	struct runspec spec;

	if (mux_claim(s->mux, m->chan, e) != 0)
		return ERR_PROTO;
	en = journal_find(&s->journal, &m->run);
	if (en != NULL) {
		open_known(s, en, m);
		return 0;
	}
	if (m->from != 0) {
		/* The worker has bytes of its log, so it ran once, but this
		 * agent does not know it: it may not run a second time. */
		mux_refuse(s->mux, m->chan, ENOENT,
		    "the run is not known here any more");
		return 0;
	}
	if (runspec_decode(m->spec.p, m->spec.n, &spec, e) != 0) {
		mux_refuse(s->mux, m->chan, EINVAL, e->msg);
		return 0;
	}
	start_fresh(s, m, &spec, e);
	runspec_clear(&spec);
	return 0;
}

/* ---- the loop */

void
seqs_tick(struct seqs *s)
{
	struct journal_entry *en, *next;

	for (en = TAILQ_FIRST(&s->journal.live); en != NULL; en = next) {
		next = TAILQ_NEXT(en, by_age);
		if (en->seq->state == SEQ_CLEANING)
			seq_clean(en->seq);
		seqs_settle(s, en);
	}
}

void
seqs_cancel_all(struct seqs *s, enum runlog_reason reason, const char *text)
{
	struct journal_entry *en;

	TAILQ_FOREACH (en, &s->journal.live, by_age)
		seq_cancel(en->seq, reason, text);
}

bool
seqs_is_busy(const struct seqs *s)
{
	const struct journal_entry *en;

	TAILQ_FOREACH (en, &s->journal.live, by_age)
		if (en->seq->state == SEQ_CLEANING)
			return true;
	return false;
}
