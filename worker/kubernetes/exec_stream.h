/*
 * exec_stream.h - a program's standard streams in the messages of a Pod's exec
 *
 * The subprotocols v5.channel.k8s.io and v4.channel.k8s.io over a WebSocket:
 * the first byte of each message names its channel.  What differs: v5 can say
 * that the standard input is over.
 *
 * How the program ended is one of three, and the third is never taken for one
 * of the others: a connection that ends without a status, as when an API server
 * is stopped, says nothing.  Even "exited with 0" is only what the cluster
 * says: a node's services that are restarted say it of programs that were cut
 * off.
 */
#ifndef WORKER_KUBERNETES_EXEC_STREAM_H
#define WORKER_KUBERNETES_EXEC_STREAM_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"

/* The headers' value: the server takes the one that it likes best. */
#define EXEC_STREAM_OFFER "v5.channel.k8s.io, v4.channel.k8s.io"
#define EXEC_STREAM_INPUT_MAX 65536 /* of standard input in one message */
/* What a message to the server is longer by than its data: the channel, and a
 * frame's head. */
#define EXEC_STREAM_HEAD_MAX 15
#define EXEC_STREAM_STATUS_MAX 65536

struct complaint;
struct exec_stream;

enum exec_protocol {
	EXEC_PROTOCOL_NONE, /* neither */
	EXEC_PROTOCOL_V4,
	EXEC_PROTOCOL_V5
};

enum exec_end {
	EXEC_END_UNKNOWN, /* nothing was said, or nothing that is known */
	EXEC_END_EXITED,  /* with code */
	EXEC_END_NO_START /* no program of that name, and the like */
};
struct exec_result {
	enum exec_end end;
	int32_t code;
	char text[256]; /* the cluster's words, printable; "": none */
};

/* exec_stream_protocol - that the server chose, by the value of its header
 * Sec-WebSocket-Protocol; NULL is none */
enum exec_protocol exec_stream_protocol(const char *value);

struct exec_stream *exec_stream_new(enum exec_protocol protocol);
void exec_stream_free(struct exec_stream *s);

/*
 * exec_stream_take - n bytes came from the server
 *
 * The program's output in them is appended to out, what the server is to be
 * told to back.  0: more may come; 1: the server has closed; ERR_PROTO and
 * ERR_LIMIT: it broke the protocol, or the program writes too much to its
 * standard error.  Not to be called again after any but 0.
 */
int exec_stream_take(struct exec_stream *s, const uint8_t *p, size_t n,
    struct buf *out, struct buf *back, struct err *e) MUSTCHECK;
/* exec_stream_put - n bytes, at most EXEC_STREAM_INPUT_MAX, of standard input;
 * 0 bytes are none.  to must have the room. */
void exec_stream_put(
    struct exec_stream *s, const uint8_t *p, size_t n, struct buf *to);
/* exec_stream_close - standard input is over, as far as the protocol can say
 * it, and so is our side.  Does not end a program that goes on. */
void exec_stream_close(struct exec_stream *s, struct buf *to);

/* exec_stream_result - as far as it is known now */
const struct exec_result *exec_stream_result(const struct exec_stream *s);
/* exec_stream_complaint - of the program's standard error; good as long as the
 * stream */
const struct complaint *exec_stream_complaint(const struct exec_stream *s);

#endif
