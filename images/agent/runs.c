#include "images/agent/runs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>

#include "common/log.h"

#define RUNS_REPORTS_PER_READ 16

static void
runs_report_cb(uint32_t events, void *arg)
{
	(void)events;
	runs_read_reports(arg);
}

int
runs_init(
    struct runs *rs, struct loop *loop, struct uplink *uplink, struct err *e)
{
	int fds[2];

	memset(rs, 0, sizeof(*rs));
	rs->loop = loop;
	rs->uplink = uplink;
	journal_init(&rs->journal, run_free);
	if (pipe2(fds, O_CLOEXEC) == -1)
		return err_set(e, ERR_SYS, "pipe: %s", strerror(errno));
	rs->report_fd = fds[0];
	if (dup3(fds[1], KEEPER_REPORT_FD, O_CLOEXEC) == -1)
		return err_set(e, ERR_SYS, "dup: %s", strerror(errno));
	(void)close(fds[1]);
	if (fcntl(rs->report_fd, F_SETFL, O_NONBLOCK) == -1)
		return err_set(e, ERR_SYS, "fcntl: %s", strerror(errno));
	rs->report_token =
	    loop_add(loop, rs->report_fd, EPOLLIN, runs_report_cb, rs);
	if (rs->report_token == 0)
		return err_set(e, ERR_SYS, "epoll_ctl: %s", strerror(errno));
	keepers_init(&rs->keepers);
	return 0;
}

uint32_t
runs_kept(const struct runs *rs)
{
	return rs->journal.nkept;
}

static void
hello_one(struct runs *rs, const struct journal_entry *en)
{
	const struct run *r = en->run;
	struct buf *b;
	size_t at;

	if (r == NULL)
		return;
	b = uplink_begin(rs->uplink, FRAME_HELLO_RUN, &at);
	wire_put_uuid(b, &en->key);
	wire_put_u8(b, en->ended);
	wire_put_u64(b, r->log.ring.start);
	wire_put_u64(b, r->log.ring.end);
	uplink_end(rs->uplink, at);
}

void
runs_hello(struct runs *rs)
{
	const struct journal_entry *en;

	TAILQ_FOREACH (en, &rs->journal.live, by_age)
		hello_one(rs, en);
	TAILQ_FOREACH (en, &rs->journal.ended, by_age)
		hello_one(rs, en);
}

void
runs_on_close(struct runs *rs)
{
	struct journal_entry *en;

	TAILQ_FOREACH (en, &rs->journal.live, by_age)
		if (en->run != NULL)
			en->run->log.attached = false;
	TAILQ_FOREACH (en, &rs->journal.ended, by_age)
		if (en->run != NULL)
			en->run->log.attached = false;
}

static void
send_known(
    struct runs *rs, const struct uuid *id, uint8_t fresh, uint64_t length)
{
	size_t at;
	struct buf *b = uplink_begin(rs->uplink, FRAME_RUN_KNOWN, &at);

	wire_put_uuid(b, id);
	wire_put_u8(b, fresh);
	wire_put_u64(b, length);
	uplink_end(rs->uplink, at);
}

static void
send_refused(struct runs *rs, const struct uuid *id, const char *why)
{
	size_t at;
	struct buf *b = uplink_begin(rs->uplink, FRAME_RUN_REFUSED, &at);

	wire_put_uuid(b, id);
	wire_put_bytes(b, why, strnlen(why, RUNS_WHY_MAX));
	uplink_end(rs->uplink, at);
	uplink_urgent(rs->uplink);
}

/* Ended runs leave the live table and enter the journal's other list. */
static void
runs_settle(struct runs *rs, struct run *r)
{
	struct journal_entry *en;

	if (r->state != RUN_ENDED || rs->live[r->slot] != r)
		return;
	rs->live[r->slot] = NULL;
	rs->nlive--;
	run_count_kept(r, &rs->kept_bytes);
	en = journal_find(&rs->journal, &r->log.run);
	if (en != NULL)
		journal_end(&rs->journal, en, r->log.ring.end, &r->outcome);
}

static int
free_slot(const struct runs *rs)
{
	for (int i = 0; i < RUNS_LIVE_MAX; i++)
		if (rs->live[i] == NULL)
			return i;
	return -1;
}

static void
start_fresh(struct runs *rs, const struct uuid *id, struct runspec *spec,
    uint64_t window)
{
	struct run *r;
	int slot = free_slot(rs);
	struct err e;

	if (slot == -1) {
		send_refused(rs, id, "too many runs in this sandbox");
		return;
	}
	if (rs->kept_bytes >= RUNS_KEPT_BYTES) {
		send_refused(
		    rs, id, "too much output of ended runs is not taken yet");
		return;
	}
	r = run_new(
	    id, spec, rs->loop, rs->uplink, &rs->keepers, (uint32_t)slot);
	rs->live[slot] = r;
	rs->nlive++;
	(void)journal_add(&rs->journal, id, r);
	uplink_hold(rs->uplink);
	send_known(rs, id, 1, 0);
	if (outlog_attach(&r->log, 0, window, &e) != 0)
		fatal(70, "new run: %s", e.msg);
	run_start(r);
	runs_settle(rs, r);
}

/* A known key: go on sending its log from have. */
static void
attach_known(struct runs *rs, const struct journal_entry *en, uint64_t have,
    uint64_t window)
{
	struct run *r = en->run;
	struct err e;

	if (r == NULL) {
		if (have == en->length)
			send_known(rs, &en->key, 0, en->length);
		else
			send_refused(
			    rs, &en->key, "the log was forgotten on request");
		return;
	}
	if (outlog_attach(&r->log, have, window, &e) != 0) {
		send_refused(rs, &en->key, e.msg);
		return;
	}
	send_known(rs, &en->key, 0, r->log.ring.end);
	uplink_drop(rs->uplink, &r->log);
	uplink_kick(rs->uplink, &r->log);
	uplink_urgent(rs->uplink);
	run_on_room(r);
	runs_settle(rs, r);
}

int
runs_on_start(struct runs *rs, struct wire_in *in, struct err *e)
{
	const struct journal_entry *en;
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
	en = journal_find(&rs->journal, &id);
	if (en != NULL) {
		attach_known(rs, en, have, window);
		return 0;
	}
	if (have != 0) {
		/* It ran once, and this agent knows nothing of it: starting
		 * it again would be the second time. */
		send_refused(rs, &id, "the run is not known here any more");
		return 0;
	}
	if (runspec_decode(bytes, n, &spec, e) != 0) {
		send_refused(rs, &id, e->msg);
		return 0;
	}
	start_fresh(rs, &id, &spec, window);
	runspec_clear(&spec);
	return 0;
}

int
runs_on_ack(struct runs *rs, struct wire_in *in, struct err *e)
{
	const struct journal_entry *en;
	uint64_t offset;
	struct uuid id;
	struct run *r;

	wire_get_uuid(in, &id);
	offset = wire_get_u64(in);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	en = journal_find(&rs->journal, &id);
	if (en == NULL || en->run == NULL)
		return 0; /* crossed with its end */
	r = en->run;
	if (outlog_ack(&r->log, offset, e) != 0)
		return ERR_PROTO;
	run_release_if_taken(r);
	uplink_kick(rs->uplink, &r->log);
	run_on_room(r);
	runs_settle(rs, r);
	return 0;
}

int
runs_on_cancel(struct runs *rs, struct wire_in *in, struct err *e)
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
	en = journal_find(&rs->journal, &id);
	if (en == NULL || en->run == NULL)
		return 0;
	run_cancel(en->run, (enum runlog_reason)reason);
	return 0;
}

int
runs_on_forget(struct runs *rs, struct wire_in *in, struct err *e)
{
	struct journal_entry *en;
	struct uuid id;
	struct run *r;

	wire_get_uuid(in, &id);
	if (wire_get_end(in, e) != 0)
		return ERR_PROTO;
	en = journal_find(&rs->journal, &id);
	if (en == NULL || !en->ended)
		return 0; /* a live run cannot be forgotten: cancel it first */
	r = journal_forget(&rs->journal, en);
	if (r != NULL)
		run_free(r);
	return 0;
}

static void
take_report(struct runs *rs, const struct keeper_report *report)
{
	struct run *r;

	if (report->slot >= RUNS_LIVE_MAX)
		return;
	/* First: the run's next command can then use this keeper. */
	keepers_on_report(&rs->keepers, report);
	rs->left_orphans = rs->left_orphans || report->left != 0;
	r = rs->live[report->slot];
	if (r == NULL || r->keeper != report->keeper)
		return;
	run_on_report(r, report);
	runs_settle(rs, r);
}

void
runs_read_reports(struct runs *rs)
{
	struct keeper_report reports[RUNS_REPORTS_PER_READ];
	ssize_t n;

	/* Each is one atomic write of its keeper, which alone can reach the
	 * other end, so what is read is always whole ones. */
	do {
		n = read(rs->report_fd, reports, sizeof(reports));
		for (ssize_t i = 0; i < n / (ssize_t)sizeof(reports[0]); i++)
			take_report(rs, &reports[i]);
	} while (n == (ssize_t)sizeof(reports));
}

struct run *
runs_by_keeper(const struct runs *rs, pid_t pid)
{
	for (size_t i = 0; i < RUNS_LIVE_MAX; i++)
		if (rs->live[i] != NULL && rs->live[i]->keeper == pid)
			return rs->live[i];
	return NULL;
}

void
runs_on_keeper_lost(struct runs *rs, struct run *r, enum keepers_loss loss)
{
	if (loss == KEEPERS_UNBEGUN)
		run_on_keeper_gone(r);
	else
		run_on_keeper_lost(r);
	runs_settle(rs, r);
}

void
runs_on_orphans_gone(struct runs *rs)
{
	for (size_t i = 0; i < RUNS_LIVE_MAX; i++) {
		struct run *r = rs->live[i];

		if (r == NULL || r->state != RUN_ORPHANED)
			continue;
		run_on_orphans_gone(r);
		runs_settle(rs, r);
	}
}

void
runs_tick(struct runs *rs, uint64_t now_ms)
{
	for (size_t i = 0; i < RUNS_LIVE_MAX && rs->nlive > 0; i++) {
		struct run *r = rs->live[i];

		if (r == NULL || run_next_ms(r) > now_ms)
			continue;
		run_tick(r, now_ms);
		runs_settle(rs, r);
	}
}

uint64_t
runs_next_ms(const struct runs *rs)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < RUNS_LIVE_MAX && rs->nlive > 0; i++) {
		const struct run *r = rs->live[i];

		if (r != NULL && run_next_ms(r) < next)
			next = run_next_ms(r);
	}
	return next;
}

void
runs_kill_all(struct runs *rs)
{
	for (size_t i = 0; i < RUNS_LIVE_MAX; i++)
		if (rs->live[i] != NULL)
			run_cancel(rs->live[i], RUNLOG_CANCELED);
}
