#include "supervisor/front/audit_route.h"

#include "common/hex.h"
#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/tools/view.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX 500
#define DIGITS_MAX 18

/* A number of the query; to stays as it is when there is none.  false: x was
 * answered. */
static bool
parse_number(
    struct http_exchange *x, const char *name, uint64_t max, uint64_t *to)
{
	const char *text = http_query(x, name);
	size_t n = text == NULL ? 0 : strlen(text);

	if (text == NULL)
		return true;
	if (n > 0 && n <= DIGITS_MAX && strspn(text, "0123456789") == n &&
	    strtoull(text, NULL, 10) <= max) {
		*to = strtoull(text, NULL, 10);
		return true;
	}
	http_error(x, 400, "bad_request", "%s: want a number up to %llu", name,
	    (unsigned long long)max);
	return false;
}

static json_t *
view_hex(const uint8_t *p, size_t n)
{
	char text[HEX_BYTES(32)];

	if (p == NULL || n != 32)
		return json_null();
	hex_encode(p, n, text);
	return json_string(text);
}

/* ---- a page */

static json_t *
view_text(const char *text)
{
	return js_string_bytes(text, strlen(text), NULL);
}

static json_t *
view_row(const struct store_audit *r)
{
	return json_pack("{s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			 "s:o, s:o, s:o}",
	    "seq", (json_int_t)r->seq, "at", view_time(r->at_ms), "times",
	    (json_int_t)r->times, "what", view_text(r->what), "actor_tenant",
	    view_text(r->actor_tenant), "actor", view_text(r->actor), "origin",
	    view_text(r->origin), "request_id", view_text(r->request_id),
	    "tenant", view_text(r->tenant), "subject", view_text(r->subject),
	    "detail", view_text(r->detail), "digest",
	    view_hex(r->digest, r->digest_len), "hash", view_hex(r->hash, 32));
}

static void
page_cb(int rc, const struct store_audit_page *page, const struct err *why,
    void *arg)
{
	struct http_exchange *x = arg;
	json_t *list;

	if (rc != 0) {
		http_error_from(x, rc, why);
		return;
	}
	list = json_array();
	for (size_t i = 0; i < page->n; i++)
		json_array_append_new(list, view_row(&page->rows[i]));
	http_reply_json(x, 200,
	    json_pack("{s:o, s:o}", "audit", list, "next",
		page->next == 0 ? json_null() :
				  json_integer((json_int_t)page->next)));
}

void
audit_on_list(struct front *f, struct http_exchange *x)
{
	uint64_t limit = LIMIT_DEFAULT, since_s = 0, before = 0;
	struct store_audit_filter filter = {
	    .tenant = http_query(x, "tenant"), .what = http_query(x, "what")};

	if (!parse_number(x, "limit", LIMIT_MAX, &limit) ||
	    !parse_number(x, "since", UINT64_C(1) << 40, &since_s) ||
	    !parse_number(x, "cursor", INT64_MAX, &before))
		return;
	filter.limit = limit == 0 ? 1 : (size_t)limit;
	filter.since_ms = (int64_t)since_s * 1000;
	filter.before = before;
	http_hold(x, NULL, NULL);
	store_audit_list(core_store(f->core), &filter, page_cb, x);
}

/* ---- a piece of the chain */

static json_t *
view_mark(const struct store_audit_mark *m)
{
	return json_pack("{s:I, s:o}", "seq", (json_int_t)m->seq, "hash",
	    view_hex(m->hash, sizeof(m->hash)));
}

static void
check_cb(int rc, const struct store_audit_check *found, const struct err *why,
    void *arg)
{
	struct http_exchange *x = arg;

	if (rc != 0) {
		http_error_from(x, rc, why);
		return;
	}
	http_reply_json(x, 200,
	    json_pack("{s:I, s:b, s:b, s:o, s:o, s:o, s:o}", "rows",
		(json_int_t)found->rows, "over", found->is_over, "has_head",
		found->has_known, "at", view_mark(&found->at), "base",
		view_mark(&found->base), "head", view_mark(&found->head), "bad",
		!found->is_bad ?
		    json_null() :
		    json_pack("{s:I, s:s}", "seq", (json_int_t)found->bad_seq,
			"what", found->what)));
}

void
audit_on_verify(struct front *f, struct http_exchange *x)
{
	const char *hash = http_query(x, "hash");
	struct store_audit_mark after = {0};
	bool is_first = http_query(x, "after") == NULL;
	const char *head = http_query(x, "head");
	uint8_t known[32];

	if (!parse_number(x, "after", INT64_MAX, &after.seq))
		return;
	if (!is_first &&
	    (hash == NULL ||
		hex_decode(hash, after.hash, sizeof(after.hash)) != 0)) {
		http_error(x, 400, "bad_request",
		    "hash: want the 64 digits of the piece before");
		return;
	}
	if (head != NULL && hex_decode(head, known, sizeof(known)) != 0) {
		http_error(x, 400, "bad_request",
		    "head: want the 64 digits of a row's hash");
		return;
	}
	http_hold(x, NULL, NULL);
	store_audit_check(core_store(f->core), is_first ? NULL : &after,
	    head == NULL ? NULL : known, check_cb, x);
}
