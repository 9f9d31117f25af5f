/*
 * message.h - a JSON-RPC message of the client, as far as the transport wants
 * to know it; and what the bridge answers itself
 *
 * The bytes go on as they came: nothing of a message is written anew.
 */
#ifndef STDIO_MESSAGE_H
#define STDIO_MESSAGE_H

#include "common/base.h"
#include "common/err.h"

#define MESSAGE_DEPTH_MAX 512
#define MESSAGE_IDS_MAX 4096 /* requests of a batch */

enum message_kind {
	MESSAGE_REQUEST,
	MESSAGE_NOTIFICATION,
	MESSAGE_RESPONSE, /* to a request of the server; or what is none of
			   * these: the server says what it thinks of it */
	MESSAGE_BATCH
};

/* Ids are JSON in one spelling. */
struct message {
	enum message_kind kind;
	char *method;  /* NULL: none */
	char *claim;   /* the revision in its _meta (MCP 2026-07-28), or NULL */
	char *name;    /* what Mcp-Name says; NULL: nothing */
	char *cancels; /* the id that notifications/cancelled names, or NULL */
	char **ids;    /* of its requests */
	size_t nids;
};

/* Codes of errors that are made here.  The range up to -32000 is JSON-RPC's
 * and MCP's. */
enum message_code {
	MESSAGE_PARSE_ERROR = -32700,
	MESSAGE_INVALID_REQUEST = -32600,
	MESSAGE_UNREACHABLE = -31001, /* it was not received: ask again */
	MESSAGE_BROKEN = -31002,      /* it may have been received, and done */
	MESSAGE_REFUSED = -31003      /* by HTTP: the text says what it said */
};

/* message_read - ERR_PARSE: it is not JSON, with what is wrong */
int message_read(
    const char *text, size_t n, struct message *m, struct err *e) MUSTCHECK;
void message_clear(struct message *m);
/* message_has_id - one that is not answered */
bool message_has_id(const struct message *m, const char *id);
/* message_take_answer - what the server says: ids of m that it answers are not
 * m's any more; -1: it is no JSON, and not to be passed on */
int message_take_answer(struct message *m, const char *text, size_t n);

/* message_error - an answer; id NULL: the one it is for is not known.  The
 * caller frees */
char *message_error(const char *id, enum message_code code, const char *text);
/* message_error_for - an error that the server sent without an id, or with
 * null, as the answer to id; the caller frees.  NULL: text is none such */
char *message_error_for(const char *id, const char *text, size_t n);
/* message_complaint - what a person is told by an HTTP answer that is no
 * JSON-RPC: its "message", or ""; the caller frees */
char *message_complaint(const char *text, size_t n);
/* message_error_code - of an error, 0: it is none */
int64_t message_error_code(const char *text, size_t n);
/* message_revision - protocolVersion of the answer to an initialize; the caller
 * frees.  NULL: it has none */
char *message_revision(const char *text, size_t n);

#endif
