/* What Prometheus is told, in both forms. */
#include "supervisor/front/exposition.h"
#include "tests/unit/test.h"

static const char *
label_cb(
    enum metric_number family, unsigned int label, unsigned int i, void *arg)
{
	if (family == FAMILY_ENGINE_INFO)
		return label == 0 ? "20.10\"" : "1.41";
	(void)arg;
	return i == 0 ? "a\\b\"c\nx" : NULL;
}

static bool
exemplar_cb(enum metric_number family, unsigned int bucket,
    struct exposition_exemplar *out, void *arg)
{
	(void)arg;
	if (family != FAMILY_RUN_QUEUE_SECONDS || bucket != 1)
		return false;
	*out = (struct exposition_exemplar){
	    .labels = "run_id=\"7\"", .us = 700, .wall_ms = 1234567};
	return true;
}

static char *
write_text(enum exposition_form form)
{
	const struct exposition_words words = {label_cb, exemplar_cb, NULL};
	struct buf b;
	char *text;

	buf_init(&b, 0);
	exposition_write(&b, form, &words);
	text = strndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	assert_non_null(text);
	return text;
}

static void
expect_lines(const char *text, const char *const *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(text, lines[i]) == NULL)
			fail_msg("%s is not in %s", lines[i], text);
}

TEST(the_text_format_has_names_as_they_are)
{
	static const char *const lines[] = {
	    "# HELP mcp_runs_total Runs ended.\n# TYPE mcp_runs_total counter\n"
	    "mcp_runs_total{status=\"completed\"} 2\n",
	    "sandboxd_engine_info{version=\"20.10\\\"\",api=\"1.41\"} 0\n",
	    "sandboxd_tenant_requests_total{tenant=\"a\\\\b\\\"c\\nx\"} 5\n",
	    "sandboxd_run_queue_seconds_bucket{le=\"0.0005\"} 0\n"
	    "sandboxd_run_queue_seconds_bucket{le=\"0.001\"} 1\n",
	    "sandboxd_run_queue_seconds_bucket{le=\"1\"} 1\n",
	    "sandboxd_run_queue_seconds_bucket{le=\"+Inf\"} 2\n"
	    "sandboxd_run_queue_seconds_sum 5000.000700\n"
	    "sandboxd_run_queue_seconds_count 2\n"};
	char *text;

	text = write_text(EXPOSITION_TEXT);
	expect_lines(text, lines, ARRAY_LEN(lines));
	assert_null(strstr(text, "_created"));
	assert_null(strstr(text, "# UNIT"));
	assert_null(strstr(text, "# EOF"));
	assert_null(strstr(text, " # {"));
	free(text);
}

TEST(openmetrics_has_units_beginnings_and_an_end)
{
	static const char *const lines[] = {
	    "# HELP mcp_runs Runs ended.\n# TYPE mcp_runs counter\n"
	    "mcp_runs_total{status=\"completed\"} 2\n"
	    "mcp_runs_created{status=\"completed\"} ",
	    "# TYPE sandboxd_run_queue_seconds histogram\n"
	    "# UNIT sandboxd_run_queue_seconds seconds\n",
	    "sandboxd_run_queue_seconds_bucket{le=\"0.001\"} 1 "
	    "# {run_id=\"7\"} 0.000700 1234.567\n",
	    "sandboxd_run_queue_seconds_bucket{le=\"1.0\"} 1\n",
	    "sandboxd_run_queue_seconds_created "};
	char *text;
	size_t n;

	text = write_text(EXPOSITION_OPENMETRICS);
	expect_lines(text, lines, ARRAY_LEN(lines));
	n = strlen(text);
	assert_string_equal(text + n - 7, "\n# EOF\n");
	free(text);
}

TEST(what_is_not_known_and_what_never_happened_is_left_out)
{
	char *text;

	metric_set(METRIC_DISK_FREE_BYTES + 1, METRIC_UNKNOWN);
	text = write_text(EXPOSITION_TEXT);
	assert_non_null(strstr(text, "_free_bytes{dir=\"data\"} 0\n"));
	assert_null(strstr(text, "_free_bytes{dir=\"artifacts\"}"));
	assert_null(strstr(text, "refusals_total{"));
	assert_null(strstr(text, "sandboxd_http_request_seconds_bucket"));
	assert_null(strstr(text, "18446744073709551615"));
	free(text);
}

TEST(the_form_is_the_one_that_the_client_likes_better)
{
	static const struct {
		const char *accept;
		enum exposition_form form;
	} rows[] = {{NULL, EXPOSITION_TEXT}, {"", EXPOSITION_TEXT},
	    {"*/*", EXPOSITION_TEXT}, {"text/plain", EXPOSITION_TEXT},
	    {"application/openmetrics-text", EXPOSITION_OPENMETRICS},
	    {"application/openmetrics-text;version=1.0.0,application/"
	     "openmetrics-text;version=0.0.1;q=0.75,text/"
	     "plain;version=0.0.4;q=0.5,*/*;q=0.1",
		EXPOSITION_OPENMETRICS},
	    {"Application/OpenMetrics-Text; version=1.0.0 ; q=0.2, "
	     "text/plain;q=0.3",
		EXPOSITION_TEXT},
	    {"text/plain;q=0.3,application/openmetrics-text;q=1.000",
		EXPOSITION_OPENMETRICS},
	    {"application/openmetrics-text;version=0.0.1", EXPOSITION_TEXT},
	    {"application/openmetrics-text;q=0", EXPOSITION_TEXT},
	    {"application/openmetrics-textual", EXPOSITION_TEXT},
	    {"application/openmetrics-text;;;", EXPOSITION_OPENMETRICS},
	    {",,;q=,", EXPOSITION_TEXT}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (exposition_choose(rows[i].accept) != rows[i].form)
			fail_msg("%s", rows[i].accept);
}

static int
setup(void **state)
{
	(void)state;
	metric_clear();
	metric_add(METRIC_MCP_RUNS_TOTAL, 2);
	metric_add(METRIC_TENANT_REQUESTS_TOTAL, 5);
	(void)metric_observe(FAMILY_RUN_QUEUE_SECONDS, 0, 700);
	(void)metric_observe(FAMILY_RUN_QUEUE_SECONDS, 0, UINT64_C(5000000000));
	return 0;
}

TEST_MAIN(setup, NULL)
