/*
 * storing - what a run costs in the store, alone: its log, its row, its end
 *
 *	make -C build tests/bench/storing
 *	build/tests/bench/storing DIR [runs] [at a time] [soon|now] [log
 *bytes]
 *
 * So many runs at a time go the way of a short one: a log is opened, the run
 * begun, some bytes written by a "worker", the end given, the log closed when
 * that is on disk.  "without": the index of runs cannot be made, as a directory
 * is in its place.  Printed are runs per second, and the processor time per
 * run of the loop's thread and of the store's own.  DIR must be on the disk
 * that is meant; a directory is made in it and removed.
 */
#include <sys/stat.h>
#include <ftw.h>
#include <stdio.h>
#include <time.h>

#include <event2/event.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/store/store.h"

struct bench {
	struct event_base *base;
	struct store *store;
	enum store_when when;
	uint64_t runs;
	uint64_t begun;
	uint64_t ended;
	size_t log_bytes;
	uint8_t *bytes;
};

struct slot {
	struct bench *b;
	struct store_run row;
	struct store_log *log;
};

static NORETURN void
die(const char *what, const char *why)
{
	(void)fprintf(stderr, "storing: %s: %s\n", what, why);
	exit(1);
}

static uint64_t
cpu_us(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void slot_next(struct slot *s);

static void
ended_cb(int rc, const struct err *why, void *arg)
{
	struct slot *s = arg;

	if (rc != 0)
		die("end", why->msg);
	store_log_close(s->log);
	store_run_clear(&s->row);
	if (++s->b->ended == s->b->runs)
		(void)event_base_loopbreak(s->b->base);
	slot_next(s);
}

static void
slot_end(struct slot *s)
{
	struct store_run *r = &s->row;
	struct err e;

	if (fd_write_all(
		store_log_fd(s->log), s->b->bytes, s->b->log_bytes, &e) != 0)
		die("log", e.msg);
	r->state = RUN_STATE_COMPLETED;
	r->end_reason = RUNLOG_EXIT;
	r->spool_bytes = s->b->log_bytes;
	store_run_end(s->b->store, r, s->log, ended_cb, s);
}

static void
begun_cb(int rc, const struct err *why, void *arg)
{
	struct slot *s = arg;

	if (rc != 0)
		die("begin", why->msg);
	if (s->b->when == STORE_NOW)
		slot_end(s);
}

static void
row_fill(struct store_run *r, uint64_t id)
{
	*r = (struct store_run){.id = id,
	    .tenant = STORE_TENANT_DEFAULT,
	    .sandbox = 1,
	    .identifier = xstrdup("bench"),
	    .sandbox_name = xstrdup("mcp-sbx-bench-01234567"),
	    .container_id = xstrdup("0123456789abcdef0123456789abcdef"),
	    .tool = xstrdup("run_sandbox"),
	    .created_ms = 1000,
	    .spec_len = 200,
	    .spec = xcalloc(1, 200),
	    .commands = xcalloc(1, sizeof(struct store_command)),
	    .ncommands = 1};
	uuid_timed(&r->uuid);
	r->commands[0] = (struct store_command){.shell = xstrdup("true"),
	    .cwd = xstrdup("/workspace"),
	    .env_json = xstrdup("{}"),
	    .argv_json = xstrdup(""),
	    .exit_code = -1};
}

static void
slot_next(struct slot *s)
{
	struct bench *b = s->b;
	struct err e;

	if (b->begun == b->runs)
		return;
	row_fill(&s->row, ++b->begun);
	if (store_log_open(b->store, &s->row.uuid, &s->log, &e) != 0)
		die("log", e.msg);
	store_run_begin(b->store, &s->row, s->log, b->when, begun_cb, s);
	if (b->when == STORE_SOON)
		slot_end(s);
}

static void
put_sandbox(struct bench *b)
{
	struct store_sandbox s = {.id = 1,
	    .tenant = STORE_TENANT_DEFAULT,
	    .identifier = xstrdup("bench"),
	    .state = SANDBOX_IS_READY};

	uuid_random(&s.uuid);
	store_sandbox_put(b->store, &s, NULL, NULL);
	store_sandbox_clear(&s);
}

static void
bench_run(struct bench *b, unsigned int at_a_time)
{
	struct slot *slots = xcalloc(at_a_time, sizeof(*slots));
	uint64_t wall = cpu_us(CLOCK_MONOTONIC);
	uint64_t all = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t loop = cpu_us(CLOCK_THREAD_CPUTIME_ID);
	struct store_stats st;
	double n = (double)b->runs;

	for (unsigned int i = 0; i < at_a_time; i++) {
		slots[i].b = b;
		slot_next(&slots[i]);
	}
	(void)event_base_dispatch(b->base);
	wall = cpu_us(CLOCK_MONOTONIC) - wall;
	all = cpu_us(CLOCK_PROCESS_CPUTIME_ID) - all;
	loop = cpu_us(CLOCK_THREAD_CPUTIME_ID) - loop;
	store_stats(b->store, &st);
	(void)printf("%u at a time, %s, %zu bytes: %.0f runs/s, per run: "
		     "loop %.1f us, store %.1f us, %.2f writes, %.2f commits\n",
	    at_a_time, b->when == STORE_SOON ? "soon" : "now", b->log_bytes,
	    n * 1e6 / (double)wall, (double)loop / n, (double)(all - loop) / n,
	    (double)st.writes / n, (double)st.commits / n);
	free(slots);
}

static int
remove_cb(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int
main(int argc, char **argv)
{
	struct bench b = {.base = event_base_new(), .runs = 20000};
	unsigned int at_a_time = argc > 3 ? (unsigned int)atoi(argv[3]) : 16;
	AUTO(auto_free) char *dir = NULL;
	struct err e;

	if (argc < 2)
		die("usage",
		    "DIR [runs] [at a time] [soon|now] [log bytes] "
		    "[with|without]");
	if (argc > 2)
		b.runs = strtoull(argv[2], NULL, 10);
	b.when =
	    argc > 4 && strcmp(argv[4], "now") == 0 ? STORE_NOW : STORE_SOON;
	b.log_bytes = argc > 5 ? strtoull(argv[5], NULL, 10) : 100;
	b.bytes = xcalloc(1, b.log_bytes + 1);
	dir = xasprintf("%s/store-XXXXXX", argv[1]);
	if (mkdtemp(dir) == NULL)
		die(dir, "cannot be made");
	if (argc > 6 && strcmp(argv[6], "without") == 0) {
		AUTO(auto_free) char *index = xasprintf("%s/history.db", dir);

		if (mkdir(index, 0700) != 0)
			die(index, "cannot be made");
	}
	if (store_open(b.base, dir, NULL, &b.store, &e) != 0)
		die("open", e.msg);
	put_sandbox(&b);
	bench_run(&b, at_a_time);
	store_close(b.store);
	event_base_free(b.base);
	free(b.bytes);
	return nftw(dir, remove_cb, 16, FTW_DEPTH | FTW_PHYS) == 0 ? 0 : 1;
}
