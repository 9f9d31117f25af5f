/*
 * Each message is a channel's byte and data.  Output goes on as it comes, in
 * whatever pieces; a status is collected.  The first message has no data: it
 * says that the server has the streams, and not that the program runs.
 */
#include "worker/kubernetes/exec_stream.h"

#include <jansson.h>

#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/text.h"
#include "common/xmalloc.h"
#include "worker/complaint.h"
#include "worker/kubernetes/websocket.h"

#define STATUS_DEPTH_MAX 16
#define EXIT_DIGITS_MAX 3

enum channel {
	CHANNEL_INPUT,
	CHANNEL_OUTPUT,
	CHANNEL_ERRORS,
	CHANNEL_STATUS,
	CHANNEL_CLOSE = 255,
	CHANNEL_NONE /* the message's first byte has not come */
};

struct exec_stream {
	struct websocket *socket;
	enum exec_protocol protocol;
	enum channel channel; /* of the message that is read */
	struct buf *out;      /* while bytes are taken */
	bool has_said;        /* the program wrote something */
	struct buf status;    /* as far as it came */
	const char *fault;    /* static; NULL: none */
	int fault_code;
	struct complaint complaint;
	struct exec_result result;
};

enum exec_protocol
exec_stream_protocol(const char *value)
{
	if (value == NULL)
		return EXEC_PROTOCOL_NONE;
	if (strcmp(value, "v5.channel.k8s.io") == 0)
		return EXEC_PROTOCOL_V5;
	return strcmp(value, "v4.channel.k8s.io") == 0 ? EXEC_PROTOCOL_V4 :
							 EXEC_PROTOCOL_NONE;
}

/* ---- the status */

/* Of details.causes the one of the exit code; NULL: it is not there. */
static const char *
find_exit_code(const json_t *status)
{
	const json_t *causes =
	    json_object_get(json_object_get(status, "details"), "causes");
	const json_t *cause;
	size_t i;

	json_array_foreach (causes, i, cause)
		if (strcmp(js_text(cause, "reason"), "ExitCode") == 0)
			return js_text(cause, "message");
	return NULL;
}

static int
read_exit_code(const char *text, int32_t *out)
{
	size_t n = strspn(text, "0123456789");

	if (n == 0 || n > EXIT_DIGITS_MAX || text[n] != '\0')
		return -1;
	*out = (int32_t)strtol(text, NULL, 10);
	return 0;
}

/* The message's words differ between versions, so the cause says the code.  An
 * internal error of a program that wrote something is none of its start. */
static void
judge_status(struct exec_stream *s, const json_t *status)
{
	const char *code = find_exit_code(status);
	struct exec_result *r = &s->result;

	if (strcmp(js_text(status, "status"), "Success") == 0 ||
	    (code != NULL && read_exit_code(code, &r->code) == 0))
		r->end = EXEC_END_EXITED;
	else if (!s->has_said &&
	    strcmp(js_text(status, "reason"), "InternalError") == 0)
		r->end = EXEC_END_NO_START;
}

/* The first counts. */
static void
take_status(struct exec_stream *s)
{
	AUTO(auto_json) json_t *status = NULL;
	struct exec_result *r = &s->result;
	const char *text = (const char *)buf_data(&s->status);
	size_t n = buf_len(&s->status);
	struct err e;

	if (n == 0 || r->text[0] != '\0' || r->end != EXEC_END_UNKNOWN)
		return;
	if (js_parse(text, n, EXEC_STREAM_STATUS_MAX, STATUS_DEPTH_MAX, &status,
		&e) != 0) {
		text_clean(r->text, sizeof(r->text), text, n);
		return;
	}
	judge_status(s, status);
	text = js_text(status, "message");
	text_clean(r->text, sizeof(r->text), text, strlen(text));
}

/* ---- messages */

static void
refuse_message(struct exec_stream *s, int code, const char *fault)
{
	if (s->fault != NULL)
		return;
	s->fault = fault;
	s->fault_code = code;
}

static void
begin_cb(void *arg)
{
	struct exec_stream *s = arg;

	s->channel = CHANNEL_NONE;
	buf_consume(&s->status, buf_len(&s->status));
}

static void
take_data(struct exec_stream *s, const uint8_t *p, size_t n)
{
	int rc = 0;

	switch (s->channel) {
	case CHANNEL_OUTPUT:
		s->has_said = true;
		if (buf_append(s->out, p, n) != 0)
			fatal(EXIT_BUG, "exec: no room for %zu bytes", n);
		break;
	case CHANNEL_ERRORS:
		s->has_said = true;
		rc = complaint_add(&s->complaint, p, n);
		if (rc != 0)
			refuse_message(s, ERR_LIMIT, COMPLAINT_TOO_MUCH);
		break;
	case CHANNEL_STATUS:
		rc = buf_append(&s->status, p, n);
		if (rc != 0)
			refuse_message(
			    s, ERR_PROTO, "the exec's status is too long");
		break;
	case CHANNEL_INPUT:
	case CHANNEL_CLOSE:
	case CHANNEL_NONE:
	default:
		break;
	}
}

static void
bytes_cb(const uint8_t *p, size_t n, void *arg)
{
	struct exec_stream *s = arg;

	if (s->channel == CHANNEL_NONE) {
		s->channel = (enum channel)p[0];
		p++;
		n--;
		if (s->channel != CHANNEL_OUTPUT &&
		    s->channel != CHANNEL_ERRORS &&
		    s->channel != CHANNEL_STATUS)
			refuse_message(s, ERR_PROTO,
			    "the exec's stream has a message of no known "
			    "channel");
	}
	if (n > 0 && s->fault == NULL)
		take_data(s, p, n);
}

static void
end_cb(void *arg)
{
	struct exec_stream *s = arg;

	if (s->channel == CHANNEL_STATUS && s->fault == NULL)
		take_status(s);
}

/* ---- public */

struct exec_stream *
exec_stream_new(enum exec_protocol protocol)
{
	static const struct websocket_user user = {begin_cb, bytes_cb, end_cb};
	struct exec_stream *s = xcalloc(1, sizeof(*s));

	s->protocol = protocol;
	s->socket = websocket_new(&user, s);
	buf_init(&s->status, EXEC_STREAM_STATUS_MAX);
	return s;
}

void
exec_stream_free(struct exec_stream *s)
{
	if (s == NULL)
		return;
	websocket_free(s->socket);
	buf_clear(&s->status);
	free(s);
}

int
exec_stream_take(struct exec_stream *s, const uint8_t *p, size_t n,
    struct buf *out, struct buf *back, struct err *e)
{
	int rc;

	s->out = out;
	rc = websocket_take(s->socket, p, n, back, e);
	if (s->fault != NULL)
		return err_set(e, s->fault_code, "%s", s->fault);
	if (rc != 0)
		return rc;
	return websocket_is_closed(s->socket) ? 1 : 0;
}

void
exec_stream_put(
    struct exec_stream *s, const uint8_t *p, size_t n, struct buf *to)
{
	static uint8_t message[1 + EXEC_STREAM_INPUT_MAX];

	if (n == 0)
		return;
	if (n > EXEC_STREAM_INPUT_MAX)
		fatal(EXIT_BUG, "exec: a message of %zu bytes", n);
	message[0] = CHANNEL_INPUT;
	memcpy(message + 1, p, n);
	websocket_put(s->socket, message, 1 + n, to);
}

void
exec_stream_close(struct exec_stream *s, struct buf *to)
{
	static const uint8_t no_more_input[] = {CHANNEL_CLOSE, CHANNEL_INPUT};

	if (s->protocol == EXEC_PROTOCOL_V5)
		websocket_put(
		    s->socket, no_more_input, sizeof(no_more_input), to);
	websocket_close(s->socket, WEBSOCKET_NORMAL_CLOSURE, to);
}

const struct exec_result *
exec_stream_result(const struct exec_stream *s)
{
	return &s->result;
}

const struct complaint *
exec_stream_complaint(const struct exec_stream *s)
{
	return &s->complaint;
}
