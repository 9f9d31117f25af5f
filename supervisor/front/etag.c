#include "supervisor/front/etag.h"

#include <openssl/evp.h>

#include "common/exit.h"
#include "common/hex.h"
#include "common/js.h"
#include "common/log.h"
#include "common/text.h"
#include "supervisor/http/http.h"

#define DIGEST_BYTES 16 /* of SHA-256's */

void
etag_of_bytes(const void *p, size_t n, char out[ETAG_BYTES])
{
	uint8_t digest[EVP_MAX_MD_SIZE];

	if (EVP_Digest(p, n, digest, NULL, EVP_sha256(), NULL) != 1)
		fatal(EXIT_BUG, "SHA-256 does not work");
	out[0] = '"';
	hex_encode(digest, DIGEST_BYTES, out + 1);
	out[ETAG_BYTES - 2] = '"';
	out[ETAG_BYTES - 1] = '\0';
}

/* ---- lists */

/* entity-tag = [ "W/" ] DQUOTE *etagc DQUOTE; NULL: this is none.  *opaque is
 * the part with the quotes, *n its length. */
static const char *
take_tag(const char *p, const char **opaque, size_t *n, bool *is_weak)
{
	const char *end;

	*is_weak = strncmp(p, "W/", 2) == 0;
	if (*is_weak)
		p += 2;
	if (*p != '"')
		return NULL;
	/* etagc: all but controls, the space and the quote. */
	for (end = p + 1; (unsigned char)*end > ' ' && *end != 0x7f; end++)
		if (*end == '"') {
			*opaque = p;
			*n = (size_t)(end + 1 - p);
			return end + 1;
		}
	return NULL;
}

/* 1#entity-tag, where empty elements are passed over (RFC 9110, 5.6.1.2). */
enum etag_found
etag_find(const char *list, const char *tag, enum etag_comparison how)
{
	const char *p = text_skip_blanks(list), *opaque;
	bool found = false, any = false, is_weak;
	size_t n;

	if (*p == '*')
		return *text_skip_blanks(p + 1) != '\0' ? ETAG_MALFORMED :
		    tag != NULL                         ? ETAG_YES :
							  ETAG_NO;
	while (*p != '\0') {
		if (*p == ',') {
			p = text_skip_blanks(p + 1);
			continue;
		}
		p = take_tag(p, &opaque, &n, &is_weak);
		if (p == NULL)
			return ETAG_MALFORMED;
		any = true;
		if (tag != NULL && (how == ETAG_WEAK || !is_weak) &&
		    strlen(tag) == n && memcmp(tag, opaque, n) == 0)
			found = true;
		p = text_skip_blanks(p);
		if (*p != ',' && *p != '\0')
			return ETAG_MALFORMED;
	}
	return !any ? ETAG_MALFORMED : found ? ETAG_YES : ETAG_NO;
}

/* ---- conditions */

static enum etag_verdict
refuse_form(struct http_exchange *x, const char *header)
{
	http_error(x, 400, "bad_request",
	    "%s: want * or a list of tags in double quotes, as the header ETag "
	    "of a GET has them",
	    header);
	return ETAG_ANSWERED;
}

/* RFC 9110, section 13.2.2: this before the other. */
static enum etag_verdict
judge_match(struct http_exchange *x, const char *tag)
{
	const char *list = http_header(x, HTTP_H_IF_MATCH);

	if (list == NULL)
		return ETAG_GO_ON;
	switch (etag_find(list, tag, ETAG_STRONG)) {
	case ETAG_YES:
		return ETAG_GO_ON;
	case ETAG_MALFORMED:
		return refuse_form(x, "If-Match");
	case ETAG_NO:
		break;
	}
	if (tag == NULL)
		http_error(
		    x, 412, "precondition_failed", "If-Match: there is none");
	else
		http_error(x, 412, "precondition_failed",
		    "If-Match: it has changed since: get it again, and send "
		    "the ETag of that answer");
	return ETAG_ANSWERED;
}

static enum etag_verdict
judge_none_match(struct http_exchange *x, const char *tag)
{
	bool reads = http_method(x) == HTTP_METHOD_GET ||
	    http_method(x) == HTTP_METHOD_HEAD;
	const char *list = http_header(x, HTTP_H_IF_NONE_MATCH);
	enum etag_found found =
	    list == NULL ? ETAG_NO : etag_find(list, tag, ETAG_WEAK);

	if (reads)
		return found == ETAG_YES ? ETAG_SAME : ETAG_GO_ON;
	if (found == ETAG_MALFORMED)
		return refuse_form(x, "If-None-Match");
	if (found == ETAG_NO)
		return ETAG_GO_ON;
	http_error(x, 412, "precondition_failed",
	    "If-None-Match: there is one already, as this header names it");
	return ETAG_ANSWERED;
}

enum etag_verdict
etag_judge(struct http_exchange *x, const char *tag)
{
	enum etag_verdict verdict = judge_match(x, tag);

	return verdict == ETAG_GO_ON ? judge_none_match(x, tag) : verdict;
}

static void
tag_of(const json_t *o, char out[ETAG_BYTES])
{
	AUTO(auto_free) char *text = js_dump(o);

	etag_of_bytes(text, strlen(text), out);
}

bool
etag_may_change(struct http_exchange *x, json_t *now)
{
	bool is_there = now != NULL;
	char tag[ETAG_BYTES];

	if (is_there)
		tag_of(now, tag);
	json_decref(now);
	return etag_judge(x, is_there ? tag : NULL) == ETAG_GO_ON;
}

/* ---- answers */

void
etag_add(struct http_exchange *x, const json_t *o)
{
	char tag[ETAG_BYTES];

	tag_of(o, tag);
	http_add_header(x, "ETag", tag);
}

/* false: x was answered already. */
static bool
begin_answer(struct http_exchange *x, const char *tag)
{
	enum etag_verdict verdict = etag_judge(x, tag);

	if (verdict == ETAG_ANSWERED)
		return false;
	http_add_header(x, "ETag", tag);
	/* To be kept, but asked about each time. */
	http_add_header(x, "Cache-Control", "private, no-cache");
	if (verdict == ETAG_SAME)
		http_reply(x, 304, NULL, NULL, 0);
	return verdict == ETAG_GO_ON;
}

void
etag_reply(struct http_exchange *x, const char *tag, const char *text, size_t n)
{
	if (begin_answer(x, tag))
		http_reply(x, 200, "application/json", text, n);
}

void
etag_reply_json(struct http_exchange *x, json_t *o)
{
	char *text = js_dump(o);
	char tag[ETAG_BYTES];
	size_t n = strlen(text);

	json_decref(o);
	etag_of_bytes(text, n, tag);
	if (begin_answer(x, tag))
		http_reply_owned(x, 200, "application/json", text, n);
	else
		free(text);
}
