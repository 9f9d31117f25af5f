/* fuzz_cluster.c - whatever an API server may answer.  The first byte says
 * which question it answers. libs: worker common */
#include "common/js.h"
#include "tests/fuzz/fuzz.h"
#include "worker/kubernetes/rights.h"
#include "worker/kubernetes/cluster_refusal.h"
#include "worker/kubernetes/watch_line.h"

#define DEPTH_MAX 64

static void
check_text(const char *s, size_t max)
{
	size_t n = strnlen(s, max);

	REQUIRE(n != max);
	for (size_t i = 0; i < n; i++)
		REQUIRE((unsigned char)s[i] >= 0x20 && s[i] != 0x7f);
}

static void
read_line(const char *line, size_t n)
{
	struct watch_line l;
	struct err e;

	if (watch_line_read(line, n, &l, &e) != 0)
		return;
	REQUIRE(l.version != NULL);
	check_text(l.why, sizeof(l.why));
	watch_line_clear(&l);
}

static void
read_refusal(const char *body, size_t n, long status)
{
	AUTO(auto_json) json_t *json = NULL;
	struct cluster_refusal_said said;
	struct err e;
	int rc;

	if (js_parse(body, n, n, DEPTH_MAX, &json, NULL) != 0)
		json = NULL;
	cluster_refusal_read(json, body, n, &said);
	check_text(said.reason, sizeof(said.reason));
	check_text(said.message, sizeof(said.message));
	check_text(said.kind, sizeof(said.kind));
	rc = cluster_refusal_judge(&said,
	    &(struct cluster_refusal_asked){.method = "POST",
		.path = "/x",
		.where = "https://k",
		.status = status},
	    &e);
	REQUIRE(rc < 0 && rc == e.code);
	check_text(e.msg, sizeof(e.msg));
}

static void
read_rights(const char *body, size_t n)
{
	static const struct rights_need needs[] = {
	    {"create", "", "pods"}, {"create", "", "pods/exec"}};
	AUTO(auto_json) json_t *json = NULL;
	struct rights_found found;

	if (js_parse(body, n, n, DEPTH_MAX, &json, NULL) != 0)
		return;
	rights_compare(json, needs, ARRAY_LEN(needs), &found);
	check_text(found.missing, sizeof(found.missing));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const long statuses[] = {400, 401, 403, 404, 409, 429, 500, 504};
	char *text;

	if (size == 0)
		return 0;
	text = xstrndup((const char *)data + 1, size - 1);
	if (data[0] % 3 == 0)
		read_line(text, strlen(text));
	else if (data[0] % 3 == 1)
		read_refusal(text, strlen(text),
		    statuses[data[0] / 3 % ARRAY_LEN(statuses)]);
	else
		read_rights(text, strlen(text));
	free(text);
	return 0;
}
