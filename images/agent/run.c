#include "images/agent/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "images/agent/env.h"
#include "images/agent/oom.h"
#include "images/agent/run_end.h"
#include "images/agent/specdir.h"

#define ARTIFACTS_DIR "/artifacts"

static void run_next_command(struct run *r);

struct run *
run_new(const struct uuid *id, struct runspec *spec, struct loop *loop,
    struct uplink *uplink, struct keepers *keepers, uint32_t slot)
{
	static const enum runlog_type types[] = {RUNLOG_STDOUT, RUNLOG_STDERR};
	struct run *r = xcalloc(1, sizeof(*r));

	r->spec = *spec;
	memset(spec, 0, sizeof(*spec));
	r->uplink = uplink;
	r->keepers = keepers;
	r->slot = slot;
	outlog_init(&r->log, id);
	for (size_t i = 0; i < ARRAY_LEN(r->out); i++) {
		r->out[i].fd = -1;
		r->out[i].loop = loop;
		r->out[i].uplink = uplink;
		r->out[i].log = &r->log;
		r->out[i].type = types[i];
	}
	return r;
}

static void
run_free_log(struct run *r)
{
	if (r->kept_total != NULL)
		*r->kept_total -= r->kept_bytes;
	r->kept_bytes = 0;
	outlog_clear(&r->log);
}

void
run_free(struct run *r)
{
	uplink_drop(r->uplink, &r->log);
	for (size_t i = 0; i < ARRAY_LEN(r->out); i++)
		output_close(&r->out[i]);
	run_free_log(r);
	runspec_clear(&r->spec);
	free(r);
}

void
run_count_kept(struct run *r, size_t *total)
{
	r->kept_total = total;
	r->kept_bytes = r->log.ring.cap;
	*total += r->kept_bytes;
	run_release_if_taken(r);
}

void
run_release_if_taken(struct run *r)
{
	if (r->state == RUN_ENDED && ring_used(&r->log.ring) == 0)
		run_free_log(r);
}

static struct runspec_command *
current(const struct run *r)
{
	return &r->spec.commands[r->command];
}

/* 1 when the directory has an entry beside itself and its parent. */
static uint8_t
has_entries(const char *path)
{
	/* d_ino, d_off, d_reclen, d_type, d_name: three entries are enough */
	char buf[1024] __attribute__((aligned(8)));
	long n, used = 0;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	uint8_t has = 0;

	if (fd == -1)
		return 0;
	while (!has && (n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
		for (used = 0; used < n && !has;) {
			const char *name = buf + used + 19;
			uint16_t reclen;

			memcpy(&reclen, buf + used + 16, sizeof(reclen));
			has = strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
			used += reclen;
		}
	(void)close(fd);
	return has;
}

static void
run_finish(struct run *r)
{
	struct runlog_run_end *end = &r->outcome;

	memset(end, 0, sizeof(*end));
	end->reason = r->stop != 0 ? r->stop : RUNLOG_EXIT;
	end->failed = r->failed || r->stop != 0;
	end->command = (uint16_t)(r->failed ? r->failed_command :
		r->stop != 0                ? r->command :
					      0);
	end->artifacts = has_entries(ARTIFACTS_DIR);
	outlog_put_run_end(&r->log, end);
	runspec_clear(&r->spec);
	memset(&r->spec, 0, sizeof(r->spec));
	r->state = RUN_ENDED;
	uplink_kick(r->uplink, &r->log);
	uplink_urgent(r->uplink);
}

static void
run_clean(struct run *r)
{
	r->state = RUN_CLEANING;
	if (!r->has_dir || specdir_remove(&r->log.run, &r->removed))
		run_finish(r);
}

/* The command's end is in the log: what comes next? */
static void
run_advance(struct run *r, const struct runlog_end *end)
{
	const struct runspec_command *c = current(r);
	bool good = end->reason == RUNLOG_EXIT && end->exit_code == 0;
	bool last = r->command + 1 == r->spec.ncommands;

	if (!good && (c->flags & RUNSPEC_ALLOW_FAILURE) == 0 && !r->failed) {
		r->failed = true;
		r->failed_command = r->command;
	}
	/* A command that ended by itself just before the cancel reached it,
	 * and was the last, has ended the run by itself, too. */
	if (r->stop != 0 && last && end->reason != r->stop)
		r->stop = 0;
	if (r->stop != 0 || last ||
	    (r->failed && (r->spec.flags & RUNSPEC_CONTINUE_ON_ERROR) == 0)) {
		run_clean(r);
		return;
	}
	r->command++;
	run_next_command(r);
}

static void
run_end_command(struct run *r, struct runlog_end *end)
{
	end->stdout_bytes = r->out[0].bytes;
	end->stderr_bytes = r->out[1].bytes;
	outlog_put_end(&r->log, r->command, end);
	uplink_kick(r->uplink, &r->log);
	run_advance(r, end);
}

/* End without a process: denied, or it could not be started. */
static void
run_end_unstarted(struct run *r, struct runlog_end *end)
{
	end->wall_us = clock_mono_us() - r->started_us;
	run_end_command(r, end);
}

/* All processes are dead: take what the pipes hold, then end. */
static void
run_drain(struct run *r)
{
	struct runlog_end end = {0};
	bool empty = true;

	for (size_t i = 0; i < ARRAY_LEN(r->out); i++)
		empty = output_drain(&r->out[i]) && empty;
	uplink_kick(r->uplink, &r->log);
	if (!empty)
		return;
	run_end_fill(
	    &end, &r->report, r->kill_reason, r->oom_before, current(r));
	end.wall_us = r->report.end_us > r->started_us ?
	    r->report.end_us - r->started_us :
	    0;
	end.cpu_us = r->report.cpu_us;
	run_end_command(r, &end);
}

static void
run_drain_begin(struct run *r)
{
	r->state = RUN_DRAINING;
	r->keeper = 0;
	for (size_t i = 0; i < ARRAY_LEN(r->out); i++)
		output_drain_begin(&r->out[i]);
	run_drain(r);
}

void
run_on_report(struct run *r, const struct keeper_report *report)
{
	if (r->state != RUN_RUNNING)
		return;
	r->report = *report;
	if (report->left) {
		r->state = RUN_ORPHANED;
		r->keeper = 0;
		return;
	}
	run_drain_begin(r);
}

void
run_on_keeper_lost(struct run *r)
{
	if (r->state != RUN_RUNNING)
		return;
	r->state = RUN_ORPHANED;
	r->keeper = 0;
	memset(&r->report, 0, sizeof(r->report));
	r->report.status = SIGKILL; /* as wait(2) would say it */
	r->report.killed = r->kill_reason != 0;
	r->report.end_us = clock_mono_us();
}

void
run_on_orphans_gone(struct run *r)
{
	if (r->state == RUN_ORPHANED)
		run_drain_begin(r);
}

void
run_on_room(struct run *r)
{
	if (r->state == RUN_DRAINING)
		run_drain(r);
	else if (r->state == RUN_RUNNING)
		for (size_t i = 0; i < ARRAY_LEN(r->out); i++)
			output_resume(&r->out[i]);
}

static void
run_kill(struct run *r, uint8_t reason)
{
	if (r->state != RUN_RUNNING || r->keeper == 0 || r->give_up_ms != 0)
		return;
	r->kill_reason = reason;
	r->give_up_ms = clock_mono_ms() + RUN_KEEPER_GRACE_MS;
	keepers_kill(r->keepers, r->keeper);
}

void
run_cancel(struct run *r, enum runlog_reason reason)
{
	if (r->state == RUN_ENDED || r->state == RUN_CLEANING || r->stop != 0)
		return;
	r->stop = (uint8_t)reason;
	run_kill(r, r->stop);
}

void
run_tick(struct run *r, uint64_t now_ms)
{
	if (r->state == RUN_CLEANING)
		run_clean(r);
	if (r->state != RUN_RUNNING || r->keeper == 0)
		return;
	if (r->give_up_ms != 0 && now_ms >= r->give_up_ms) {
		/* Starved, or stopped again: PID 1 does its work. */
		(void)kill(r->keeper, SIGKILL);
		r->give_up_ms = now_ms + RUN_KEEPER_GRACE_MS;
	} else if (r->give_up_ms == 0 && now_ms >= r->deadline_ms) {
		run_kill(r, RUNLOG_TIMEOUT);
	}
}

uint64_t
run_next_ms(const struct run *r)
{
	if (r->state == RUN_CLEANING)
		return 0;
	if (r->state != RUN_RUNNING)
		return UINT64_MAX;
	return r->give_up_ms != 0 ? r->give_up_ms : r->deadline_ms;
}

static void
close_if_open(int fd)
{
	if (fd != -1)
		(void)close(fd);
}

/* Give it to a keeper, with its pipes; 0 or an errno. */
static int
run_give(struct run *r, const struct runspec_command *c)
{
	struct keeper_job job = {.out = -1, .err = -1};
	struct env_start start;
	int error;

	error = output_open(&r->out[0], &job.out);
	if (error == 0 && (c->flags & RUNSPEC_MERGE_STDERR) == 0)
		error = output_open(&r->out[1], &job.err);
	if (error == 0) {
		env_build(&start, c, r->spec.user);
		job.argv = start.argv;
		job.env = start.env;
		job.program = start.program;
		job.search = start.search;
		job.cwd = c->cwd;
		job.user = r->spec.user;
		job.slot = r->slot;
		r->keeper = keepers_start(r->keepers, &job);
		if (r->keeper == -1)
			error = errno;
		env_clear(&start);
	}
	close_if_open(job.out);
	close_if_open(job.err);
	return error;
}

static void
run_reset_command(struct run *r)
{
	r->state = RUN_RUNNING;
	r->keeper = 0;
	r->gone = 0;
	r->kill_reason = 0;
	r->give_up_ms = 0;
	r->oom_before = oom_count();
	for (size_t i = 0; i < ARRAY_LEN(r->out); i++) {
		r->out[i].command = r->command;
		r->out[i].big = false;
		r->out[i].nheld = 0;
		r->out[i].bytes = 0;
		r->out[i].drain = 0;
	}
	r->started_us = clock_mono_us();
	/* Rounded up: never before its time. */
	r->deadline_ms = (r->started_us + 999) / 1000 + current(r)->timeout_ms;
}

static void
run_begin_command(struct run *r)
{
	const struct runspec_command *c = current(r);
	struct runlog_end end = {0};
	int error = run_give(r, c);

	if (error != 0) {
		r->keeper = 0;
		for (size_t i = 0; i < ARRAY_LEN(r->out); i++)
			output_close(&r->out[i]);
		run_end_start_failed(&end, KEEPER_FORK, error, c);
		run_end_unstarted(r, &end);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(r->out); i++)
		output_watch(&r->out[i]);
}

void
run_on_keeper_gone(struct run *r)
{
	if (r->state != RUN_RUNNING)
		return;
	/* One to be killed need not begin any more. */
	if (r->kill_reason != 0 || ++r->gone == RUN_KEEPERS_GONE_MAX) {
		run_on_keeper_lost(r);
		run_on_orphans_gone(r);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(r->out); i++)
		output_close(&r->out[i]);
	run_begin_command(r);
}

static void
run_next_command(struct run *r)
{
	const struct runspec_command *c = current(r);
	struct runlog_end end = {0};

	run_reset_command(r);
	outlog_put_plain(&r->log, RUNLOG_COMMAND_STARTED, r->command);
	uplink_kick(r->uplink, &r->log);
	if ((c->flags & RUNSPEC_DENIED) != 0) {
		end.reason = RUNLOG_DENIED;
		end.exit_code = 1;
		run_end_text(&end, c->deny);
		run_end_unstarted(r, &end);
		return;
	}
	run_begin_command(r);
}

void
run_start(struct run *r)
{
	struct runlog_end end = {0};
	struct err e;

	outlog_put_plain(&r->log, RUNLOG_RUN_STARTED, 0);
	if (r->spec.nfiles > 0) {
		r->has_dir = true;
		if (specdir_make(&r->spec, &r->log.run, &e) != 0) {
			run_reset_command(r);
			outlog_put_plain(&r->log, RUNLOG_COMMAND_STARTED, 0);
			end.reason = RUNLOG_START_FAILED;
			end.exit_code = 126;
			run_end_text(&end, e.msg);
			/* Nothing else can work without the files. */
			r->stop = RUNLOG_START_FAILED;
			run_end_unstarted(r, &end);
			return;
		}
	}
	run_next_command(r);
}
