#include "images/agent/seqs.h"

#include "common/exit.h"
#include "common/log.h"

void
seqs_init(struct seqs *s, struct uplink *uplink, struct procs *procs)
{
	memset(s, 0, sizeof(*s));
	s->uplink = uplink;
	s->procs = procs;
	journal_init(&s->journal, seq_free);
}

/* ---- the link comes and goes */

uint32_t
seqs_kept(const struct seqs *s)
{
	return s->journal.nkept;
}

static void
hello_one(struct seqs *s, const struct journal_entry *en)
{
	const struct seq *q = en->seq;
	struct buf *b;
	size_t at;

	if (q == NULL)
		return;
	b = uplink_begin(s->uplink, FRAME_HELLO_RUN, &at);
	wire_put_uuid(b, &en->key);
	wire_put_u8(b, en->ended);
	wire_put_u64(b, q->log.ring.start);
	wire_put_u64(b, q->log.ring.end);
	uplink_end(s->uplink, at);
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

void
seqs_on_close(struct seqs *s)
{
	struct journal_entry *en;

	TAILQ_FOREACH (en, &s->journal.live, by_age)
		if (en->seq != NULL)
			en->seq->log.attached = false;
	TAILQ_FOREACH (en, &s->journal.ended, by_age)
		if (en->seq != NULL)
			en->seq->log.attached = false;
}

static void
send_known(
    struct seqs *s, const struct uuid *id, uint8_t fresh, uint64_t length)
{
	size_t at;
	struct buf *b = uplink_begin(s->uplink, FRAME_RUN_KNOWN, &at);

	wire_put_uuid(b, id);
	wire_put_u8(b, fresh);
	wire_put_u64(b, length);
	uplink_end(s->uplink, at);
}

static void
send_refused(struct seqs *s, const struct uuid *id, const char *why)
{
	size_t at;
	struct buf *b = uplink_begin(s->uplink, FRAME_RUN_REFUSED, &at);

	wire_put_uuid(b, id);
	wire_put_bytes(b, why, strnlen(why, SEQS_WHY_MAX));
	uplink_end(s->uplink, at);
	uplink_urgent(s->uplink);
}

/* ---- start and end */

/* Has it ended?  Then it goes to the journal's other list. */
static void
seqs_settle(struct seqs *s, struct journal_entry *en)
{
	if (en->ended || en->seq->state != SEQ_ENDED)
		return;
	seq_count_kept(en->seq, &s->kept_bytes);
	journal_end(&s->journal, en, en->seq->log.ring.end);
}

static void
start_fresh(struct seqs *s, const struct uuid *id, struct runspec *spec,
    uint64_t window)
{
	struct journal_entry *en;
	struct seq *q;
	struct err e;

	if (s->journal.nlive >= SEQS_LIVE_MAX) {
		send_refused(s, id, "too many runs in this sandbox");
		return;
	}
	if (s->kept_bytes >= SEQS_KEPT_BYTES) {
		send_refused(
		    s, id, "too much output of ended runs is not taken yet");
		return;
	}
	q = seq_new(id, spec, s->uplink, s->procs);
	en = journal_add(&s->journal, id, q);
	uplink_hold(s->uplink);
	send_known(s, id, 1, 0);
	if (outlog_attach(&q->log, 0, window, &e) != 0)
		fatal(EXIT_BUG, "new sequence: %s", e.msg);
	seq_start(q);
	seqs_settle(s, en);
}

/* A known key: go on sending its log from have. */
static void
attach_known(
    struct seqs *s, struct journal_entry *en, uint64_t have, uint64_t window)
{
	struct seq *q = en->seq;
	struct err e;

	if (q == NULL) {
		if (have == en->length)
			send_known(s, &en->key, 0, en->length);
		else
			send_refused(
			    s, &en->key, "the log was forgotten on request");
		return;
	}
	if (outlog_attach(&q->log, have, window, &e) != 0) {
		send_refused(s, &en->key, e.msg);
		return;
	}
	send_known(s, &en->key, 0, q->log.ring.end);
	uplink_drop(s->uplink, &q->log);
	uplink_kick(s->uplink, &q->log);
	uplink_urgent(s->uplink);
	seq_on_room(q);
	seqs_settle(s, en);
}

int
seqs_on_start(struct seqs *s, struct wire_in *in, struct err *e)
{
	struct journal_entry *en;
	struct runspec spec;
	const uint8_t *bytes;
	uint64_t have, window;
	struct uuid id;
	size_t n;

	wire_get_uuid(in, &id);
	have = wire_get_u64(in);
	window = wire_get_u64(in);
	bytes = wire_get_rest(in, &n);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	en = journal_find(&s->journal, &id);
	if (en != NULL) {
		attach_known(s, en, have, window);
		return 0;
	}
	if (have != 0) {
		/* It ran once, and this agent knows nothing of it: starting
		 * it again would be the second time. */
		send_refused(s, &id, "the run is not known here any more");
		return 0;
	}
	if (runspec_decode(bytes, n, &spec, e) != 0) {
		send_refused(s, &id, e->msg);
		return 0;
	}
	start_fresh(s, &id, &spec, window);
	runspec_clear(&spec);
	return 0;
}

int
seqs_on_ack(struct seqs *s, struct wire_in *in, struct err *e)
{
	struct journal_entry *en;
	uint64_t offset;
	struct uuid id;
	struct seq *q;

	wire_get_uuid(in, &id);
	offset = wire_get_u64(in);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	en = journal_find(&s->journal, &id);
	if (en == NULL || en->seq == NULL)
		return 0; /* crossed with its end */
	q = en->seq;
	if (outlog_ack(&q->log, offset, e) != 0)
		return ERR_PROTO;
	seq_release_if_taken(q);
	uplink_kick(s->uplink, &q->log);
	seq_on_room(q);
	seqs_settle(s, en);
	return 0;
}

int
seqs_on_cancel(struct seqs *s, struct wire_in *in, struct err *e)
{
	const struct journal_entry *en;
	struct uuid id;
	uint8_t reason;

	wire_get_uuid(in, &id);
	reason = wire_get_u8(in);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	if (reason <= RUNLOG_SIGNAL || reason > RUNLOG_INTERNAL)
		return err_set(e, ERR_PROTO, "cancel with reason %u", reason);
	en = journal_find(&s->journal, &id);
	if (en == NULL || en->seq == NULL)
		return 0;
	seq_cancel(en->seq, (enum runlog_reason)reason);
	return 0;
}

int
seqs_on_forget(struct seqs *s, struct wire_in *in, struct err *e)
{
	struct journal_entry *en;
	struct uuid id;
	struct seq *q;

	wire_get_uuid(in, &id);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	en = journal_find(&s->journal, &id);
	if (en == NULL || !en->ended)
		return 0; /* a live run cannot be forgotten: cancel it first */
	q = journal_forget(&s->journal, en);
	if (q != NULL)
		seq_free(q);
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

bool
seqs_is_busy(const struct seqs *s)
{
	const struct journal_entry *en;

	TAILQ_FOREACH (en, &s->journal.live, by_age)
		if (en->seq->state == SEQ_CLEANING)
			return true;
	return false;
}
