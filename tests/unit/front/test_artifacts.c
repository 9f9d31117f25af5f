#include "tests/unit/front/fixture.h"

/* GET /artifacts/{identifier}/{run}/{path} */

#define TEXT "<script>alert(1)</script>0123456789"

static char *run_id;
static char etag[80];

static int
setup_run(void **state)
{
	(void)state;
	fixture_open(NULL);
	fx.worker.at_once = true;
	fx.worker.said = "";
	fx.worker.artifact = TEXT;
	fx.worker.artifact_path = "dir/a b\"\xc3\xa9.html";
	run_id = fixture_start_run();
	fixture_wait_run_state(run_id, "completed");
	return 0;
}

static int
teardown_run(void **state)
{
	(void)state;
	free(run_id);
	fixture_close();
	return 0;
}

static void
get(const char *method, const char *run, const char *path, const char *more,
    int status)
{
	char *all = xasprintf("/artifacts/box/%s/%s", run, path);

	fixture_expect(method, all, more, status);
	free(all);
}

#define FILE_PATH "dir/a%20b%22%C3%A9.html"

static void
take_etag(void)
{
	const char *p = strstr(raw_text(&fx.c), "\r\nETag: ");

	assert_non_null(p);
	(void)snprintf(
	    etag, sizeof(etag), "%.*s", (int)strcspn(p + 8, "\r"), p + 8);
}

TEST(a_file_is_given_as_an_attachment_of_no_type)
{
	get("GET", run_id, FILE_PATH, "", 200);
	fixture_has("\r\n\r\n" TEXT);
	fixture_has("Content-Type: application/octet-stream\r\n");
	fixture_has("X-Content-Type-Options: nosniff\r\n");
	fixture_has("Content-Security-Policy: sandbox; default-src 'none'\r\n");
	fixture_has(
	    "Content-Disposition: attachment; filename=\"a_b___.html\"; "
	    "filename*=UTF-8''a%20b%22%C3%A9.html\r\n");
	fixture_has("Accept-Ranges: bytes\r\n");
	fixture_has("Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\n");
	get("GET", "latest", FILE_PATH, "", 200);
	fixture_has(TEXT);
	get("HEAD", run_id, FILE_PATH, "", 200);
	fixture_has("Content-Length: 35\r\n");
	assert_false(raw_has(&fx.c, "script"));
}

TEST(what_the_client_has_is_not_sent_again)
{
	char more[200];

	get("GET", run_id, FILE_PATH, "", 200);
	take_etag();
	(void)snprintf(more, sizeof(more), "If-None-Match: %s\r\n", etag);
	get("GET", run_id, FILE_PATH, more, 304);
	assert_false(raw_has(&fx.c, "script"));
	(void)snprintf(
	    more, sizeof(more), "If-None-Match: \"x\", W/%s\r\n", etag);
	get("GET", run_id, FILE_PATH, more, 304);
	get("GET", run_id, FILE_PATH, "If-None-Match: *\r\n", 304);
	get("GET", run_id, FILE_PATH, "If-None-Match: \"x\"\r\n", 200);
	get("GET", run_id, FILE_PATH,
	    "If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT\r\n", 304);
	get("GET", run_id, FILE_PATH,
	    "If-Modified-Since: Tue, 14 Nov 2023 22:13:19 GMT\r\n", 200);
	get("GET", run_id, FILE_PATH, "If-Modified-Since: soon\r\n", 200);
}

TEST(a_range_is_sent_alone)
{
	char more[200];

	get("GET", run_id, FILE_PATH, "Range: bytes=25-27\r\n", 206);
	fixture_has("Content-Range: bytes 25-27/35\r\n");
	fixture_has("\r\n\r\n012");
	take_etag();
	get("GET", run_id, FILE_PATH, "Range: bytes=-2\r\n", 206);
	fixture_has("\r\n\r\n89");
	get("GET", run_id, FILE_PATH, "Range: bytes=35-\r\n", 416);
	fixture_has("Content-Range: bytes */35\r\n");
	get("GET", run_id, FILE_PATH, "Range: bytes=0-1,3-4\r\n", 200);
	(void)snprintf(
	    more, sizeof(more), "Range: bytes=25-27\r\nIf-Range: %s\r\n", etag);
	get("GET", run_id, FILE_PATH, more, 206);
	get("GET", run_id, FILE_PATH,
	    "Range: bytes=25-27\r\nIf-Range: \"old\"\r\n", 200);
	fixture_expect("GET", "/healthz", "", 200);
}

TEST(what_is_not_there_is_not_found)
{
	static const char *const paths[] = {"/artifacts/", "/artifacts/box",
	    "/artifacts/box/latest", "/artifacts/box/latest/",
	    "/artifacts/box/latest/none", "/artifacts/box/latest/dir",
	    ("/artifacts/other/latest/" FILE_PATH),
	    ("/artifacts/box/nonsense/" FILE_PATH),
	    ("/artifacts/box/00000000-0000-4000-8000-000000000000/" FILE_PATH),
	    "/artifacts/box/latest/../../../../etc/passwd",
	    "/artifacts/box/latest/%2e%2e/%2e%2e/etc/passwd",
	    "/artifacts/box/latest/dir/..%2f..%2fetc%2fpasswd",
	    "/artifacts/box/latest/%00", "/artifacts/box/latest/%",
	    "/artifacts/box/latest/%zz", "/artifacts/box/latest//etc/passwd",
	    "/artifacts/box/latest/%2Fetc%2Fpasswd",
	    ("/artifacts/../box/latest/" FILE_PATH),
	    "/artifacts/box/latest/%252e%252e/x", "/artifacts/box/latest/%ff"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		fixture_expect("GET", paths[i], "", 404);
		fixture_has("\"code\":\"not_found\"");
	}
}

TEST(asking_and_leaving_is_safe)
{
	char *path = xasprintf("/artifacts/box/%s/%s", run_id, FILE_PATH);

	fixture_send("GET", path, "", "");
	(void)event_base_loop(fx.base, EVLOOP_NONBLOCK);
	fixture_reconnect();
	fixture_expect("GET", path, "", 200);
	free(path);
}

TEST_MAIN(setup_run, teardown_run)
