#include "worker/docker/reply.h"

#define SWITCHING_PROTOCOLS 101
#define FIRST_FINAL 200 /* before it: there is more to come */

static int
headers_cb(struct http_parser *parser)
{
	return parser->status_code == SWITCHING_PROTOCOLS ? -1 : 0;
}

static int
body_cb(struct http_parser *parser, const char *p, size_t n)
{
	struct reply *r = parser->data;

	if (r->on_body(parser->status_code, (const uint8_t *)p, n, r->arg))
		return 0;
	r->state = REPLY_STOPPED;
	return -1;
}

static int
whole_cb(struct http_parser *parser)
{
	struct reply *r = parser->data;

	if (parser->status_code < FIRST_FINAL)
		return 0;
	r->state = REPLY_WHOLE;
	r->keep = http_should_keep_alive(parser) != 0;
	http_parser_pause(parser, 1);
	return 0;
}

static const struct http_parser_settings settings = {
    .on_headers_complete = headers_cb,
    .on_body = body_cb,
    .on_message_complete = whole_cb};

void
reply_init(struct reply *r,
    bool (*on_body)(unsigned int status, const uint8_t *p, size_t n, void *arg),
    void *arg)
{
	memset(r, 0, sizeof(*r));
	r->on_body = on_body;
	r->arg = arg;
	http_parser_set_max_header_size(REPLY_HEADERS_MAX);
	http_parser_init(&r->parser, HTTP_RESPONSE);
	r->parser.data = r;
}

enum reply_state
reply_feed(struct reply *r, const uint8_t *p, size_t n)
{
	size_t used =
	    http_parser_execute(&r->parser, &settings, (const char *)p, n);

	if (r->state == REPLY_WHOLE && used < n)
		r->keep = false; /* bytes that nobody asked for */
	if (r->state != REPLY_MORE)
		return r->state;
	if (HTTP_PARSER_ERRNO(&r->parser) == HPE_HEADER_OVERFLOW)
		r->state = REPLY_HEADERS;
	else if (HTTP_PARSER_ERRNO(&r->parser) != HPE_OK || used < n)
		r->state = REPLY_BROKEN;
	return r->state;
}

enum reply_state
reply_end(struct reply *r)
{
	if (r->state == REPLY_MORE)
		(void)reply_feed(r, NULL, 0);
	if (r->state == REPLY_MORE)
		r->state = REPLY_BROKEN;
	r->keep = false;
	return r->state;
}

unsigned int
reply_status(const struct reply *r)
{
	return r->parser.status_code;
}

const char *
reply_why(const struct reply *r)
{
	enum http_errno number = HTTP_PARSER_ERRNO(&r->parser);

	if (r->parser.status_code == SWITCHING_PROTOCOLS)
		return "it would change its protocol";
	return number == HPE_OK ? "it ended in the middle" :
				  http_errno_description(number);
}
