#include "supervisor/keys/fetch.h"

#include <curl/curl.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"

#define TOTAL_MS 10000L
#define CONNECT_MS 5000L
#define LOOK_MS 10 /* one request in minutes: no need of its events */

struct fetch {
	CURLM *multi;
	CURL *easy;
	struct timer *look;
	struct buf body;
	char *url; /* NULL: nothing is under way */
	char *ca_file;
	char curl_why[CURL_ERROR_SIZE];
	fetch_done_cb done;
	void *arg;
};

static size_t
write_cb(const char *p, size_t size, size_t n, void *arg)
{
	struct fetch *f = arg;

	return buf_append(&f->body, p, size * n) == 0 ? size * n : 0;
}

static int
judge(struct fetch *f, CURLcode code, struct err *e)
{
	long status = 0;

	(void)curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_WRITE_ERROR || code == CURLE_FILESIZE_EXCEEDED)
		return err_set(e, ERR_BACKEND, "%.200s has more than %d bytes",
		    f->url, FETCH_MAX);
	if (code != CURLE_OK)
		return err_set(e, ERR_BACKEND, "%.200s: %.200s", f->url,
		    f->curl_why[0] != '\0' ? f->curl_why :
					     curl_easy_strerror(code));
	if (status != 200)
		return err_set(e,
		    status / 100 == 4 ? ERR_NOTFOUND : ERR_BACKEND,
		    "%.200s answers with status %ld", f->url, status);
	return 0;
}

static void
finish(struct fetch *f, CURLcode code)
{
	struct buf body = f->body;
	struct err e = {0};
	int rc = judge(f, code, &e);

	(void)curl_multi_remove_handle(f->multi, f->easy);
	curl_easy_cleanup(f->easy);
	f->easy = NULL;
	free(f->url);
	f->url = NULL;
	buf_init(&f->body, FETCH_MAX);
	f->done(rc, &body, &e, f->arg); /* may start the next */
	buf_clear(&body);
}

static void
look_cb(void *arg)
{
	struct fetch *f = arg;
	const CURLMsg *m;
	int running, left;

	(void)curl_multi_perform(f->multi, &running);
	m = curl_multi_info_read(f->multi, &left);
	if (m != NULL && m->msg == CURLMSG_DONE)
		finish(f, m->data.result);
	else
		timer_set_ms(f->look, LOOK_MS);
}

struct fetch *
fetch_new(
    struct event_base *base, const char *ca_file, fetch_done_cb done, void *arg)
{
	struct fetch *f = xcalloc(1, sizeof(*f));

	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		fatal(EXIT_MEMORY, "libcurl does not start");
	f->multi = curl_multi_init();
	if (f->multi == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	f->look = timer_new(base, look_cb, f);
	f->ca_file = xstrdup(ca_file);
	f->done = done;
	f->arg = arg;
	buf_init(&f->body, FETCH_MAX);
	return f;
}

void
fetch_free(struct fetch *f)
{
	if (f == NULL)
		return;
	if (f->easy != NULL) {
		(void)curl_multi_remove_handle(f->multi, f->easy);
		curl_easy_cleanup(f->easy);
	}
	(void)curl_multi_cleanup(f->multi);
	curl_global_cleanup();
	timer_free(f->look);
	buf_clear(&f->body);
	free(f->url);
	free(f->ca_file);
	free(f);
}

void
fetch_start(struct fetch *f, const char *url)
{
	CURL *c = curl_easy_init();

	if (c == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	f->easy = c;
	f->url = xstrdup(url);
	f->curl_why[0] = '\0';
	(void)curl_easy_setopt(c, CURLOPT_URL, url);
	(void)curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl_easy_setopt(c, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, TOTAL_MS);
	/* Else the loop waits for a look-up that hangs, however long it does.
	 */
	(void)curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L);
	(void)curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	(void)curl_easy_setopt(c, CURLOPT_MAXFILESIZE, (long)FETCH_MAX);
	(void)curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L);
	(void)curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L);
	(void)curl_easy_setopt(c, CURLOPT_USERAGENT, "mcp-sandboxd");
	(void)curl_easy_setopt(
	    c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (f->ca_file[0] != '\0')
		(void)curl_easy_setopt(c, CURLOPT_CAINFO, f->ca_file);
	(void)curl_easy_setopt(c, CURLOPT_ERRORBUFFER, f->curl_why);
	(void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, write_cb);
	(void)curl_easy_setopt(c, CURLOPT_WRITEDATA, f);
	if (curl_multi_add_handle(f->multi, c) != CURLM_OK)
		fatal(EXIT_MEMORY, "out of memory");
	timer_set_ms(f->look, 0);
}
