/*
 * api.h - HTTP/1.1 requests to the server behind a backend
 *
 * libcurl's multi interface on the event loop, for a server at a Unix socket
 * or at a TCP address, with TLS or without.  Connections are kept alive.  An
 * answer is bounded in size and time and is otherwise not looked at.
 *
 * A path is sent byte for byte.  No redirect is followed, and neither
 * environment nor home directory is read.  TCP connections come from a process
 * of their own (dialer.h), which also looks names up: curl starts no thread for
 * them, and this process makes no Internet socket.  A request that is not safe
 * to repeat (any but GET, DELETE and PUT) takes a new connection: curl sends a
 * request again when a kept connection turns out to be closed, and the server
 * may have acted on it.
 */
#ifndef WORKER_HTTP_API_H
#define WORKER_HTTP_API_H

#include <sys/types.h>

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"

struct event_base;
struct api;
struct api_call;

#define API_PATH_MAX 4096
#define API_LINE_MAX 65536
#define API_HEADERS_MAX 65536 /* bytes of status line and headers */

enum api_failure_kind {
	API_NOBODY,     /* no connection; number says why */
	API_LATE,       /* no whole answer within timeout_ms */
	API_BROKEN,     /* no whole answer; why says more */
	API_TOO_LARGE,  /* an answer of more than limit bytes */
	API_UNSENDABLE, /* a path with a blank, or a control character in it or
			 * in a header */
	API_ENDING,     /* api_free */
	/* TLS; why says more */
	API_TLS_UNTRUSTED, /* none of our authorities signed its certificate */
	API_TLS_EXPIRED,   /* its certificate is too old, or not valid yet */
	API_TLS_MISNAMED,  /* its certificate is for another name */
	API_TLS_NONE,      /* it speaks something else */
	API_TLS_REFUSED,   /* it wants a certificate of ours, or another */
	API_TLS_FILE       /* a file of ours is not good */
};
struct api_failure {
	enum api_failure_kind kind;
	const char *method, *path;
	const char *where; /* the socket's path or the address */
	int number;        /* errno, 0: none */
	const char *why;
	uint32_t timeout_ms;
	size_t limit;
};

/* What is said of a server, and who counts its answers. */
struct api_server {
	/* The code and a text that says what a person can do about it. */
	int (*explain)(const struct api_failure *f, struct err *e);
	/* A call has ended; status 0: without an answer.  May be NULL. */
	void (*on_ended)(
	    const char *method, const char *path, long status, uint64_t us);
};

/* Files in PEM, read for each connection, or PEM itself; copied.  The server's
 * certificate must bear the name or the address that it is asked at. */
struct api_tls {
	const char *ca;         /* the only authorities that count */
	const char *cert, *key; /* of this client; NULL: none */
	bool is_pem;            /* they are no paths */
	const char *name;       /* the certificate bears this one instead; NULL:
				 * none.  As a URL has it. */
};

struct api_answer {
	int rc;           /* 0: a whole answer, whatever its status; else
			   * the code of api_server's explain */
	long status;      /* HTTP's */
	const char *body; /* a NUL stands behind it; what on_line got is not
			   * in it */
	size_t len;
	const struct err *why; /* when rc is not 0 */
	uint64_t took_us;
	const char *head; /* for api_header */
	size_t head_len;
	/* With status 101: the connection is the asker's now, see api_recv.
	 * NULL with every other status. */
	struct api_call *stream;
};

struct api_ask {
	const char *method; /* a literal */
	const char *path;   /* with query; copied */
	const void *body;   /* copied; NULL: none */
	size_t body_len;
	const char *content_type; /* a literal; NULL: JSON */
	/* Further ones, "Name: value", then NULL; copied.  NULL: none. */
	const char *const *headers;
	const char *upgrade; /* a protocol to ask for; NULL: none */
	uint32_t timeout_ms; /* 0: none, for streams */
	size_t max_body;     /* 0: 64 KiB */
	size_t max_line;     /* 0: API_LINE_MAX */
	/* Each line of a successful answer as it comes, without its end,
	 * instead of collecting.  An empty line, and one that is longer than
	 * max_line, is left out.  Must not free the api.  May be NULL. */
	void (*on_line)(const char *line, size_t n, void *arg);
	void (*on_done)(const struct api_answer *a, void *arg);
	void *arg;
};

/* api_new - server is kept by pointer */
struct api *api_new(struct event_base *base, const struct api_server *server);
/* api_free - on_done of all calls, with API_ENDING; streams must have been
 * given back */
void api_free(struct api *h);
/* api_set_socket - a Unix socket, for calls from now on; copied */
void api_set_socket(struct api *h, const char *path);
/* api_set_address - "tcp://HOST:PORT" (engine_host.h), or with TLS
 * "https://HOST[:PORT][/PREFIX]" (weburl.h), for calls from now on, whose paths
 * the prefix stands before; copied.  tls NULL: plain text.  Forks: before the
 * process is confined and has threads.  ERR_INVAL for anything else. */
int api_set_address(struct api *h, const char *url, const struct api_tls *tls,
    struct err *e) MUSTCHECK;
/* api_renew_tls - the same address by other files, for calls that are started
 * from now on */
void api_renew_tls(struct api *h, const struct api_tls *tls);
/* api_peer_expires_ms - until when the certificate is good that the server
 * showed last; 0: it showed none */
int64_t api_peer_expires_ms(const struct api *h);
/* api_start - on_done comes exactly once, never inside this call */
struct api_call *api_start(struct api *h, const struct api_ask *ask);
/* api_cancel - on_done will not be called; closes a stream */
void api_cancel(struct api_call *c);

/* api_header - the value of the answer's first header of that name, within
 * on_done; NULL: it has none */
const char *api_header(const struct api_answer *a, const char *name);

/*
 * Of a stream (api_answer.stream), until it is given to api_cancel: bytes as
 * recv(2) and send(2) take them, -1 with errno.  recv until EAGAIN before
 * waiting for api_fd to be readable: bytes may have come already.
 */
int api_fd(const struct api_call *c);
ssize_t api_recv(struct api_call *c, void *p, size_t n);
ssize_t api_send(struct api_call *c, const void *p, size_t n);

/* api_escape - s percent-encoded for a query; the caller frees */
char *api_escape(const char *s);

#endif
