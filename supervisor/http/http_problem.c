/*
 * http_problem.c - what every error answer says: RFC 9457, and our own member
 *
 *	{"type":"about:blank", "title", "status", "detail",
 *	 "instance":"urn:mcp-sandboxd:request:ID", "code", "request_id",
 *	 "error":{"code","message","request_id", of a quota more}}
 *
 * Clients that know RFC 9457 read the former, and decide by code; "error" is
 * what was there before it, and stays for those who read that.
 */
#include "supervisor/http/http_int.h"

#include "common/js.h"
#include "common/xmalloc.h"

#define INSTANCE "urn:mcp-sandboxd:request:"

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
