#include "common/metric.h"
#include "worker/docker/operation.h"
#include "tests/unit/test.h"

TEST(every_request_of_ours_has_a_name)
{
	static const struct {
		const char *method, *path;
		enum operation operation;
	} rows[] = {
	    {"GET", "/v1.41/info", OPERATION_INFO},
	    {"GET", "/_ping", OPERATION_INFO},
	    {"GET", "/v1.41/events?filters=x", OPERATION_EVENTS},
	    {"GET", "/v1.41/containers/json?all=1", OPERATION_LIST},
	    {"GET", "/v1.41/containers/json/json", OPERATION_LIST},
	    {"GET", "/v1.41/containers/abc/json", OPERATION_INSPECT},
	    {"POST", "/v1.41/containers/create?name=/start", OPERATION_CREATE},
	    {"POST", "/v1.41/containers/abc/start", OPERATION_START},
	    {"POST", "/v1.41/containers/abc/stop?t=1", OPERATION_STOP},
	    {"POST", "/v1.41/containers/abc/update", OPERATION_UPDATE},
	    {"DELETE", "/v1.41/containers/abc?force=1", OPERATION_REMOVE},
	    {"GET", "/v1.41/images/a/b:c/json", OPERATION_IMAGE},
	    {"POST", "/v1.41/build?t=x", OPERATION_BUILD},
	    {"GET", "/v1.41/volumes", OPERATION_OTHER},
	    {"PUT", "/v1.41/info", OPERATION_OTHER},
	    {"GET", "", OPERATION_OTHER},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(operation_of(rows[i].method, rows[i].path),
		    rows[i].operation);
}

TEST(names_are_those_of_the_list)
{
	const struct metric_label *l =
	    metric_family_at(FAMILY_ENGINE_REQUESTS_TOTAL)->labels;

	assert_int_equal(l[0].count, OPERATION_OTHER + 1);
	assert_string_equal(l[0].values[OPERATION_REMOVE], "remove");
	assert_string_equal(l[0].values[OPERATION_BUILD], "build");
}

TEST(an_end_is_counted_by_status)
{
	static const struct {
		long status;
		const char *code;
	} rows[] = {{200, "200"}, {503, "503"}, {418, "other"}, {-1, "other"},
	    {0, "none"}};
	const struct metric_label *l =
	    metric_family_at(FAMILY_ENGINE_REQUESTS_TOTAL)->labels;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned int at =
		    METRIC_ENGINE_REQUESTS_TOTAL + OPERATION_START * l[1].count;

		operation_ended(OPERATION_START, rows[i].status, 100);
		for (unsigned int k = 0; k < l[1].count; k++)
			if (strcmp(l[1].values[k], rows[i].code) == 0)
				at += k;
		assert_true(metric_get(at) > 0);
	}
	assert_int_equal(metric_get(METRIC_ENGINE_REQUEST_SECONDS +
			     (unsigned int)OPERATION_START * 19),
	    5);
}

TEST_MAIN(NULL, NULL)
