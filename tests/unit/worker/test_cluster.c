#include "tests/unit/worker/cluster_ground.h"

#include "common/metric.h"

#define LONG_MS 20000

/* What is answered one after the other; the last for good. */
static const char *const *answers;

static const char *
answer_next(struct fake_engine *f, const char *method, const char *path)
{
	const char *text = answers[0];

	(void)f;
	(void)method;
	(void)path;
	if (answers[1] != NULL)
		answers++;
	return text;
}

static void
server_says(struct ground *g, const char *const *texts)
{
	answers = texts;
	g->server.answer = answer_next;
}

#define OK "HTTP/1.1 200 X\r\nContent-Length: 15\r\n\r\n{\"kind\":\"Good\"}"
#define REFUSED(status, more)                                                  \
	"HTTP/1.1 " status " X\r\n" more "Content-Length: 0\r\n\r\n"

TEST(a_request_bears_the_token_and_its_headers)
{
	static const char *const texts[] = {OK, NULL};
	static const char *const headers[] = {"X-Mine: 1", NULL};
	struct said s;

	server_says(g, texts);
	(void)ask_start(g, &s,
	    (struct cluster_ask){.method = "POST",
		.path = "/x?a=b",
		.body = "{}",
		.headers = headers,
		.timeout_ms = LONG_MS});
	assert_false(s.done);
	fixture_loop(g->base, &s.done);
	assert_int_equal(s.rc, 0);
	assert_string_equal(s.kind, "Good");
	assert_string_equal(g->server.last, "POST /prefix/x?a=b");
	assert_non_null(
	    strstr(g->server.head, "Authorization: Bearer secret-1\r\n"));
	assert_non_null(strstr(g->server.head, "X-Mine: 1\r\n"));
	assert_non_null(strstr(g->server.head, "Accept: application/json\r\n"));
	assert_string_equal(g->server.body, "{}");
	assert_string_equal(cluster_namespace(g->cluster), "boxes");
	assert_string_equal(cluster_files(g->cluster)[0], "/tmp");
	assert_null(cluster_files(g->cluster)[1]);
}

TEST(a_renewed_token_is_taken_from_the_next_request_on)
{
	static const char *const texts[] = {OK, NULL};
	struct said s;

	server_says(g, texts);
	ask(g, &s, "GET", LONG_MS);
	(void)unlink(g->token);
	ask(g, &s, "GET", LONG_MS);
	assert_non_null(strstr(g->server.head, "Bearer secret-1"));
	write_text(g->token, "secret-22");
	ask(g, &s, "GET", LONG_MS);
	assert_non_null(strstr(g->server.head, "Bearer secret-22"));
	write_text(g->token, "\n");
	ask(g, &s, "GET", LONG_MS);
	assert_non_null(strstr(g->server.head, "Bearer secret-22"));
}

/* The token of the file changes after the request was sent. */
static const char *
answer_renewed(struct fake_engine *f, const char *method, const char *path)
{
	struct ground *g = CONTAINER_OF(f, struct ground, server);

	(void)method;
	(void)path;
	if (strstr(f->head, "secret-2") != NULL)
		return OK;
	write_text(g->token, "secret-2");
	return REFUSED("401", "");
}

TEST(a_refused_token_is_read_again_at_once)
{
	static const char *const texts[] = {REFUSED("401", ""), NULL};
	struct said s;

	g->server.answer = answer_renewed;
	ask(g, &s, "POST", 0);
	assert_int_equal(s.rc, 0);
	assert_int_equal(g->server.asked, 2);
	server_says(g, texts);
	ask(g, &s, "POST", LONG_MS);
	assert_int_equal(s.rc, ERR_BACKEND);
	assert_non_null(strstr(s.why, "does not take our credentials (401)"));
	assert_int_equal(g->server.asked, 3);
}

TEST(what_was_not_done_is_asked_again)
{
	static const char *const texts[] = {
	    REFUSED("429", ""), REFUSED("429", "Retry-After: 0\r\n"), OK, NULL};
	static const char *const away[] = {
	    REFUSED("503", ""), REFUSED("504", ""), OK, NULL};
	struct said s;

	server_says(g, texts);
	ask(g, &s, "POST", LONG_MS);
	assert_int_equal(s.rc, 0);
	server_says(g, away);
	ask(g, &s, "GET", LONG_MS);
	assert_int_equal(s.rc, 0);
	assert_int_equal(g->server.asked, 6);
}

TEST(what_may_have_been_done_is_not_asked_again)
{
	static const char *const late[] = {REFUSED("504", ""), NULL};
	struct said s;

	server_says(g, late);
	ask(g, &s, "POST", LONG_MS);
	assert_int_equal(s.rc, ERR_LOST);
	ask(g, &s, "DELETE", LONG_MS);
	assert_int_equal(s.rc, ERR_LOST);
	assert_int_equal(g->server.asked, 2);
}

TEST(a_wait_stays_within_the_time_of_the_call)
{
	static const char *const texts[] = {
	    REFUSED("429", "Retry-After: 60\r\n"), NULL};
	struct said s;

	server_says(g, texts);
	ask(g, &s, "GET", LONG_MS);
	assert_int_equal(s.status, 429);
	ask(g, &s, "GET", 0);
	assert_int_equal(s.status, 429);
	assert_int_equal(g->server.asked, 2);
}

static const char *
answer_nothing(struct fake_engine *f, const char *method, const char *path)
{
	(void)f;
	(void)method;
	(void)path;
	return NULL;
}

TEST(a_write_without_an_answer_is_lost_and_a_read_is_not)
{
	struct said s;

	g->server.answer = answer_nothing;
	ask(g, &s, "POST", 50);
	assert_int_equal(s.rc, ERR_LOST);
	assert_non_null(strstr(s.why, "did not answer POST /prefix/x within"));
	ask(g, &s, "GET", 50);
	assert_int_equal(s.rc, ERR_BACKEND);
}

TEST(calls_end_with_the_cluster)
{
	static const char *const texts[] = {
	    REFUSED("429", "Retry-After: 10\r\n"), NULL};
	struct said open, waiting, cancelled;
	struct cluster_call *c;

	server_says(g, texts);
	(void)ask_start(g, &waiting,
	    (struct cluster_ask){
		.method = "GET", .path = "/x", .timeout_ms = LONG_MS});
	while (g->server.asked == 0)
		fixture_settle(g->base);
	fixture_settle(g->base);
	g->server.answer = answer_nothing;
	c = ask_start(
	    g, &cancelled, (struct cluster_ask){.method = "GET", .path = "/x"});
	(void)ask_start(
	    g, &open, (struct cluster_ask){.method = "GET", .path = "/x"});
	cluster_cancel(c);
	cluster_free(g->cluster);
	g->cluster = NULL;
	assert_int_equal(waiting.rc, ERR_WRONG_STATE);
	assert_int_equal(open.rc, ERR_WRONG_STATE);
	assert_false(cancelled.done);
}

static struct cluster_call *cancelled_by_line;

static void
cancel_cb(const char *line, size_t n, void *arg)
{
	(void)line;
	(void)n;
	cluster_cancel(cancelled_by_line);
	cancelled_by_line = NULL;
	(void)arg;
}

TEST(lines_of_a_stream_may_cancel_it)
{
	static const char *const texts[] = {
	    "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "4\r\na\nb\n\r\n",
	    NULL};
	struct said s;

	server_says(g, texts);
	cancelled_by_line = ask_start(g, &s,
	    (struct cluster_ask){
		.method = "GET", .path = "/x", .on_line = cancel_cb});
	while (cancelled_by_line != NULL)
		fixture_settle(g->base);
	while (g->server.nconns > 0)
		fixture_settle(g->base);
	assert_false(s.done);
}

TEST(requests_are_counted_by_kind)
{
	static const char *const texts[] = {OK, NULL};
	static const struct {
		const char *method, *path;
		unsigned int operation; /* its place among the label's words */
	} rows[] = {{"GET", "/version", 0},
	    {"GET", "/api/v1/namespaces/a/pods?watch=true&limit=1", 1},
	    {"GET", "/api/v1/namespaces/a/pods?limit=1", 2},
	    {"GET", "/api/v1/namespaces/a/pods/b", 3},
	    {"POST", "/api/v1/namespaces/a/pods?x=y", 4},
	    {"DELETE", "/api/v1/namespaces/a/pods/b", 7},
	    {"PATCH", "/api/v1/namespaces/a/pods/b/resize", 8},
	    {"GET", "/api/v1/namespaces/a/pods/b/exec?command=x", 9},
	    {"GET", "/other", 12}};
	struct said s;

	server_says(g, texts);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned int at =
		    METRIC_ENGINE_REQUESTS_TOTAL + rows[i].operation * 13 + 1;
		uint64_t before = metric_get(at);

		(void)ask_start(g, &s,
		    (struct cluster_ask){.method = rows[i].method,
			.path = rows[i].path,
			.timeout_ms = LONG_MS});
		fixture_loop(g->base, &s.done);
		if (metric_get(at) != before + 1)
			fail_msg("%s %s", rows[i].method, rows[i].path);
	}
}

TEST(what_is_no_cluster_is_not_opened)
{
	struct cluster *k;
	struct err e;

	write_text(g->config,
	    "current-context: x\n"
	    "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
	    "clusters: [{name: c, cluster: {server: 'https://x', "
	    "certificate-authority-data: UEVN}}]\n"
	    "users: [{name: u, user: {token: secret}}]\n");
	assert_int_equal(
	    cluster_open(g->base,
		&(struct cluster_setup){.kubeconfig = g->config}, &k, &e),
	    ERR_INVAL);
	assert_non_null(strstr(e.msg, "no certificate in PEM"));
	assert_null(strstr(e.msg, "secret"));
}

TEST_MAIN(ground_setup, ground_teardown)
