/*
 * http_status.c - the words of answers, ids and counts of requests
 *
 * What every error answer says (RFC 9457, and our own member):
 *
 *	{"type":"about:blank", "title", "status", "detail",
 *	 "instance":"urn:mcp-sandboxd:request:ID", "code", "request_id",
 *	 "error":{"code","message","request_id", of a quota more}}
 *
 * Clients that know RFC 9457 read the former, and decide by code; "error" is
 * what was there before it, and stays for those who read that.
 */
#include "supervisor/http/http_int.h"

#include <endian.h>

#include "common/hex.h"
#include "common/js.h"
#include "common/xmalloc.h"

#define INSTANCE "urn:mcp-sandboxd:request:"

/* As RFC 9110, section 15, and its relatives have them; those of evhttp are
 * older, or missing. */
static const struct status_reason {
	int status;
	const char *text;
} reasons[] = {
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

const char *
http_reason(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return NULL;
}

static const struct http_refusal refusals[] = {
    {400, "bad_request", "this is not an HTTP/1.1 request"},
    {408, "request_timeout",
	"the request did not arrive whole in time (REQUEST_TIMEOUT_MS)"},
    {413, "body_too_large", "the body is larger than MAX_BODY_BYTES"},
    {417, "expectation_failed", "only Expect: 100-continue is understood"},
    {429, "too_many_connections",
	"too many connections from this address (CONNECTIONS_PER_ADDRESS)"},
    {431, "headers_too_large",
	"request line and headers are larger than the limit"},
    {501, "not_implemented", "unknown method"},
    {503, "busy", "too many connections (MAX_CONNECTIONS): try again later"},
};

const struct http_refusal *
http_refusal(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		if (refusals[i].status == status)
			return &refusals[i];
	return &refusals[0];
}

json_t *
http_problem_member(const char *code, const char *message, const char *id)
{
	return json_pack("{s:s, s:o, s:s}", "code", code, "message",
	    js_string_bytes(message, strlen(message), NULL), "request_id", id);
}

char *
http_problem_dump(int status, json_t *error)
{
	/* With this type the title is to be the status line's (RFC 9457,
	 * section 4.2.1). */
	const char *title = http_reason(status);
	AUTO(auto_free)
	char *instance = xasprintf(INSTANCE "%s", js_text(error, "request_id"));
	json_t *o = json_pack("{s:s, s:s, s:i, s:O, s:s, s:O, s:O, s:o}",
	    "type", "about:blank", "title", title == NULL ? "Error" : title,
	    "status", status, "detail", json_object_get(error, "message"),
	    "instance", instance, "code", json_object_get(error, "code"),
	    "request_id", json_object_get(error, "request_id"), "error", error);
	char *text = js_dump(o);

	json_decref(o);
	return text;
}

void
http_stat_next_id(struct http_server *s, char out[HTTP_ID_MAX])
{
	const uint32_t start = htobe32(s->id_start), n = htobe32(s->id_next++);

	hex_encode(&start, sizeof(start), out);
	out[8] = '-';
	hex_encode(&n, sizeof(n), out + 9);
}

void
http_stat_count(struct http_server *s, int status)
{
	s->stats.requests++;
	if (status >= 100 && status < 600)
		s->stats.by_class[status / 100]++;
}
