/*
 * history - the history of a million runs: how long its questions take
 *
 *	build/tests/bench/history DIR make [runs]	a database, its index
 *	build/tests/bench/history DIR ask [rounds]	questions to it
 *
 * The runs are the same each time: of three tenants (70, 25 and 5 of a
 * hundred), 200 identifiers of each of which some are busy, some languages,
 * codes and reasons that are common and some that are rare, durations from
 * milliseconds to an hour, over 30 days.  Their rows are written by SQL; the
 * index is made of them by the store.  Each question is asked with values that
 * are common and that are rare; printed are the median and the 99th percentile
 * of all rounds, from the call to its callback.
 */
#include <sys/stat.h>
#include <stdio.h>

#include <event2/event.h>
#include <sqlite3.h>

#include "common/clock.h"
#include "common/runlog.h"
#include "common/xmalloc.h"
#include "supervisor/store/history.h"

#define DAYS 30
#define DAY_MS INT64_C(86400000)
#define FIRST_MS (20500 * DAY_MS)

static NORETURN void
die(const char *what, const char *why)
{
	(void)fprintf(stderr, "history: %s: %s\n", what, why);
	exit(1);
}

static uint64_t seed = 88172645463325252u;

static uint64_t
any(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % n;
}

/* Small numbers are much more common. */
static uint64_t
any_low(uint64_t n)
{
	return any(any(any(n) + 1) + 1);
}

/* ---- a database */

static void
sql(sqlite3 *h, const char *text)
{
	if (sqlite3_exec(h, text, NULL, NULL, NULL) != SQLITE_OK)
		die(text, sqlite3_errmsg(h));
}

static sqlite3_stmt *
prepare(sqlite3 *h, const char *text)
{
	sqlite3_stmt *st;

	if (sqlite3_prepare_v2(h, text, -1, &st, NULL) != SQLITE_OK)
		die(text, sqlite3_errmsg(h));
	return st;
}

static void
step(sqlite3 *h, sqlite3_stmt *st)
{
	if (sqlite3_step(st) != SQLITE_DONE)
		die("insert", sqlite3_errmsg(h));
	(void)sqlite3_reset(st);
}

static void
text(sqlite3_stmt *st, int at, const char *value)
{
	(void)sqlite3_bind_text(st, at, value, -1, SQLITE_TRANSIENT);
}

static const char *const languages[] = {
    "python", "javascript", "bash", "c", "go", "ruby", "perl", "lua"};
static const char *const nouns[] = {"file", "table", "report", "model",
    "server", "index", "image", "test", "graph", "query", "buffer", "parser",
    "matrix", "client", "socket", "column"};
static const char *const verbs[] = {
    "reads", "writes", "plots", "loads", "checks", "sorts", "merges", "trains"};

struct statements {
	sqlite3 *h;
	sqlite3_stmt *run, *command, *artifact;
};

static int64_t
any_duration(void)
{
	int64_t ms = 1 + (int64_t)any(50);

	for (uint64_t i = any_low(20); i > 0; i--)
		ms = ms * 17 / 10 + (int64_t)any(5);
	return ms > 3600000 ? 3600000 : ms;
}

static size_t
make_log(uint8_t *to, size_t size, uint64_t id)
{
	char line[512];
	struct buf b;
	size_t n;
	int len = snprintf(line, sizeof(line),
	    "the %s %s %s %llu\nvalue %llu of %llu\n%s", nouns[any(16)],
	    verbs[any(8)], nouns[any(16)], (unsigned long long)any(100000),
	    (unsigned long long)any(1000), (unsigned long long)id,
	    any(10000) == 0 ? "rarebird\n" : "done\n");
	const struct runlog_header out = {RUNLOG_STDOUT, 0, (uint32_t)len, 1};

	buf_init(&b, size);
	runlog_put_header(&b, &out);
	if (buf_append(&b, line, (size_t)len) != 0)
		die("log", "too long");
	n = buf_len(&b);
	memcpy(to, buf_data(&b), n);
	buf_clear(&b);
	return n;
}

static void
put_artifact(const struct statements *s, int64_t id, int64_t tenant,
    const char *identifier)
{
	uint8_t digest[32] = {0};
	char path[64];
	uint64_t kind = any_low(2000);

	(void)snprintf(path, sizeof(path), "plots/figure-%llu.png",
	    (unsigned long long)kind);
	memcpy(digest, &kind, sizeof(kind));
	(void)sqlite3_bind_int64(s->artifact, 1, id);
	text(s->artifact, 2, path);
	(void)sqlite3_bind_int64(s->artifact, 3, tenant);
	text(s->artifact, 4, identifier);
	(void)sqlite3_bind_blob(s->artifact, 5, digest, 32, SQLITE_TRANSIENT);
	step(s->h, s->artifact);
}

static void
put_command(const struct statements *s, int64_t id, const char *language)
{
	char shell[256];

	(void)snprintf(shell, sizeof(shell),
	    "%s -c 'import %s; %s(\"%s_%llu\")'", language, nouns[any(16)],
	    verbs[any(8)], nouns[any(16)], (unsigned long long)any(5000));
	(void)sqlite3_bind_int64(s->command, 1, id);
	text(s->command, 2, shell);
	step(s->h, s->command);
}

static void
put_run(const struct statements *s, int64_t id, int64_t of)
{
	static const char *const reasons[] = {
	    "exit", "exit", "exit", "timeout", "memory", "canceled"};
	uint64_t share = any(100), reason = any_low(12);
	int64_t tenant = share < 70 ? 1 : share < 95 ? 2 : 3;
	int64_t created = FIRST_MS + DAYS * DAY_MS / of * id;
	int64_t exit_code = any(10) != 0 ? 0 : (int64_t)any_low(140);
	const char *language = languages[any_low(8)];
	char identifier[40], principal[40], sandbox[64];
	bool code = any(3) != 0, file = any(5) == 0;
	uint8_t log[1024], uuid[16];
	uint64_t who = any_low(200);
	sqlite3_stmt *st = s->run;

	(void)snprintf(identifier, sizeof(identifier), "conversation-%llu",
	    (unsigned long long)who);
	(void)snprintf(sandbox, sizeof(sandbox), "mcp-sbx-%s-%llu", identifier,
	    (unsigned long long)any(20));
	(void)snprintf(principal, sizeof(principal), "token%llu",
	    (unsigned long long)any_low(30));
	for (size_t i = 0; i < sizeof(uuid); i++)
		uuid[i] = (uint8_t)any(256);
	(void)sqlite3_bind_int64(st, 1, id);
	(void)sqlite3_bind_blob(st, 2, uuid, 16, SQLITE_TRANSIENT);
	(void)sqlite3_bind_int64(st, 3, tenant);
	text(st, 4, identifier);
	text(st, 5, sandbox);
	text(st, 6, code ? "execute_code" : "run_sandbox");
	text(st, 7, code ? language : "");
	text(st, 8, exit_code == 0 ? "completed" : "failed");
	text(st, 9, reason < 6 ? reasons[reason] : "exit");
	(void)sqlite3_bind_int64(st, 10, created);
	(void)sqlite3_bind_int64(st, 11, created + any_duration());
	(void)sqlite3_bind_int64(st, 12, exit_code);
	(void)sqlite3_bind_int64(st, 13, (int64_t)any_low(1000000));
	(void)sqlite3_bind_int64(st, 14, file);
	(void)sqlite3_bind_int64(st, 15, (int64_t)any(1000000));
	text(st, 16, principal);
	(void)sqlite3_bind_blob(st, 17, log,
	    (int)make_log(log, sizeof(log), (uint64_t)id), SQLITE_TRANSIENT);
	step(s->h, st);
	put_command(s, id, language);
	if (file)
		put_artifact(s, id, tenant, identifier);
}

static void
put_rows(const char *dir, int64_t runs)
{
	AUTO(auto_free) char *path = xasprintf("%s/mcp-sandboxd.db", dir);
	struct statements s;

	if (sqlite3_open(path, &s.h) != SQLITE_OK)
		die(path, "cannot be opened");
	sql(s.h,
	    "PRAGMA synchronous = OFF; PRAGMA cache_size = -200000;"
	    "BEGIN;"
	    "INSERT INTO tenant (id, name, created_ms) VALUES"
	    " (2, 'two', 1), (3, 'three', 1);"
	    "INSERT INTO sandbox VALUES (1, zeroblob(16), 1, 'a', 1, 'n',"
	    " '', '', 'removed', '', 0, 0, 0, 0, 1, 0, 0)");
	s.run = prepare(s.h,
	    "INSERT INTO run (id, uuid, tenant, sandbox, identifier,"
	    " sandbox_name, container_id, tool, language, state, end_reason,"
	    " error, artifacts_error, created_ms, sent_ms, started_ms,"
	    " ended_ms, exit_code, stdout_bytes, stderr_bytes, artifacts,"
	    " artifact_bytes, cpu_us, memory_peak_bytes, spool_bytes,"
	    " stdout_max, stderr_max, principal, client, address, session,"
	    " request_id, trace, span, parent_span, log)"
	    " VALUES (?1, ?2, ?3, 1, ?4, ?5, '', ?6, ?7, ?8, ?9, '', '', ?10,"
	    " ?10, ?10, ?11, ?12, ?13, 0, ?14, ?14 * 1000, ?15, 10000000,"
	    " length(?17), 1000, 1000, ?16, 'bench 1.0', '', '', '', '', '',"
	    " '', ?17)");
	s.command = prepare(s.h,
	    "INSERT INTO command (run, idx, shell, argv, cwd, env, status,"
	    " end_reason, error, exit_code, signal, timeout_ms, allow_failure,"
	    " started_ms, ended_ms, stdout_bytes, stderr_bytes) VALUES (?1, 0,"
	    " ?2, '', '/workspace', '{}', 'completed', 'exit', '', 0, 0, 1000,"
	    " 0, 1, 2, 0, 0)");
	s.artifact = prepare(s.h,
	    "INSERT INTO artifact (run, tenant, identifier, path, size, mode,"
	    " mtime_ns, sha256) VALUES (?1, ?3, ?4, ?2, 1000, 420, 1, ?5)");
	for (int64_t id = 1; id <= runs; id++)
		put_run(&s, id, runs);
	sql(s.h,
	    "UPDATE tenant SET runs_kept ="
	    " (SELECT count(*) FROM run WHERE run.tenant = tenant.id)");
	sql(s.h, "COMMIT");
	(void)sqlite3_finalize(s.run);
	(void)sqlite3_finalize(s.command);
	(void)sqlite3_finalize(s.artifact);
	sql(s.h, "PRAGMA wal_checkpoint(TRUNCATE)");
	(void)sqlite3_close(s.h);
}

/* ---- questions */

struct bench {
	struct event_base *base;
	struct store *store;
	bool is_done;
	int rc;
	size_t n;
	char next[HISTORY_CURSOR_MAX + 1];
	char why[ERR_TEXT_MAX];
};

static void
done(struct bench *b, int rc, const struct err *why)
{
	b->is_done = true;
	b->rc = rc;
	(void)snprintf(
	    b->why, sizeof(b->why), "%s", why == NULL ? "" : why->msg);
}

static void
page_cb(int rc, const struct history_page *p, const struct err *why, void *arg)
{
	struct bench *b = arg;

	done(b, rc, why);
	b->n = rc == 0 ? p->n : 0;
	if (rc == 0)
		memcpy(b->next, p->next, sizeof(b->next));
}

static void
sums_cb(int rc, const struct history_sums *s, const struct err *why, void *arg)
{
	struct bench *b = arg;

	done(b, rc, why);
	b->n = rc == 0 ? s->n : 0;
}

static uint64_t
now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static uint64_t
wait_for(struct bench *b, uint64_t from)
{
	while (!b->is_done)
		(void)event_base_loop(b->base, EVLOOP_ONCE);
	return now_us() - from;
}

static uint64_t
ask_page(struct bench *b, uint64_t tenant, const struct history_query *q)
{
	uint64_t from = now_us();

	b->is_done = false;
	(void)history_list(b->store, (struct tenant_id){tenant}, q, page_cb, b);
	return wait_for(b, from);
}

static uint64_t
ask_sums(struct bench *b, uint64_t tenant, const struct history_filter *f,
    enum history_group by)
{
	uint64_t from = now_us();

	b->is_done = false;
	(void)history_stats(
	    b->store, (struct tenant_id){tenant}, f, by, sums_cb, b);
	return wait_for(b, from);
}

/* What is asked, each with a value that is common and one that is rare. */
struct question {
	const char *name;
	struct history_query q;
	bool is_of_sums;
	enum history_group by;
};

static const uint8_t common_digest[32], rare_digest[32] = {0xcf, 0x07};

#define PAGE .limit = 50
#define DAY_25 (FIRST_MS + 25 * DAY_MS)
#define DAY_26 (DAY_25 + DAY_MS)
static const struct question questions[] = {
    {"no filter", {PAGE}, 0, 0},
    {"identifier, common", {{.identifier = "conversation-0"}, PAGE}, 0, 0},
    {"identifier, rare", {{.identifier = "conversation-190"}, PAGE}, 0, 0},
    {"sandbox", {{.sandbox = "mcp-sbx-conversation-3-7"}, PAGE}, 0, 0},
    {"principal, common", {{.principal = "token0"}, PAGE}, 0, 0},
    {"principal, rare", {{.principal = "token29"}, PAGE}, 0, 0},
    {"tool", {{.tool = "run_sandbox"}, PAGE}, 0, 0},
    {"language, common", {{.language = "python"}, PAGE}, 0, 0},
    {"language, rare", {{.language = "lua"}, PAGE}, 0, 0},
    {"state", {{.states = 1u << RUN_STATE_FAILED}, PAGE}, 0, 0},
    {"state, of none", {{.states = 1u << RUN_STATE_CANCELED}, PAGE}, 0, 0},
    {"end_reason, rare", {{.end_reason = RUNLOG_CANCELED}, PAGE}, 0, 0},
    {"exit_code, common", {{.has_exit_code = true}, PAGE}, 0, 0},
    {"exit_code, rare", {{.has_exit_code = true, .exit_code = 137}, PAGE}, 0,
	0},
    {"since, a day", {{.since_ms = DAY_25, .until_ms = DAY_26}, PAGE}, 0, 0},
    {"min_duration, common", {{.min_duration_ms = 20}, PAGE}, 0, 0},
    {"min_duration, 12 in 100", {{.min_duration_ms = 1191}, PAGE}, 0, 0},
    {"min_duration, 4 in 100", {{.min_duration_ms = 3840}, PAGE}, 0, 0},
    {"min_duration, 2 in 100", {{.min_duration_ms = 10783}, PAGE}, 0, 0},
    {"min_duration, 1 in 100", {{.min_duration_ms = 28602}, PAGE}, 0, 0},
    {"min_duration, rare", {{.min_duration_ms = 100000}, PAGE}, 0, 0},
    {"max_duration, rare", {{.max_duration_ms = 1}, PAGE}, 0, 0},
    {"artifact, common", {{.artifact = "figure-0.png"}, PAGE}, 0, 0},
    {"artifact, rare", {{.artifact = "plots/figure-1900.png"}, PAGE}, 0, 0},
    {"digest, common", {{.digest = common_digest}, PAGE}, 0, 0},
    {"digest, rare", {{.digest = rare_digest}, PAGE}, 0, 0},
    {"q, in most", {{.q = "value done"}, PAGE}, 0, 0},
    {"q, common", {{.q = "matrix"}, PAGE}, 0, 0},
    {"q, rare", {{.q = "rarebird"}, PAGE}, 0, 0},
    {"q, a phrase", {{.q = "\"the matrix plots\""}, PAGE}, 0, 0},
    {"q, three words that never meet", {{.q = "done rarebird reads"}, PAGE}, 0,
	0},
    {"q, a phrase that is nowhere", {{.q = "\"done value\""}, PAGE}, 0, 0},
    {"q, a long one", {{.q = "\"value of the\" done"}, PAGE}, 0, 0},
    {"q, one of each", {{.q = "file table report reads rarebird"}, PAGE}, 0, 0},
    {"q, in most, and an identifier",
	{{.q = "value of", .identifier = "conversation-190"}, PAGE}, 0, 0},
    {"q, a phrase that is nowhere, counted",
	{{.q = "\"done value\""}, .total = HISTORY_TOTAL, PAGE}, 0, 0},
    {"q, a prefix", {{.q = "matrix_12*"}, PAGE}, 0, 0},
    {"identifier, tool, exit_code",
	{{.identifier = "conversation-5",
	     .tool = "run_sandbox",
	     .has_exit_code = true,
	     .exit_code = 1},
	    PAGE},
	0, 0},
    {"sort=-duration", {.sort = HISTORY_DURATION, PAGE}, 0, 0},
    {"sort=bytes", {.sort = HISTORY_BYTES, .order = HISTORY_ASCENDING, PAGE}, 0,
	0},
    {"sort=-duration, identifier, rare",
	{{.identifier = "conversation-190"}, .sort = HISTORY_DURATION, PAGE}, 0,
	0},
    {"sort=-duration, tool",
	{{.tool = "run_sandbox"}, .sort = HISTORY_DURATION, PAGE}, 0, 0},
    {"count, no filter", {.total = HISTORY_TOTAL, PAGE}, 0, 0},
    {"count, identifier",
	{{.identifier = "conversation-5"}, .total = HISTORY_TOTAL, PAGE}, 0, 0},
    {"statistics of a day by identifier",
	{{.since_ms = DAY_25, .until_ms = DAY_26}, PAGE}, true,
	HISTORY_BY_IDENTIFIER},
    {"statistics of a day by end reason",
	{{.since_ms = DAY_25, .until_ms = DAY_26}, PAGE}, true,
	HISTORY_BY_END_REASON},
    {"statistics of an identifier by day",
	{{.identifier = "conversation-5"}, PAGE}, true, HISTORY_BY_DAY},
};

static int
compare_us(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return (a > b) - (a < b);
}

/* The first page and, where there is one, the second, of the tenant with most
 * and of the one with fewest runs. */
static void
measure(struct bench *b, const struct question *k, unsigned int rounds)
{
	uint64_t *us = xcalloc(rounds, sizeof(*us));
	char cursor[HISTORY_CURSOR_MAX + 1] = "";
	struct history_query q = k->q;
	const unsigned int p50 = rounds / 2, p99 = rounds * 99 / 100;

	for (unsigned int i = 0; i < rounds; i++) {
		uint64_t tenant = i % 4 < 3 ? 1 : 3;

		if (i % 4 == 0 || cursor[0] == '\0')
			q.cursor = NULL;
		us[i] = k->is_of_sums ?
		    ask_sums(b, tenant, &k->q.filter, k->by) :
		    ask_page(b, tenant, i % 4 == 3 ? &k->q : &q);
		if (b->rc != 0)
			die(k->name, b->why);
		if (i % 4 == 0 && !k->is_of_sums) {
			memcpy(cursor, b->next, sizeof(cursor));
			q.cursor = cursor;
		}
	}
	qsort(us, rounds, sizeof(*us), compare_us);
	(void)printf("| %s | %.2f | %.2f |\n", k->name, (double)us[p50] / 1000,
	    (double)us[p99] / 1000);
	free(us);
}

/* ---- main */

static void
open_store(struct bench *b, const char *dir)
{
	struct err e;

	b->base = event_base_new();
	if (store_open(b->base, dir, NULL, &b->store, &e) != 0)
		die(dir, e.msg);
}

static void
wait_for_index(struct bench *b)
{
	const struct history_query q = {.limit = 1};

	do
		(void)ask_page(b, 1, &q);
	while (b->rc == ERR_BACKEND);
	if (b->rc != 0)
		die("index", b->why);
}

static void
print_size(const char *dir, const char *name)
{
	AUTO(auto_free) char *path = xasprintf("%s/%s", dir, name);
	struct stat st;

	if (stat(path, &st) == 0)
		(void)printf("%s: %.0f MB\n", name, (double)st.st_size / 1e6);
}

static void
make(const char *dir, int64_t runs)
{
	struct bench b = {0};
	uint64_t from;

	open_store(&b, dir);
	store_close(b.store);
	event_base_free(b.base);
	from = now_us();
	put_rows(dir, runs);
	(void)printf("%lld rows: %.1f s\n", (long long)runs,
	    (double)(now_us() - from) / 1e6);
	from = now_us();
	open_store(&b, dir);
	wait_for_index(&b);
	(void)printf("index: %.1f s, %.0f runs/s\n",
	    (double)(now_us() - from) / 1e6,
	    (double)runs * 1e6 / (double)(now_us() - from));
	store_close(b.store);
	event_base_free(b.base);
	print_size(dir, "mcp-sandboxd.db");
	print_size(dir, "history.db");
}

int
main(int argc, char **argv)
{
	struct bench b = {0};
	unsigned int rounds = argc > 3 ? (unsigned int)atoi(argv[3]) : 200;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3)
		die("usage", "DIR make [runs] | DIR ask [rounds]");
	if (strcmp(argv[2], "make") == 0) {
		make(argv[1], argc > 3 ? atoll(argv[3]) : 1000000);
		return 0;
	}
	open_store(&b, argv[1]);
	wait_for_index(&b);
	(void)printf("| latest 50 | p50 ms | p99 ms |\n| --- | --- | --- |\n");
	for (size_t i = 0; i < ARRAY_LEN(questions); i++)
		measure(&b, &questions[i], rounds);
	store_close(b.store);
	event_base_free(b.base);
	return 0;
}
