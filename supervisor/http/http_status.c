/* http_status.c - the words of status lines, and of refusals beside evhttp */
#include "supervisor/http/http_int.h"

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
