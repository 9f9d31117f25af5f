/*
 * mcp.h - the Model Context Protocol, server side, as a library
 *
 * Knows JSON-RPC, revisions, sessions and a registry of tools; knows no HTTP
 * library, no sandbox and no store.  The transport gives it requests and gets
 * answers through struct mcp_transport_ops; tools get a struct mcp_call.
 *
 * Revisions: 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25, which begin
 * with initialize ("legacy"), and 2026-07-28, where each request says who asks
 * ("modern").  One table in era.c says what each has.
 *
 * Sessions: Mcp-Session-Id is stateless and survives restarts: it carries the
 * revision, the principal, the time and a random part under an HMAC with the
 * server's key.  Ended ones are remembered until they expire.
 */
#ifndef MCP_MCP_H
#define MCP_MCP_H

#include <jansson.h>

#include "common/base.h"
#include "common/call.h"
#include "common/err.h"
#include "common/principal.h"

struct iovec;
struct mcp;          /* the server: registry, revisions, session key */
struct mcp_call;     /* one tools/call in flight */
struct mcp_content;  /* what a tool answers */
struct mcp_exchange; /* one HTTP request, until it is answered */
struct mcp_message;  /* a body, read */

enum mcp_code { /* JSON-RPC and MCP error codes */
	MCP_PARSE_ERROR = -32700,
	MCP_INVALID_REQUEST = -32600,
	MCP_METHOD_NOT_FOUND = -32601,
	MCP_INVALID_PARAMS = -32602,
	MCP_INTERNAL_ERROR = -32603,
	MCP_SERVER_ERROR = -32000,
	MCP_SESSION_NOT_FOUND = -32001,
	MCP_RESOURCE_NOT_FOUND = -32002, /* until 2025-11-25 */
	/* MCP 2026-07-28: */
	MCP_HEADER_MISMATCH = -32020, /* a header and the body disagree */
	MCP_CAPABILITY_MISSING = -32021,
	MCP_VERSION_UNSUPPORTED = -32022
};

struct mcp_config {
	/* Texts are kept by pointer. */
	const char *name; /* serverInfo */
	const char *title;
	const char *version;
	const char *instructions;   /* for the model; may be NULL */
	const uint8_t *session_key; /* copied */
	size_t session_key_len;     /* 32 */
	uint32_t session_ttl_s;     /* since initialize */
	size_t body_max;            /* bytes */
	uint32_t heartbeat_ms;      /* of silent event streams */
	/* The lists of tools and prompts may change while it serves. */
	bool list_changes;
	/* Only revisions with an initialize are served: clients that speak
	 * 2026-07-28 too are told to fall back. */
	bool is_legacy_only;
};
struct mcp *mcp_new(const struct mcp_config *config);
/* mcp_set_instructions - others, kept by pointer, for who comes from now on */
void mcp_set_instructions(struct mcp *m, const char *instructions);
/* mcp_free - exchanges that are not answered are dropped: no ops are called,
 * and the transport forgets their struct mcp_exchange.  Calls that tools still
 * hold stay valid until the tool ends them. */
void mcp_free(struct mcp *m);
/* mcp_drain - streams end that wait for nothing in particular; calls go on */
void mcp_drain(struct mcp *m);

/*
 * mcp_add_tool - register a tool
 *
 *	definition	{"name","title","description","inputSchema",
 *			"outputSchema","annotations"}; kept by reference and
 *			sent as it is (fields a revision does not know are left
 *			out).  A part of inputSchema may have "x-unlisted": an
 *			object whose members are checked, in place of those of
 *			the part, and not listed: what is accepted beside what
 *			is said.  A property with "x-mcp-header" is repeated in
 *			a header of the request (mirror.h, 2026-07-28).  Order
 *			of registration is the order of the list
 *	on_call		gets arguments that fit the input schema
 * ERR_INVAL when the definition is not usable (names what).  arguments is
 * borrowed: json_incref to keep it.
 */
typedef void (*mcp_tool_cb)(
    struct mcp_call *call, json_t *arguments, void *arg);
int mcp_add_tool(struct mcp *m, json_t *definition, mcp_tool_cb on_call,
    void *arg, struct err *e) MUSTCHECK;
/* mcp_change_tool - another definition of the tool of its name, from the next
 * request on; kept by reference.  The old one stays when this is not usable. */
int mcp_change_tool(struct mcp *m, json_t *definition, struct err *e) MUSTCHECK;

/* How the transport carries answers.  handle is the transport's own. */
struct mcp_transport_ops {
	/* One answer: status, a session id for the header or NULL, and a body
	 * (JSON text; NULL: none).  Ends the exchange. */
	void (*reply)(void *handle, int status, const char *session_id,
	    const char *body, size_t len);
	/* May there be one stream more for this client?  0: it counts until the
	 * exchange ends.  Asked once, before the first stream_start that a
	 * plain answer could replace.  NULL: always. */
	int (*stream_take)(void *handle, struct err *e);
	/* Open an event stream (status 200), then events, then its end. */
	void (*stream_start)(void *handle, const char *session_id);
	/* n pieces of bytes that belong together. */
	void (*stream_write)(void *handle, const struct iovec *pieces, int n);
	/* Bytes of the stream that its client has not taken yet. */
	size_t (*stream_pending)(void *handle);
	void (*stream_end)(void *handle);
	/* That the client leaves counts now, also before anything is written
	 * to it: call mcp_client_gone at once.  NULL: it is always noticed. */
	void (*watch)(void *handle);
};

/*
 * What a body says: read apart from mcp_handle, for what is long.
 *
 * mcp_message_read knows no server and takes no lock: any thread may call it,
 * beside others, and hand the message over (json_object_seed first, where
 * there are threads).  A body that is wrong is a message, too: mcp_handle
 * says what is wrong with it.  It is large, and costs as much to free:
 * mcp_handle frees nothing of it, and mcp_message_free may be any thread's,
 * also beside a call that has its arguments.
 */
struct mcp_message *mcp_message_read(const void *body, size_t len);
void mcp_message_free(struct mcp_message *message); /* NULL is fine */
/* mcp_message_method - NULL: it has none */
const char *mcp_message_method(const struct mcp_message *message);

enum mcp_route { /* which of the paths was asked */
	MCP_ROUTE_MAIN,
	MCP_ROUTE_SSE,     /* GET: the stream of MCP 2024-11-05 */
	MCP_ROUTE_MESSAGES /* POST: a message of who has such a stream */
};

/* What a POST, GET or DELETE on one of the paths brought. */
struct mcp_http {
	enum mcp_route route;
	const char *method;       /* "POST" "GET" "DELETE" */
	const char *content_type; /* NULL when absent, as the rest */
	const char *accept;
	const char *session_id;       /* Mcp-Session-Id */
	const char *protocol_version; /* MCP-Protocol-Version */
	const char *last_event_id;
	const char *mcp_method; /* Mcp-Method, Mcp-Name of MCP 2026-07-28 */
	const char *mcp_name;
	const char *stream_id; /* sessionId of the query, MCP_ROUTE_MESSAGES */
	/* Where such messages are to be POSTed to, as who asked this path is to
	 * resolve it; NULL: HTTP+SSE is not served */
	const char *messages;
	/* Any other header of the request, by its name; NULL: absent.  *lines:
	 * how many there were.  Mcp-Param-NAME (MCP 2026-07-28) */
	const char *(*header)(
	    void *handle, const char *name, unsigned int *lines);
	const void *body;
	size_t body_len;
	/* The body, read; good for one mcp_handle, and the transport's to free
	 * when that has returned.  NULL: mcp_handle reads it */
	struct mcp_message *message;
	struct principal *who;  /* a call takes a reference of its own */
	const char *request_id; /* of the transport, for logs */
	const char *origin;     /* the client's address; may be NULL */
	/* How the client reached this server, "http://127.0.0.1:8080", for
	 * links in results; NULL: not known */
	const char *server_url;
	const char *traceparent;
};

/*
 * mcp_handle - take one HTTP request
 *
 * Calls ops now or later.  Returns NULL when it was answered at once, else the
 * exchange, which stays valid until ops->reply or ops->stream_end was called
 * for it.  The ladder: Content-Type 415, Accept 406, JSON 400 -32700, not a
 * request or an id that is no string or 64-bit integer 400 -32600.  With a
 * claim of 2026-07-28 in the body: its envelope 400 -32602, its revision 400
 * -32022, headers that disagree 400 -32020, unknown method 404 -32601.  Else
 * no session 400 -32000, unknown session 404 -32001, bad version header 400,
 * GET takes an answer up again (resume.h) or listens (listeners.h), and is 405
 * without a session, DELETE ends the session.
 * Notifications 202.
 */
struct mcp_exchange *mcp_handle(struct mcp *m, const struct mcp_http *http,
    const struct mcp_transport_ops *ops, void *handle);
/* mcp_client_gone - the connection closed: ops are called no more.  This
 * cancels a request of 2026-07-28, and none of older revisions. */
void mcp_client_gone(struct mcp_exchange *x);
/* mcp_tick - once a second from the transport's loop: opens the event stream
 * of calls that run for a second when the client takes one, and writes
 * keep-alive comments into silent ones */
void mcp_tick(struct mcp *m, uint64_t mono_ms);

/*
 * What a tool answers with, built block by block.
 *
 * mcp_content_text adds a text block; bytes that are not UTF-8 become U+FFFD.
 * mcp_content_structured takes over one object for structuredContent (clients
 * hold it against the tool's output schema, also in a failed result);
 * mcp_content_meta one for a member of _meta, which they do not.
 */
struct mcp_content *mcp_content_new(void);
void mcp_content_free(struct mcp_content *c); /* NULL is fine */
void mcp_content_text(struct mcp_content *c, const char *text, size_t n);
void mcp_content_structured(struct mcp_content *c, json_t *object);
void mcp_content_meta(struct mcp_content *c, const char *key, json_t *object);

enum mcp_outcome {
	MCP_TOOL_DONE,
	MCP_TOOL_FAILED /* isError: the tool could not do its work */
};

/*
 * mcp_call_result - a tool's answer, which ends the call, at once or later, on
 * the same thread: the call is gone then, with its base.  content is taken
 * over.  A call that was canceled, or whose client left, is ended in the same
 * way, and nothing is sent.
 */
void mcp_call_result(
    struct mcp_call *c, struct mcp_content *content, enum mcp_outcome outcome);
/*
 * mcp_call_base - who calls, progress and cancel (common/call.h)
 *
 * call_progress sends a notification if the client gave a token; it is left
 * out when it does not grow or more than MCP_PROGRESS_PENDING_MAX bytes wait
 * for the client.  The holder hears of notifications/cancelled, and of a
 * client of 2026-07-28 that it left (mcp_client_gone).
 */
#define MCP_PROGRESS_PENDING_MAX (16u << 10)
struct call *mcp_call_base(struct mcp_call *c);

#endif
