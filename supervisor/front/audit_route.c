#include "supervisor/front/handlers.h"

#include "common/hex.h"
#include "common/js.h"
#include "supervisor/tools/view.h"

#define LIMIT_DEFAULT 100
#define LIMIT_MAX 500
#define HASH_DIGITS 64

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

enum {
	LIST_TENANT,
	LIST_WHAT,
	LIST_SINCE,
	LIST_LIMIT,
	LIST_CURSOR
};
static const struct query_param list_params[] = {
    [LIST_TENANT] = {"tenant", QUERY_TEXT, .max = PRINCIPAL_TENANT_MAX},
    [LIST_WHAT] = {"what", QUERY_TEXT, .max = 64},
    [LIST_SINCE] = {.name = "since", .kind = QUERY_TIME},
    [LIST_LIMIT] = {"limit", QUERY_NUMBER, .min = 1, .max = LIMIT_MAX},
    [LIST_CURSOR] = {"cursor", QUERY_NUMBER, .max = INT64_MAX},
};
const struct query_table audit_list_query = {
    list_params, ARRAY_LEN(list_params)};

void
audit_on_list(struct request *r)
{
	const struct query_value *v = r->query.values;
	const struct store_audit_filter filter = {.tenant = v[LIST_TENANT].text,
	    .what = v[LIST_WHAT].text,
	    .since_ms = v[LIST_SINCE].time_ms,
	    .before = v[LIST_CURSOR].number,
	    .limit = (size_t)query_number(&v[LIST_LIMIT], LIMIT_DEFAULT)};

	http_hold(r->x, NULL, NULL);
	store_audit_list(core_store(r->front->core), &filter, page_cb, r->x);
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

static bool
is_hash(const char *text)
{
	uint8_t hash[32];

	return strlen(text) == HASH_DIGITS &&
	    hex_decode(text, hash, sizeof(hash)) == 0;
}

enum {
	VERIFY_AFTER,
	VERIFY_HASH,
	VERIFY_HEAD
};
static const struct query_param verify_params[] = {
    [VERIFY_AFTER] = {"after", QUERY_NUMBER, .max = INT64_MAX},
    [VERIFY_HASH] = {"hash", QUERY_TEXT, .min = HASH_DIGITS, .max = HASH_DIGITS,
	.fits = is_hash, .want = "the 64 digits of the piece before"},
    [VERIFY_HEAD] = {"head", QUERY_TEXT, .min = HASH_DIGITS, .max = HASH_DIGITS,
	.fits = is_hash, .want = "the 64 digits of a row's hash"},
};
const struct query_table audit_verify_query = {
    verify_params, ARRAY_LEN(verify_params)};

void
audit_on_verify(struct request *r)
{
	struct store_audit_mark after = {0};
	const struct query_value *v = r->query.values;
	uint8_t known[32];

	if (v[VERIFY_AFTER].is_given != v[VERIFY_HASH].is_given) {
		http_error(r->x, 400, "bad_request",
		    "after and hash: want both, or none");
		return;
	}
	after.seq = v[VERIFY_AFTER].number;
	if (v[VERIFY_HASH].is_given)
		(void)!hex_decode(
		    v[VERIFY_HASH].text, after.hash, sizeof(after.hash));
	if (v[VERIFY_HEAD].is_given)
		(void)!hex_decode(v[VERIFY_HEAD].text, known, sizeof(known));
	http_hold(r->x, NULL, NULL);
	store_audit_check(core_store(r->front->core),
	    v[VERIFY_AFTER].is_given ? &after : NULL,
	    v[VERIFY_HEAD].is_given ? known : NULL, check_cb, r->x);
}
