/*
 * The frames are wslay's.  It is fed from the caller's memory, a slice at a
 * time so that the PONGs of one slice are few, and what it would send is
 * appended to the caller's buffer: it keeps neither side's bytes but for the
 * payload of a control frame.
 */
#include "worker/kubernetes/websocket.h"

#include <stdio.h>

#include <openssl/evp.h>
#include <wslay/wslay.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/random.h"
#include "common/xmalloc.h"

/* RFC 6455, section 1.3. */
#define ACCEPT_SUFFIX "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define ACCEPT_BYTES 20
#define ACCEPT_LEN 28
#define KEY_BYTES 16
#define SLICE_BYTES 4096

struct websocket {
	wslay_event_context_ptr frames;
	const struct websocket_user *user;
	void *arg;
	/* While wslay is at work. */
	const uint8_t *in;
	size_t in_left;
	struct buf *to;
	bool has_no_room; /* to */
	/* Of the frame that is being read. */
	bool is_control;
	uint64_t message_bytes; /* of its message, with what is announced */
	const char *fault; /* that wslay does not see, static; NULL: none */
	uint16_t fault_code;
};

/* ---- the handshake */

void
websocket_make_key(char key[WEBSOCKET_KEY_LEN + 1])
{
	uint8_t bytes[KEY_BYTES];

	random_fill(bytes, sizeof(bytes));
	(void)EVP_EncodeBlock((unsigned char *)key, bytes, sizeof(bytes));
}

bool
websocket_is_answer(const char *key, const char *accept)
{
	char text[WEBSOCKET_KEY_LEN + sizeof(ACCEPT_SUFFIX)];
	unsigned char digest[EVP_MAX_MD_SIZE], due[ACCEPT_LEN + 1];
	unsigned int n = 0;

	(void)snprintf(text, sizeof(text), "%s" ACCEPT_SUFFIX, key);
	if (EVP_Digest(text, strlen(text), digest, &n, EVP_sha1(), NULL) != 1 ||
	    n != ACCEPT_BYTES)
		fatal(EXIT_BUG, "no SHA-1");
	(void)EVP_EncodeBlock(due, digest, ACCEPT_BYTES);
	return accept != NULL && strcmp(accept, (const char *)due) == 0;
}

/* ---- what wslay calls */

static ssize_t
recv_cb(wslay_event_context_ptr frames, uint8_t *to, size_t size, int flags,
    void *arg)
{
	struct websocket *w = arg;
	size_t n = w->in_left < size ? w->in_left : size;

	(void)flags;
	if (n == 0) {
		wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(to, w->in, n);
	w->in += n;
	w->in_left -= n;
	return (ssize_t)n;
}

static ssize_t
send_cb(wslay_event_context_ptr frames, const uint8_t *p, size_t n, int flags,
    void *arg)
{
	struct websocket *w = arg;

	(void)flags;
	if (buf_append(w->to, p, n) == 0)
		return (ssize_t)n;
	w->has_no_room = true;
	wslay_event_set_error(frames, WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static int
mask_cb(wslay_event_context_ptr frames, uint8_t *to, size_t n, void *arg)
{
	(void)frames;
	(void)arg;
	random_fill(to, n);
	return 0;
}

static void
refuse(struct websocket *w, uint16_t code, const char *fault)
{
	w->fault = fault;
	w->fault_code = code;
	wslay_event_shutdown_read(w->frames);
}

static void
frame_cb(wslay_event_context_ptr frames,
    const struct wslay_event_on_frame_recv_start_arg *f, void *arg)
{
	struct websocket *w = arg;

	(void)frames;
	w->is_control = wslay_is_ctrl_frame(f->opcode) != 0;
	if (w->is_control)
		return;
	if (f->opcode != WSLAY_CONTINUATION_FRAME)
		w->message_bytes = 0;
	w->message_bytes += f->payload_length; /* below 2^63 */
	if (f->opcode == WSLAY_TEXT_FRAME)
		refuse(w, WSLAY_CODE_UNSUPPORTED_DATA, "a message of text");
	else if (w->message_bytes > WEBSOCKET_MESSAGE_MAX)
		refuse(w, WSLAY_CODE_MESSAGE_TOO_BIG, "a message too long");
	else if (f->opcode == WSLAY_BINARY_FRAME)
		w->user->on_begin(w->arg);
}

static void
chunk_cb(wslay_event_context_ptr frames,
    const struct wslay_event_on_frame_recv_chunk_arg *c, void *arg)
{
	struct websocket *w = arg;

	(void)frames;
	if (!w->is_control && w->fault == NULL && c->data_length > 0)
		w->user->on_bytes(c->data, c->data_length, w->arg);
}

static void
message_cb(wslay_event_context_ptr frames,
    const struct wslay_event_on_msg_recv_arg *m, void *arg)
{
	struct websocket *w = arg;

	(void)frames;
	if (m->opcode == WSLAY_BINARY_FRAME && w->fault == NULL)
		w->user->on_end(w->arg);
}

/* ---- public */

struct websocket *
websocket_new(const struct websocket_user *user, void *arg)
{
	static const struct wslay_event_callbacks callbacks = {
	    .recv_callback = recv_cb,
	    .send_callback = send_cb,
	    .genmask_callback = mask_cb,
	    .on_frame_recv_start_callback = frame_cb,
	    .on_frame_recv_chunk_callback = chunk_cb,
	    .on_msg_recv_callback = message_cb};
	struct websocket *w = xcalloc(1, sizeof(*w));

	w->user = user;
	w->arg = arg;
	if (wslay_event_context_client_init(&w->frames, &callbacks, w) != 0)
		fatal(EXIT_MEMORY, "no memory for a WebSocket");
	wslay_event_config_set_no_buffering(w->frames, 1);
	/* frame_cb has the bound, over all fragments. */
	wslay_event_config_set_max_recv_msg_length(w->frames, INT64_MAX);
	return w;
}

void
websocket_free(struct websocket *w)
{
	if (w == NULL)
		return;
	wslay_event_context_free(w->frames);
	free(w);
}

bool
websocket_is_closed(const struct websocket *w)
{
	return wslay_event_get_close_received(w->frames) != 0;
}

static void
flush(struct websocket *w)
{
	int rc = wslay_event_send(w->frames);

	if (rc == WSLAY_ERR_NOMEM)
		fatal(EXIT_MEMORY, "no memory for a WebSocket");
}

/* It is appended at once: what wslay has queued never outlives a call. */
static void
queue(struct websocket *w, int rc, struct buf *to)
{
	if (rc == WSLAY_ERR_NO_MORE_MSG || w->has_no_room)
		return;
	if (rc == WSLAY_ERR_NOMEM)
		fatal(EXIT_MEMORY, "no memory for a WebSocket");
	w->to = to;
	flush(w);
	if (rc != 0 || w->has_no_room)
		fatal(EXIT_BUG, "a WebSocket's message has no room");
}

static int
take_slice(struct websocket *w, const uint8_t *p, size_t n)
{
	int rc;

	w->in = p;
	w->in_left = n;
	rc = wslay_event_recv(w->frames);
	if (rc == WSLAY_ERR_NOMEM)
		fatal(EXIT_MEMORY, "no memory for a WebSocket");
	if (w->fault != NULL)
		(void)wslay_event_queue_close(
		    w->frames, w->fault_code, NULL, 0);
	flush(w);
	return rc;
}

static int
judge(const struct websocket *w, int rc, struct err *e)
{
	if (w->has_no_room)
		return err_set(e, ERR_LIMIT,
		    "the server asks for more PONGs than it reads");
	if (w->fault != NULL)
		return err_set(
		    e, ERR_PROTO, "the server's WebSocket has %s", w->fault);
	if (rc == 0 && wslay_event_get_read_enabled(w->frames) != 0)
		return 0;
	return err_set(e, ERR_PROTO, "the server's WebSocket breaks RFC 6455");
}

int
websocket_take(struct websocket *w, const uint8_t *p, size_t n,
    struct buf *back, struct err *e)
{
	int rc = 0;

	w->to = back;
	while (n > 0 && wslay_event_get_read_enabled(w->frames) != 0) {
		size_t slice = n < SLICE_BYTES ? n : SLICE_BYTES;

		rc = take_slice(w, p, slice);
		if (!websocket_is_closed(w))
			rc = judge(w, rc, e);
		if (rc != 0)
			return rc;
		p += slice;
		n -= slice;
	}
	return 0;
}

void
websocket_put(struct websocket *w, const uint8_t *p, size_t n, struct buf *to)
{
	const struct wslay_event_msg m = {
	    .opcode = WSLAY_BINARY_FRAME, .msg = p, .msg_length = n};

	queue(w, wslay_event_queue_msg(w->frames, &m), to);
}

void
websocket_close(struct websocket *w, uint16_t code, struct buf *to)
{
	queue(w, wslay_event_queue_close(w->frames, code, NULL, 0), to);
}
