/* http_status.c - the words of status lines, and of refusals */
#include "supervisor/http/http_int.h"

static const struct http_refusal refusals[] = {
    {400, "Bad Request", "bad_request", "this is not an HTTP/1.1 request"},
    {408, "Request Timeout", "request_timeout",
	"the request did not arrive whole in time (REQUEST_TIMEOUT_MS)"},
    {413, "Content Too Large", "body_too_large",
	"the body is larger than MAX_BODY_BYTES, or its chunks are malformed"},
    {417, "Expectation Failed", "expectation_failed",
	"only Expect: 100-continue is understood"},
    {429, "Too Many Requests", "too_many_connections",
	"too many connections from this address (CONNECTIONS_PER_ADDRESS)"},
    {431, "Request Header Fields Too Large", "headers_too_large",
	"request line and headers are larger than the limit"},
    {501, "Not Implemented", "not_implemented", "unknown method"},
    {503, "Service Unavailable", "busy",
	"too many connections (MAX_CONNECTIONS): try again later"},
};

const char *
http_reason(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		if (refusals[i].status == status)
			return refusals[i].reason;
	/* NULL: evhttp's own table */
	return status == 416 ? "Range Not Satisfiable" : NULL;
}

const struct http_refusal *
http_refusal(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++)
		if (refusals[i].status == status)
			return &refusals[i];
	return &refusals[0];
}
