#include "tests/unit/store/history_fixture.h"

/*
 * Each question is answered as going through all runs would answer it: with
 * any filters, sort and order, page by page.
 */

#define RUNS 300
#define ROUNDS 250

/* What is known of each run without the store. */
struct known {
	struct uuid uuid;
	uint64_t tenant;
	unsigned int identifier, sandbox, principal, tool, language;
	enum run_state state;
	enum runlog_reason reason;
	int32_t exit_code;
	int64_t created_ms, duration_ms;
	uint64_t printed, bytes;
	unsigned int words; /* bits: those that it said */
	unsigned int file;  /* it left; 0: none */
	uint64_t number;
};

static const char *const identifiers[] = {"a", "b", "conversation-3"};
static const char *const principals[] = {"", "tok1", "oauth:someone"};
static const char *const tools[] = {"run_sandbox", "execute_code"};
static const char *const languages[] = {"", "python", "bash"};
static const char *const said[] = {"alpha", "beta", "gamma_ray", "Äpfel"};
static const char *const files[] = {
    NULL, "out.txt", "plots/out.txt", "plots/a.png"};

static struct known all[RUNS];
static uint32_t seed;

/* The same in each run of this test. */
static unsigned int
any(unsigned int n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

static void
make_known(struct known *k, uint64_t number)
{
	static const enum runlog_reason reasons[] = {
	    RUNLOG_EXIT, RUNLOG_TIMEOUT, RUNLOG_SIGNAL};

	k->number = number;
	k->tenant = any(4) == 0 ? HISTORY_OTHER : STORE_TENANT_DEFAULT;
	k->identifier = any(ARRAY_LEN(identifiers));
	k->sandbox = 1 + any(3);
	k->principal = any(ARRAY_LEN(principals));
	k->tool = any(ARRAY_LEN(tools));
	k->language = any(ARRAY_LEN(languages));
	k->state = any(10) == 0 ? RUN_STATE_QUEUED :
	    any(3) == 0         ? RUN_STATE_FAILED :
				  RUN_STATE_COMPLETED;
	k->created_ms = 1000000 + (int64_t)any(50) * 1000;
	k->words = any(1u << ARRAY_LEN(said));
	k->file = any(ARRAY_LEN(files));
	k->duration_ms = -1;
	k->exit_code = -1;
	if (k->state == RUN_STATE_QUEUED) {
		k->words = 0;
		k->file = 0;
		return;
	}
	k->reason = reasons[any(ARRAY_LEN(reasons))];
	k->exit_code = (int32_t)any(4) - 1;
	k->duration_ms = any(2) == 0 ? any(10) : any(100000);
	k->printed = any(3) * 100;
	k->bytes = k->printed + (k->file != 0 ? 100 : 0);
}

static void
fill_run(struct store_run *r, const struct known *k)
{
	struct buf text;

	fixture_run(r, k->number, k->sandbox, identifiers[k->identifier]);
	r->tenant = k->tenant;
	r->created_ms = k->created_ms;
	fixture_set(&r->tool, tools[k->tool]);
	fixture_set(&r->principal, principals[k->principal]);
	fixture_set(&r->language, languages[k->language]);
	buf_init(&text, 0);
	(void)buf_printf(&text, "echo");
	for (unsigned int i = 0; i < ARRAY_LEN(said); i++)
		if ((k->words & 1u << i) != 0)
			(void)buf_printf(&text, " (%s)", said[i]);
	(void)buf_printf(&text, "%c", '\0');
	fixture_set(&r->commands[0].shell, (const char *)buf_data(&text));
	buf_clear(&text);
}

static void
end_run(struct fixture *f, struct store_run *r, const struct known *k)
{
	fixture_run_ended(r, k->state);
	r->end_reason = k->reason;
	r->exit_code = k->exit_code;
	r->started_ms = k->created_ms + 5;
	r->ended_ms = r->started_ms + k->duration_ms;
	r->stdout_bytes = k->printed / 2;
	r->stderr_bytes = k->printed - k->printed / 2;
	if (k->file != 0) {
		fixture_run_artifact(r, files[k->file], (uint8_t)k->file);
	}
	fixture_end(f, r);
}

static void
fill(struct fixture *f)
{
	seed = 7;
	put_other_tenant(f);
	for (uint64_t i = 1; i <= 3; i++)
		fixture_put_sandbox(f, i, i == 1 ? "a" : i == 2 ? "b" : "c");
	for (uint64_t i = 0; i < RUNS; i++) {
		struct known *k = &all[i];
		struct store_run r;

		make_known(k, i + 1);
		fill_run(&r, k);
		k->uuid = r.uuid;
		fixture_insert(f, &r);
		if (k->state != RUN_STATE_QUEUED)
			end_run(f, &r, k);
		store_run_clear(&r);
	}
}

/* ---- the reference */

static bool
has_file(const struct known *k, const char *name)
{
	const char *path = files[k->file];
	const char *slash;

	if (path == NULL)
		return false;
	slash = strrchr(path, '/');
	return strcmp(path, name) == 0 ||
	    (slash != NULL && strcmp(slash + 1, name) == 0);
}

static bool
text_passes(const struct known *k, const struct history_filter *f)
{
	if (f->q == NULL)
		return true;
	for (unsigned int i = 0; i < ARRAY_LEN(said); i++)
		if (strstr(f->q, said[i]) != NULL && (k->words & 1u << i) == 0)
			return false;
	return k->state != RUN_STATE_QUEUED;
}

static bool
is_text(const char *want, const char *is)
{
	return want == NULL || strcmp(want, is) == 0;
}

static bool
words_pass(const struct known *k, const struct history_filter *f)
{
	char sandbox[32];

	(void)snprintf(sandbox, sizeof(sandbox), "mcp-%u", k->sandbox);
	return is_text(f->identifier, identifiers[k->identifier]) &&
	    is_text(f->sandbox, sandbox) &&
	    is_text(f->principal, principals[k->principal]) &&
	    is_text(f->tool, tools[k->tool]) &&
	    is_text(f->language, languages[k->language]);
}

static bool
numbers_pass(const struct known *k, const struct history_filter *f)
{
	bool ended = k->state != RUN_STATE_QUEUED;

	/* As long as it has not ended, the database has it as queued. */
	uint32_t states = (f->states & 1u << RUN_STATE_RUNNING) != 0 ?
	    f->states | 1u << RUN_STATE_QUEUED :
	    f->states;

	return (states == 0 || (states & 1u << k->state) != 0) &&
	    (f->end_reason == 0 || k->reason == f->end_reason) &&
	    (!f->has_exit_code || (ended && k->exit_code == f->exit_code)) &&
	    k->created_ms >= f->since_ms &&
	    (f->until_ms == 0 || k->created_ms < f->until_ms) &&
	    (f->min_duration_ms == 0 || k->duration_ms >= f->min_duration_ms) &&
	    (f->max_duration_ms == 0 ||
		(ended && k->duration_ms <= f->max_duration_ms));
}

static bool
passes(const struct known *k, const struct history_query *q)
{
	const struct history_filter *f = &q->filter;

	return k->tenant == STORE_TENANT_DEFAULT && words_pass(k, f) &&
	    numbers_pass(k, f) && text_passes(k, f) &&
	    (f->artifact == NULL || has_file(k, f->artifact)) &&
	    (f->digest == NULL || (k->file != 0 && f->digest[0] == k->file)) &&
	    (q->sort == HISTORY_CREATED || k->state != RUN_STATE_QUEUED);
}

static const struct history_query *sorting;

static int64_t
sort_value(const struct known *k)
{
	return sorting->sort == HISTORY_DURATION ? k->duration_ms :
	    sorting->sort == HISTORY_BYTES       ? (int64_t)k->bytes :
						   0;
}

static int
compare(const void *x, const void *y)
{
	const struct known *a = *(const struct known *const *)x;
	const struct known *b = *(const struct known *const *)y;
	int64_t d = sort_value(a) - sort_value(b);

	if (d == 0)
		d = a->created_ms - b->created_ms;
	if (d == 0)
		d = a->number > b->number ? 1 : -1;
	if (sorting->order == HISTORY_DESCENDING)
		d = -d;
	return d > 0 ? 1 : -1;
}

static size_t
expect(const struct history_query *q, const struct known **out)
{
	size_t n = 0;

	for (size_t i = 0; i < RUNS; i++)
		if (passes(&all[i], q))
			out[n++] = &all[i];
	sorting = q;
	qsort(out, n, sizeof(*out), compare);
	return n;
}

/* ---- questions */

static uint8_t digest[32];

static void
any_filter(struct history_filter *f, unsigned int which)
{
	static const char *const questions[] = {
	    "alpha", "beta gamma_ray", "\"Äpfel\""};

	switch (which) {
	case 0:
		f->identifier = identifiers[any(3)];
		break;
	case 1:
		f->sandbox = any(2) == 0 ? "mcp-1" : "mcp-3";
		break;
	case 2:
		f->principal = principals[any(3)];
		break;
	case 3:
		f->tool = tools[any(2)];
		break;
	case 4:
		f->language = languages[any(3)];
		break;
	case 5:
		f->states = 1 + any(15);
		break;
	case 6:
		f->end_reason = any(2) == 0 ? RUNLOG_EXIT : RUNLOG_TIMEOUT;
		break;
	case 7:
		f->has_exit_code = true;
		f->exit_code = (int32_t)any(4) - 1;
		break;
	case 8:
		f->since_ms = 1000000 + (int64_t)any(50) * 1000;
		break;
	case 9:
		f->until_ms = 1000000 + (int64_t)any(60) * 1000;
		break;
	case 10:
		f->min_duration_ms = any(2) == 0 ? 5 : 20000;
		break;
	case 11:
		f->max_duration_ms = any(2) == 0 ? 4 : 50000;
		break;
	case 12:
		f->artifact = any(2) == 0 ? "out.txt" : "plots/out.txt";
		break;
	case 13:
		digest[0] = (uint8_t)(1 + any(3));
		memset(digest + 1, digest[0], sizeof(digest) - 1);
		f->digest = digest;
		break;
	default:
		f->q = questions[any(3)];
		break;
	}
}

static void
any_query(struct history_query *q, unsigned int round)
{
	unsigned int n = round < 30 ? 1 : any(4);

	*q = (struct history_query){
	    .sort = any(2) == 0 ? HISTORY_CREATED : any(3),
	    .order = any(2),
	    .total = HISTORY_TOTAL,
	    .limit = 1 + any(40)};
	for (unsigned int i = 0; i < n; i++)
		any_filter(&q->filter, round < 30 ? round % 15 : any(15));
}

TEST(any_question_is_answered_as_by_looking_at_all)
{
	const struct known **want = xcalloc(RUNS, sizeof(*want));
	struct answer *a = xcalloc(1, sizeof(*a));
	char cursor[HISTORY_CURSOR_MAX + 1];

	fill(f);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct history_query q;
		size_t n, at = 0;

		any_query(&q, round);
		n = expect(&q, want);
		do {
			ask(f, STORE_TENANT_DEFAULT, &q, a);
			assert_string_equal(a->msg, "");
			assert_true(a->has_total);
			if (a->is_at_least) { /* it may count for so long */
				assert_true(a->total <= n);
			} else if (a->total != n) {
				print_error("round %u\n", round);
				assert_int_equal(a->total, n);
			}
			assert_true(at + a->n <= n);
			for (size_t i = 0; i < a->n; i++, at++)
				assert_memory_equal(&a->ids[i], &want[at]->uuid,
				    sizeof(a->ids[i]));
			memcpy(cursor, a->next, sizeof(cursor));
			q.cursor = cursor;
		} while (a->next[0] != '\0');
		assert_int_equal(at, n);
	}
	free(a);
	free(want);
}

/* The index that an earlier server left, and one that is made of the rows. */
TEST(the_answers_outlive_the_server_and_the_index)
{
	const struct known **want = xcalloc(RUNS, sizeof(*want));
	struct answer *a = xcalloc(1, sizeof(*a));
	const struct history_query q = {.limit = 500};
	AUTO(auto_free) char *path = xasprintf("%s/history.db", f->dir);
	size_t n;

	fill(f);
	n = expect(&q, want);
	for (int round = 0; round < 3; round++) {
		fixture_close(f);
		if (round > 0)
			assert_int_equal(unlink(path), 0);
		fixture_open(f);
		ask(f, STORE_TENANT_DEFAULT, &q, a);
		assert_string_equal(a->msg, "");
		assert_int_equal(a->n, n);
		for (size_t i = 0; i < n; i++)
			assert_memory_equal(
			    &a->ids[i], &want[i]->uuid, sizeof(a->ids[i]));
	}
	free(a);
	free(want);
}

TEST(a_cursor_is_good_for_its_own_question_only)
{
	struct answer *a = xcalloc(1, sizeof(*a));
	struct history_query q = {.limit = 10};
	char cursor[HISTORY_CURSOR_MAX + 1];

	fill(f);
	ask(f, STORE_TENANT_DEFAULT, &q, a);
	memcpy(cursor, a->next, sizeof(cursor));
	q.cursor = cursor;
	ask(f, HISTORY_OTHER, &q, a);
	assert_int_equal(a->rc, ERR_INVAL);
	assert_non_null(strstr(a->msg, "cursor: it belongs to another"));
	q.order = HISTORY_ASCENDING;
	ask(f, STORE_TENANT_DEFAULT, &q, a);
	assert_int_equal(a->rc, ERR_INVAL);
	q.order = HISTORY_DESCENDING;
	q.filter.tool = "run_sandbox";
	ask(f, STORE_TENANT_DEFAULT, &q, a);
	assert_int_equal(a->rc, ERR_INVAL);
	q.cursor = "0123";
	ask(f, STORE_TENANT_DEFAULT, &q, a);
	assert_int_equal(a->rc, ERR_INVAL);
	assert_non_null(strstr(a->msg, "cursor: it is none"));
	free(a);
}

TEST(a_sandbox_has_a_name_and_a_uuid)
{
	struct answer *a = xcalloc(1, sizeof(*a));
	struct history_filter by_name = {.sandbox = "mcp-7"}, by_uuid = {0};
	char text[UUID_TEXT_LEN + 1];
	struct store_sandbox s;
	struct result done = {0};
	struct store_run r;

	fixture_sandbox(&s, 7, "a");
	store_sandbox_put(f->store, &s, result_cb, &done);
	fixture_wait(f, &done.calls, 1);
	uuid_format(&s.uuid, text);
	fixture_put_sandbox(f, 8, "b");
	for (uint64_t i = 1; i <= 4; i++) {
		fixture_run(&r, i, 7 + i % 2, i % 2 == 0 ? "a" : "b");
		fixture_insert(f, &r);
		store_run_clear(&r);
	}
	ask_filter(f, &by_name, 10, a);
	assert_int_equal(a->n, 2);
	by_uuid.sandbox = text;
	ask_filter(f, &by_uuid, 10, a);
	assert_int_equal(a->n, 2);
	uuid_random(&s.uuid);
	uuid_format(&s.uuid, text);
	ask_filter(f, &by_uuid, 10, a);
	assert_int_equal(a->n, 0);
	store_sandbox_clear(&s);
	free(a);
}

TEST_MAIN(fixture_setup, fixture_teardown)
