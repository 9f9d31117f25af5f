#include "common/metric.h"
#include "worker/docker/docker.h"
#include "worker/http/api.h"
#include "tests/unit/test.h"

/* What of the engine's answers is counted, and under which words. */

static const struct metric_label *
labels(void)
{
	return metric_family_at(FAMILY_ENGINE_REQUESTS_TOTAL)->labels;
}

static unsigned int
place_of(const struct metric_label *l, const char *word)
{
	unsigned int at = 0;

	while (at < l->count && strcmp(l->values[at], word) != 0)
		at++;
	assert_true(at < l->count);
	return at;
}

/* How many requests of such words were counted. */
static uint64_t
counted(const char *operation, const char *code)
{
	const struct metric_label *l = labels();

	return metric_get(METRIC_ENGINE_REQUESTS_TOTAL +
	    place_of(&l[0], operation) * l[1].count + place_of(&l[1], code));
}

TEST(every_request_of_ours_has_a_name)
{
	static const struct {
		const char *method, *path, *operation;
	} rows[] = {
	    {"GET", "/v1.41/info", "info"},
	    {"GET", "/_ping", "info"},
	    {"GET", "/v1.41/events?filters=x", "events"},
	    {"GET", "/v1.41/containers/json?all=1", "list"},
	    {"GET", "/v1.41/containers/json/json", "list"},
	    {"GET", "/v1.41/containers/abc/json", "inspect"},
	    {"POST", "/v1.41/containers/create?name=/start", "create"},
	    {"POST", "/v1.41/containers/abc/start", "start"},
	    {"POST", "/v1.41/containers/abc/stop?t=1", "stop"},
	    {"POST", "/v1.41/containers/abc/update", "update"},
	    {"DELETE", "/v1.41/containers/abc?force=1", "remove"},
	    {"GET", "/v1.41/images/a/b:c/json", "image"},
	    {"POST", "/v1.41/build?t=x", "build"},
	    {"GET", "/v1.41/volumes", "other"},
	    {"PUT", "/v1.41/info", "other"},
	    {"GET", "", "other"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t before = counted(rows[i].operation, "404");

		docker_server.on_ended(rows[i].method, rows[i].path, 404, 100);
		assert_int_equal(counted(rows[i].operation, "404"), before + 1);
	}
}

TEST(an_end_is_counted_by_status)
{
	static const struct {
		long status;
		const char *code;
	} rows[] = {{200, "200"}, {503, "503"}, {418, "other"}, {-1, "other"},
	    {0, "none"}};
	unsigned int started =
	    METRIC_ENGINE_REQUEST_SECONDS + place_of(labels(), "start") * 19;
	uint64_t before = metric_get(started);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		docker_server.on_ended(
		    "POST", "/v1.41/containers/abc/start", rows[i].status, 100);
		assert_true(counted("start", rows[i].code) > 0);
	}
	assert_int_equal(metric_get(started), before + 5);
}

TEST_MAIN(NULL, NULL)
