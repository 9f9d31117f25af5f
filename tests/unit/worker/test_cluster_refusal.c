#include "worker/kubernetes/cluster_refusal.h"

#include <stdio.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"
#include "worker/kubernetes/rights.h"
#include "worker/kubernetes/watch_line.h"

/* ---- refusals, as a real cluster words them */

#define STATUS(code, reason, message, details)                                 \
	"{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"" message   \
	"\",\"reason\":\"" reason "\",\"details\":{" details                   \
	"},\"code\":" code "}"
#define NAMED "\"name\":\"x\",\"kind\":\"pods\""

static int
judge(const char *method, long status, const char *body, struct err *e)
{
	AUTO(auto_json) json_t *json = json_loads(body, 0, NULL);
	struct cluster_refusal_said said;

	cluster_refusal_read(json, body, strlen(body), &said);
	return cluster_refusal_judge(&said,
	    &(struct cluster_refusal_asked){.method = method,
		.path = "/api/v1/namespaces/sbx/pods?a=b",
		.where = "https://k",
		.status = status},
	    e);
}

TEST(refusals_are_told_apart)
{
	static const struct {
		const char *method;
		long status;
		const char *body;
		int rc;
		const char *words;
	} rows[] = {
	    {"GET", 401, STATUS("401", "Unauthorized", "Unauthorized", ""),
		ERR_BACKEND, "does not take our credentials"},
	    {"POST", 403,
		STATUS("403", "Forbidden",
		    "pods is forbidden: User \\\"u\\\" cannot create resource "
		    "\\\"pods\\\" in API group \\\"\\\"",
		    NAMED),
		ERR_BACKEND,
		"a right is missing in the cluster for POST "
		"/api/v1/namespaces/sbx/pods: pods is"},
	    {"POST", 403,
		STATUS("403", "", "pods \\\"n1\\\" is forbidden: ", NAMED),
		ERR_BACKEND, "a right is missing"},
	    {"POST", 403,
		STATUS("403", "Forbidden",
		    "pods \\\"x\\\" is forbidden: exceeded quota: q", NAMED),
		ERR_QUOTA, "the cluster refuses it: pods \"x\""},
	    {"POST", 400,
		STATUS("400", "BadRequest",
		    "admission webhook \\\"w\\\" denied the request: no", ""),
		ERR_POLICY, "denied the request: no"},
	    {"POST", 422,
		STATUS("422", "Invalid",
		    "ValidatingAdmissionPolicy 'p' with binding 'b' denied "
		    "request: no",
		    ""),
		ERR_POLICY, "denied request: no"},
	    {"GET", 403, "", ERR_BACKEND, "(403) without a word"},
	    {"GET", 404, STATUS("404", "NotFound", "no pod", NAMED),
		ERR_NOTFOUND, "the cluster says: no pod"},
	    {"POST", 404,
		STATUS("404", "NotFound", "namespaces \\\"n\\\" not found",
		    "\"name\":\"n\",\"kind\":\"namespaces\""),
		ERR_BACKEND, "KUBERNETES_SANDBOX_NAMESPACE"},
	    {"PATCH", 404,
		STATUS("404", "NotFound",
		    "the server could not find the requested resource", ""),
		ERR_BACKEND, "too old for it"},
	    {"GET", 404, "404 page not found", ERR_BACKEND, "too old for it"},
	    {"POST", 409, STATUS("409", "AlreadyExists", "there", NAMED),
		ERR_CONFLICT, "with 409: there"},
	    {"POST", 422, STATUS("422", "Invalid", "bad", NAMED), ERR_BACKEND,
		"with 422: bad"},
	    {"POST", 504, STATUS("504", "Timeout", "late", ""), ERR_LOST,
		"with 504: late"},
	    {"DELETE", 502, "<html>", ERR_LOST, "with 502: <html>"},
	    {"POST", 503, STATUS("503", "ServiceUnavailable", "no", ""),
		ERR_BACKEND, "with 503: no"},
	    {"GET", 500, "", ERR_BACKEND, "with 500: no words"},
	    {"GET", 500,
		"a\x01\n\xff"
		"b",
		ERR_BACKEND, "with 500: a b"}};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (judge(rows[i].method, rows[i].status, rows[i].body, &e) !=
			rows[i].rc ||
		    e.code != rows[i].rc ||
		    strstr(e.msg, rows[i].words) == NULL)
			fail_msg("%s: %d %s", rows[i].body, e.code, e.msg);
}

TEST(what_a_quota_or_a_range_forbids_is_told_apart_from_the_rest)
{
	static const struct {
		const char *message;
		int rc;
	} rows[] = {{"exceeded quota: q, requested: pods=1", ERR_QUOTA},
	    {"failed quota: q: must specify limits.cpu for: c", ERR_QUOTA},
	    {"maximum cpu usage per Container is 1, but limit is 2", ERR_QUOTA},
	    {"[minimum cpu usage per Pod is 1, but request is 500m, maximum "
	     "memory usage per Pod is 1Gi, but limit is 2Gi]",
		ERR_QUOTA},
	    {"cpu max limit to request ratio per Container is 2, but provided "
	     "ratio is 3",
		ERR_QUOTA},
	    {"violates PodSecurity \\\"baseline:latest\\\": privileged",
		ERR_POLICY}};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO(auto_free)
		char *body =
		    xasprintf(STATUS("403", "Forbidden",
				  "pods \\\"x\\\" is forbidden: %s", NAMED),
			rows[i].message);

		assert_int_equal(judge("POST", 403, body, &e), rows[i].rc);
	}
}

TEST(a_wait_is_read_and_bounded)
{
	static const struct {
		const char *said;
		uint32_t wait_s;
	} rows[] = {{"\"retryAfterSeconds\":7", 7},
	    {"\"retryAfterSeconds\":-7", 0}, {"\"retryAfterSeconds\":\"7\"", 0},
	    {"\"retryAfterSeconds\":99999999999", 3600}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char body[256];
		json_t *json;
		struct cluster_refusal_said said;

		(void)snprintf(body, sizeof(body),
		    "{\"kind\":\"Status\",\"details\":{%s}}", rows[i].said);
		json = json_loads(body, 0, NULL);
		cluster_refusal_read(json, "", 0, &said);
		assert_int_equal(said.retry_s, rows[i].wait_s);
		json_decref(json);
	}
}

/* ---- lines of watches */

TEST(a_watch_says_what_happened)
{
	static const struct {
		const char *line;
		enum watch_line_kind kind;
		const char *version, *why;
	} rows[] = {{"{\"type\":\"ADDED\",\"object\":{\"metadata\":"
		     "{\"resourceVersion\":\"5\"}}}",
			WATCH_THERE, "5", ""},
	    {"{\"type\":\"MODIFIED\"}", WATCH_THERE, "", ""},
	    {"{\"type\":\"DELETED\",\"object\":[]}", WATCH_GONE, "", ""},
	    {"{\"type\":\"BOOKMARK\"}", WATCH_BOOKMARK, "", ""},
	    {"{\"type\":\"ERROR\",\"object\":{\"code\":410,"
	     "\"message\":\"too old\"}}",
		WATCH_EXPIRED, "", "too old"},
	    {"{\"type\":\"ERROR\",\"object\":{\"code\":500,"
	     "\"message\":\"a\\nb\"}}",
		WATCH_ERROR, "", "a b"},
	    {"{\"type\":7}", WATCH_OTHER, "", ""}, {"[]", WATCH_OTHER, "", ""}};
	struct watch_line l;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(
		    watch_line_read(rows[i].line, strlen(rows[i].line), &l, &e),
		    0);
		assert_int_equal(l.kind, rows[i].kind);
		assert_string_equal(l.version, rows[i].version);
		assert_string_equal(l.why, rows[i].why);
		watch_line_clear(&l);
	}
	assert_int_equal(watch_line_read("{\"type\":", 8, &l, &e), ERR_PARSE);
}

/* ---- rights */

static void
compare(const char *rules, struct rights_found *out)
{
	static const struct rights_need needs[] = {{"create", "", "pods"},
	    {"create", "", "pods/exec"},
	    {"create", "networking.k8s.io", "networkpolicies"}};
	char text[1024];
	json_t *review;

	(void)snprintf(text, sizeof(text),
	    "{\"status\":{\"resourceRules\":[%s],\"incomplete\":false}}",
	    rules);
	review = json_loads(text, 0, NULL);
	rights_compare(review, needs, ARRAY_LEN(needs), out);
	json_decref(review);
}

TEST(rights_are_compared_as_a_cluster_does)
{
	static const struct {
		const char *rules, *missing;
	} rows[] = {
	    {"", "create pods, create pods/exec, create networkpolicies"},
	    {"{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],"
	     "\"resources\":[\"*\"]}",
		""},
	    {"{\"verbs\":[\"get\",\"create\"],\"apiGroups\":[\"\"],"
	     "\"resources\":[\"pods\",\"networkpolicies\"]}",
		"create pods/exec, create networkpolicies"},
	    {"{\"verbs\":[\"create\"],\"apiGroups\":[\"\"],"
	     "\"resources\":[\"*/exec\",\"pods\"]}",
		"create networkpolicies"},
	    {"{\"verbs\":[\"create\"],\"apiGroups\":[\"\"],\"resources\":"
	     "[\"pods\"],\"resourceNames\":[\"one\"]}",
		"create pods, create pods/exec, create networkpolicies"}};
	struct rights_found found;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		compare(rows[i].rules, &found);
		if (strcmp(found.missing, rows[i].missing) != 0)
			fail_msg("%s: %s", rows[i].rules, found.missing);
		assert_false(found.is_hint);
	}
}

TEST_MAIN(NULL, NULL)
