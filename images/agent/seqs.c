/*
 * seqs.c - sequences: each one command after another, into one log
 *
 *	SEQ_RUNNING	its current command has a process, or is about to
 *	SEQ_CLEANING	all commands are done; the run's files are removed
 *	SEQ_ENDED	the log is complete and waits to be acknowledged
 *
 *	seq_start -> the run's files -> command 0 -> command 1 ... -> cleaning
 *
 * A command is a process (procs.h) whose output becomes records of the log,
 * between COMMAND_STARTED and COMMAND_ENDED.  Commands that are denied or
 * cannot be started have these two records alone.  After the last one, or the
 * first that failed and may not, or a cancel, the run's files are removed in
 * slices and RUN_ENDED completes the log.  The log has room for all records
 * but output (outlog.h), so only output ever waits.
 *
 * seq_go is the only place that begins commands: whoever ends one leaves the
 * state changed and comes back to it, so that nothing here calls itself.
 */
#include "images/agent/seqs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/runspec.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "images/agent/oom.h"
#include "images/agent/outlog.h"
#include "images/agent/owners.h"
#include "images/agent/say.h"
#include "images/agent/specdir.h"

#define ARTIFACTS_DIR "/artifacts"

enum seq_state {
	SEQ_RUNNING,
	SEQ_CLEANING,
	SEQ_ENDED
};

struct seq {
	struct chan chan;
	enum seq_state state;
	struct uplink *uplink;
	struct procs *procs;
	struct outlog log;
	struct runspec spec;
	uint32_t command;
	struct proc *proc; /* of the command; NULL: none */
	struct proc_spec proc_spec;
	struct proc_origin origin;
	struct outlog_stream out[2]; /* stdout, stderr */

	uint8_t stop;          /* reason of a cancel, or 0 */
	const char *stop_text; /* for the end of what it ended */
	bool failed;
	uint32_t failed_command;
	bool has_dir;
	bool unwanted; /* its log is dropped as it comes */
	uint32_t removed;
	size_t *kept_total; /* in which this log's memory is counted */
	size_t kept_bytes;
};

static const struct proc_ops seq_proc_ops;
static const struct chan_ops seq_chan_ops;

/* ---- life */

/* Takes the spec and zeroes *spec. */
static struct seq *
seq_new(const struct uuid *id, struct runspec *spec, struct uplink *uplink,
    struct procs *procs)
{
	struct seq *q = xcalloc(1, sizeof(*q));

	q->spec = *spec;
	memset(spec, 0, sizeof(*spec));
	q->uplink = uplink;
	q->procs = procs;
	outlog_init(&q->log, id);
	return q;
}

static void
seq_free_log(struct seq *q)
{
	if (q->kept_total != NULL)
		*q->kept_total -= q->kept_bytes;
	q->kept_bytes = 0;
	outlog_clear(&q->log);
}

/* One without a process. */
static void
seq_free(struct seq *q)
{
	uplink_drop(q->uplink, &q->log.flow);
	seq_free_log(q);
	runspec_clear(&q->spec);
	free(q);
}

/* Frees the log once all of it is acknowledged. */
static void
seq_release_if_taken(struct seq *q)
{
	if (q->state == SEQ_ENDED && ring_used(&q->log.flow.ring) == 0)
		seq_free_log(q);
}

/* At its end: counts the log's memory in *total until it is freed. */
static void
seq_count_kept(struct seq *q, size_t *total)
{
	q->kept_total = total;
	q->kept_bytes = q->log.flow.ring.cap;
	*total += q->kept_bytes;
	seq_release_if_taken(q);
}

/* ---- the sequence's end */

/* Whether path is a directory, no link to one, that is not empty. */
static bool
has_entries(const char *path)
{
	const struct dirent *d;
	bool found = false;
	DIR *dir;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd == -1)
		return false;
	dir = fdopendir(fd);
	if (dir == NULL) {
		(void)close(fd);
		return false;
	}
	while (!found && (d = readdir(dir)) != NULL)
		found =
		    strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
	(void)closedir(dir);
	return found;
}

static void
seq_finish(struct seq *q)
{
	struct runlog_run_end end = {0};

	end.reason = q->stop != 0 ? q->stop : RUNLOG_EXIT;
	end.failed = q->failed || q->stop != 0;
	end.command = (uint16_t)(q->failed ? q->failed_command :
		q->stop != 0               ? q->command :
					     0);
	end.artifacts = has_entries(ARTIFACTS_DIR);
	outlog_put_run_end(&q->log, &end);
	runspec_clear(&q->spec);
	memset(&q->spec, 0, sizeof(q->spec));
	q->state = SEQ_ENDED;
	uplink_kick(q->uplink, &q->log.flow);
	uplink_urgent(q->uplink);
}

/* In SEQ_CLEANING: one slice. */
static void
seq_clean(struct seq *q)
{
	if (!q->has_dir || specdir_remove(&q->log.run, &q->removed))
		seq_finish(q);
}

/* ---- a command's end */

static struct runspec_command *
current(const struct seq *q)
{
	return &q->spec.commands[q->command];
}

/* The command's end is in the log: what comes next? */
static void
seq_advance(struct seq *q, const struct runlog_end *end)
{
	const struct runspec_command *c = current(q);
	bool good = end->reason == RUNLOG_EXIT && end->exit_code == 0;
	bool last = q->command + 1 == q->spec.ncommands;

	if (!good && (c->flags & RUNSPEC_ALLOW_FAILURE) == 0 && !q->failed) {
		q->failed = true;
		q->failed_command = q->command;
	}
	/* A command that ended by itself just before the cancel reached it,
	 * and was the last, has ended the run by itself, too. */
	if (q->stop != 0 && last && end->reason != q->stop)
		q->stop = 0;
	if (q->stop != 0 || last ||
	    (q->failed && (q->spec.flags & RUNSPEC_CONTINUE_ON_ERROR) == 0))
		q->state = SEQ_CLEANING;
	else
		q->command++;
}

/* A run that a limit ended leaves nothing behind. */
static void
seq_kill_rest(struct seq *q, const struct runlog_end *end)
{
	bool is_forced =
	    end->reason == RUNLOG_TIMEOUT || end->reason == RUNLOG_MEMORY;

	if (is_forced && q->state == SEQ_CLEANING && q->failed &&
	    q->failed_command == q->command)
		(void)remnants_kill_run(
		    &q->procs->remnants, &q->log.run, LEFTLIST_KILLED);
}

static void
seq_end_command(
    struct seq *q, struct runlog_end *end, const struct runlog_left *left)
{
	for (size_t i = 0; i < ARRAY_LEN(q->out); i++)
		outlog_flush(&q->log, &q->out[i]);
	if (left != NULL)
		outlog_put_left(&q->log, q->command, left);
	end->stdout_bytes = q->out[0].bytes;
	end->stderr_bytes = q->out[1].bytes;
	outlog_put_end(&q->log, q->command, end);
	uplink_kick(q->uplink, &q->log.flow);
	seq_advance(q, end);
	seq_kill_rest(q, end);
}

/* Logs kills and losses; a command that ended by itself is no line. */
static void
seq_say_end(const struct seq *q, const struct proc_end *from,
    const struct runlog_end *end)
{
	bool is_killed =
	    from->why == PROC_TIMED_OUT || from->why == PROC_KILLED;
	/* Without those that another command has logged already. */
	uint64_t news = from->memory_kills > 0 ? oom_take_news() : 0;

	if (from->keeper_stuck)
		say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_KEEPER_STUCK,
		    &q->log.run, "command %u", q->command);
	else if (from->keeper_lost)
		say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_KEEPER_LOST,
		    &q->log.run, "command %u", q->command);
	if (news > 0)
		say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_OUT_OF_MEMORY,
		    &q->log.run, "command %u, %llu processes", q->command,
		    (unsigned long long)news);
	if (is_killed)
		say_line(FRAME_SAID_LEVEL_INFO, FRAME_SAID_WHAT_ENDED_COMMAND,
		    &q->log.run, "command %u after %llu ms: %s", q->command,
		    (unsigned long long)end->wall_us / 1000,
		    runlog_reason_word((enum runlog_reason)end->reason));
}

static void
seq_end_process(struct seq *q, const struct proc_end *from)
{
	struct runlog_end end = {.reason = (uint8_t)proc_end_reason(from->why),
	    .exit_code = from->exit_code,
	    .signal = from->signal,
	    .wall_us = from->wall_us,
	    .cpu_us = from->cpu_us,
	    .memory_peak_bytes = from->memory_peak_bytes,
	    .memory_kills = from->memory_kills};

	/* Killed without a cancel: the agent ends. */
	if (from->why == PROC_KILLED && q->stop != 0)
		end.reason = q->stop;
	proc_end_text(from, &q->proc_spec, end.text, sizeof(end.text));
	procs_crowd_text(q->procs, from, end.text, sizeof(end.text));
	if (q->stop != 0 && end.reason == q->stop)
		utf8_copy(end.text, sizeof(end.text), q->stop_text);
	seq_say_end(q, from, &end);
	seq_end_command(q, &end, from->left);
}

/* ---- a command's begin */

static void
seq_begin_record(struct seq *q)
{
	static const enum runlog_type types[] = {RUNLOG_STDOUT, RUNLOG_STDERR};

	for (size_t i = 0; i < ARRAY_LEN(q->out); i++)
		outlog_stream_begin(&q->out[i], types[i], q->command);
	outlog_put_plain(&q->log, RUNLOG_COMMAND_STARTED, q->command);
	uplink_kick(q->uplink, &q->log.flow);
}

/* A command without a process: denied, or it lacks a secret, its files or its
 * user. */
static void
seq_end_at_once(
    struct seq *q, enum runlog_reason reason, int exit_code, const char *text)
{
	struct runlog_end end = {
	    .reason = (uint8_t)reason, .exit_code = exit_code};

	utf8_copy(end.text, sizeof(end.text), text);
	seq_end_command(q, &end, NULL);
}

static void
seq_begin_command(struct seq *q)
{
	const struct runspec_command *c = current(q);
	struct proc_end end = {0};

	seq_begin_record(q);
	if ((c->flags & RUNSPEC_DENIED) != 0) {
		seq_end_at_once(q, RUNLOG_DENIED, 1, c->deny);
		return;
	}
	if ((c->flags & RUNSPEC_NO_SECRET) != 0) {
		seq_end_at_once(q, RUNLOG_START_FAILED, EXIT_CANNOT, c->deny);
		return;
	}
	if (owners_lack(q->spec.user) != NULL) {
		seq_end_at_once(q, RUNLOG_START_FAILED, EXIT_CANNOT,
		    owners_lack(q->spec.user));
		return;
	}
	q->proc_spec = proc_spec_of(c, q->spec.user);
	q->origin = (struct proc_origin){q->log.run, (uint16_t)q->command};
	if ((q->spec.flags & RUNSPEC_KILL_LEFTOVERS) == 0)
		q->proc_spec.origin = &q->origin;
	q->proc = procs_start(q->procs, &q->proc_spec, &seq_proc_ops, q);
	if (q->proc != NULL)
		return;
	proc_end_unstarted(&end, KEEPER_FORK, errno);
	seq_end_process(q, &end);
}

/* Begins commands until one of them has to be waited for. */
static void
seq_go(struct seq *q)
{
	while (q->state == SEQ_RUNNING && q->proc == NULL)
		seq_begin_command(q);
	if (q->state == SEQ_CLEANING)
		seq_clean(q);
}

static void
seq_start(struct seq *q)
{
	struct err e;

	outlog_put_plain(&q->log, RUNLOG_RUN_STARTED, 0);
	q->has_dir = q->spec.nfiles > 0 && owners_lack(q->spec.user) == NULL;
	if (q->has_dir && specdir_make(&q->spec, &q->log.run, &e) != 0) {
		/* Nothing else can work without the files. */
		q->stop = RUNLOG_START_FAILED;
		say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_NO_FILES,
		    &q->log.run, "%s", e.msg);
		seq_begin_record(q);
		seq_end_at_once(q, RUNLOG_START_FAILED, EXIT_CANNOT, e.msg);
	}
	seq_go(q);
}

/* ---- from outside */

static void
seq_drop_log(struct seq *q)
{
	ring_release(&q->log.flow.ring, q->log.flow.ring.end);
}

/* The log was acknowledged further. */
static void
seq_on_room(struct seq *q)
{
	if (q->proc != NULL)
		procs_resume(q->procs, q->proc);
}

/* Kills its tree and starts nothing more; the first reason counts.  text is a
 * literal. */
static void
seq_cancel(struct seq *q, enum runlog_reason reason, const char *text)
{
	if (q->state != SEQ_RUNNING || q->stop != 0)
		return;
	q->stop = (uint8_t)reason;
	q->stop_text = text;
	(void)remnants_kill_run(
	    &q->procs->remnants, &q->log.run, LEFTLIST_KILLED);
	if (q->proc != NULL)
		procs_kill(q->proc, PROC_KILLED);
}

/* Nobody takes its log any more: kills its tree; it still ends. */
static void
seq_unwant(struct seq *q)
{
	q->unwanted = true;
	seq_drop_log(q);
	seq_cancel(q, RUNLOG_CANCELED, "");
	seq_on_room(q);
}

/* ---- from its process */

static size_t
on_room(void *arg, unsigned int stream)
{
	const struct seq *q = arg;

	return outlog_room(&q->log, &q->out[stream]);
}

static int
on_space(void *arg, unsigned int stream, size_t n, struct iovec iov[2])
{
	struct seq *q = arg;

	return outlog_space(&q->log, &q->out[stream], n, iov);
}

static void
on_taken(void *arg, unsigned int stream, size_t n)
{
	struct seq *q = arg;

	outlog_take(&q->log, &q->out[stream], n);
	if (q->unwanted)
		seq_drop_log(q);
	uplink_kick(q->uplink, &q->log.flow);
	uplink_hurry(q->uplink);
}

static void
on_end(const struct proc_end *end, void *arg)
{
	struct seq *q = arg;

	q->proc = NULL;
	seq_end_process(q, end);
	seq_go(q);
}

static const struct proc_ops seq_proc_ops = {
    {on_room, on_space, on_taken}, on_end};

/* ---- all of them */

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
