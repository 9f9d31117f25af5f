/*
 *	ASKS	GET .../pods/NAME/exec, with an upgrade of the connection
 *	  |
 *	JOINED	the connection is ours, and a pump (pump.h) is between it and
 *		the asker's socket, with the messages of exec_stream.h
 *	  |
 *	LEAVES	the asker knows that it is over; the server is told so, and
 *		waited for a while: of a connection that is closed with bytes
 *		unread it learns nothing
 */
#include "worker/kubernetes/pod_exec.h"

#include <stdio.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/text.h"
#include "common/xmalloc.h"
#include "worker/complaint.h"
#include "worker/http/api.h"
#include "worker/kubernetes/cluster.h"
#include "worker/kubernetes/exec_stream.h"
#include "worker/kubernetes/websocket.h"
#include "worker/pump.h"

#define ASK_MS 10000
#define LEAVE_MS 2000
#define WORDS_MAX 200 /* of an answer that is no Status */

_Static_assert(EXEC_STREAM_INPUT_MAX >= PUMP_PIECE_BYTES &&
	EXEC_STREAM_HEAD_MAX <= PUMP_HEAD_MAX,
    "a piece of the pump's is a message");

enum pod_exec_stage {
	POD_EXEC_ASKS,
	POD_EXEC_JOINED,
	POD_EXEC_LEAVES
};

struct pod_exec {
	struct pod_execs *in;
	enum pod_exec_stage stage;
	char key[WEBSOCKET_KEY_LEN + 1];
	struct cluster_call *call;  /* of POD_EXEC_ASKS */
	struct exec_stream *stream; /* from POD_EXEC_JOINED on */
	struct pump *pump;
	const struct backend_exec_user *user;
	void *arg;
	char fault[ERR_TEXT_MAX]; /* of the stream; "": none */
	TAILQ_ENTRY(pod_exec) link;
};

/* ---- the end */

static void
pod_exec_free(struct pod_exec *x)
{
	TAILQ_REMOVE(&x->in->all, x, link);
	pump_free(x->pump);
	exec_stream_free(x->stream);
	free(x);
}

static void
leave(struct pod_exec *x)
{
	struct buf last;

	x->stage = POD_EXEC_LEAVES;
	buf_init(&last, 0);
	exec_stream_close(x->stream, &last);
	pump_leave(x->pump, &last, LEAVE_MS);
	buf_clear(&last);
}

/* What the status says; "": nothing came. */
static void
explain_result(const struct exec_result *r, char *to, size_t size)
{
	static const char *const words[] = {
	    [EXEC_END_UNKNOWN] = "nobody knows how the program ended",
	    [EXEC_END_NO_START] = "the program did not start"};

	to[0] = '\0';
	if (r->end == EXEC_END_EXITED)
		(void)snprintf(to, size, "the program ended with %d", r->code);
	else if (r->text[0] != '\0')
		(void)snprintf(to, size, "%s: %s", words[r->end], r->text);
}

static void
explain_end(const struct pod_exec *x, enum pump_end how, char *to, size_t size)
{
	static const char *const words[] = {
	    [PUMP_ASKER_LEFT] = "the worker hung up",
	    [PUMP_STOPPED] = "the API server ended the stream",
	    [PUMP_PEER_ENDED] = "the connection to the API server ended",
	    [PUMP_PEER_BROKE] = "the connection to the API server broke"};

	if (how == PUMP_STOPPED && x->fault[0] != '\0') {
		(void)snprintf(to, size, "%s", x->fault);
		return;
	}
	explain_result(exec_stream_result(x->stream), to, size);
	if (to[0] == '\0')
		(void)snprintf(to, size, "%s", words[how]);
}

static void
ended_cb(enum pump_end how, void *arg)
{
	struct pod_exec *x = arg;
	char why[ERR_TEXT_MAX];

	complaint_log(exec_stream_complaint(x->stream));
	explain_end(x, how, why, sizeof(why));
	x->user->ended(why, x->arg);
	if (how == PUMP_PEER_ENDED || how == PUMP_PEER_BROKE)
		pod_exec_free(x);
	else
		leave(x);
}

static void
left_cb(void *arg)
{
	pod_exec_free(arg);
}

/* ---- between */

static int
up_cb(const uint8_t *p, size_t n, struct buf *out, struct buf *back, void *arg)
{
	struct pod_exec *x = arg;
	struct err e;
	int rc = exec_stream_take(x->stream, p, n, out, back, &e);

	if (rc < 0)
		(void)snprintf(x->fault, sizeof(x->fault), "%s", e.msg);
	return rc == 0 ? 0 : -1;
}

static void
down_cb(const uint8_t *p, size_t n, struct buf *out, void *arg)
{
	struct pod_exec *x = arg;

	exec_stream_put(x->stream, p, n, out);
}

static const struct pump_user pump_user = {up_cb, down_cb, ended_cb, left_cb};

/* ---- the way there */

/* Errors before the upgrade are a Status, or the plain text of a node's
 * kubelet, or nothing at all. */
static int
refusal(const struct cluster_answer *a, struct err *e)
{
	const char *text =
	    a->raw != NULL && a->raw->rc == 0 ? a->raw->body : "";
	char words[WORDS_MAX];

	if (a->status == 403 && text[0] == '\0')
		return err_set(e, ERR_BACKEND,
		    "exec: the API server takes none of the protocols %s: it "
		    "is older than Kubernetes 1.29, or a proxy before it "
		    "forbids WebSockets",
		    EXEC_STREAM_OFFER);
	if (a->status == 500 && a->body == NULL &&
	    strncmp(text, "container not found", 19) == 0) {
		text_clean(words, sizeof(words), text, strlen(text));
		return err_set(e, ERR_NOTFOUND,
		    "exec: the Pod's container does not run: %s", words);
	}
	/* 400: the Pod is on no node, or has no container of that name. */
	if (a->rc == ERR_NOTFOUND || a->status == 400)
		return err_set(e, ERR_NOTFOUND, "exec: %s", a->why->msg);
	return err_set(e,
	    a->rc == ERR_WRONG_STATE ? ERR_WRONG_STATE : ERR_BACKEND,
	    "exec: %s", a->why->msg);
}

/* The server has switched, and says to what. */
static int
check_switch(const struct pod_exec *x, const struct cluster_answer *a,
    enum exec_protocol *out, struct err *e)
{
	*out =
	    exec_stream_protocol(api_header(a->raw, "Sec-WebSocket-Protocol"));
	if (websocket_is_answer(
		x->key, api_header(a->raw, "Sec-WebSocket-Accept")) &&
	    *out != EXEC_PROTOCOL_NONE)
		return 0;
	return err_set(e, ERR_BACKEND,
	    "exec: the API server, or a proxy before it, answers with another "
	    "WebSocket than the one that was asked for");
}

/* The stream is the pump's if 0 is returned. */
static int
join(struct pod_exec *x, const struct cluster_answer *a, int *theirs,
    struct err *e)
{
	enum exec_protocol protocol;
	int rc = check_switch(x, a, &protocol, e);

	if (rc == 0)
		rc = pump_open(
		    x->in->base, a->stream, &pump_user, x, &x->pump, theirs, e);
	if (rc == 0)
		x->stream = exec_stream_new(protocol);
	else
		api_cancel(a->stream);
	return rc;
}

static void
answered_cb(const struct cluster_answer *a, void *arg)
{
	struct pod_exec *x = arg;
	int rc, theirs = -1;
	struct err e;

	x->call = NULL;
	if (a->rc != 0)
		rc = refusal(a, &e);
	else if (a->stream == NULL)
		rc = err_set(&e, ERR_BACKEND,
		    "exec: the API server, or a proxy before it, does not "
		    "hand the connection over (Upgrade: websocket)");
	else
		rc = join(x, a, &theirs, &e);
	if (rc != 0) {
		x->user->joined(rc, -1, &e, x->arg);
		pod_exec_free(x);
		return;
	}
	x->stage = POD_EXEC_JOINED;
	x->user->joined(0, theirs, NULL, x->arg);
}

static void
add_query(struct buf *path, const char *name, const char *value)
{
	AUTO(auto_free) char *escaped = api_escape(value);

	if (buf_printf(path, "&%s=%s", name, escaped) != 0)
		fatal(EXIT_BUG, "exec: no room for a path");
}

/* With the NUL behind it. */
static void
write_path(struct buf *path, const struct pod_execs *in, const char *pod,
    const char *const *command)
{
	AUTO(auto_free) char *namespace = api_escape(in->namespace);
	AUTO(auto_free) char *name = api_escape(pod);

	buf_init(path, 0);
	if (buf_printf(path,
		"/api/v1/namespaces/%s/pods/%s/"
		"exec?stdin=true&stdout=true&stderr=true",
		namespace, name) != 0)
		fatal(EXIT_BUG, "exec: no room for a path");
	add_query(path, "container", in->container);
	for (; *command != NULL; command++)
		add_query(path, "command", *command);
	if (buf_append(path, "", 1) != 0)
		fatal(EXIT_BUG, "exec: no room for a path");
}

static void
ask(struct pod_exec *x, const char *pod, const char *const *command)
{
	char key[sizeof("Sec-WebSocket-Key: ") + WEBSOCKET_KEY_LEN];
	const char *const headers[] = {key, "Sec-WebSocket-Version: 13",
	    "Sec-WebSocket-Protocol: " EXEC_STREAM_OFFER, NULL};
	struct buf path;

	websocket_make_key(x->key);
	(void)snprintf(key, sizeof(key), "Sec-WebSocket-Key: %s", x->key);
	write_path(&path, x->in, pod, command);
	x->call = cluster_start(x->in->cluster,
	    &(struct cluster_ask){.method = "GET",
		.path = (const char *)buf_data(&path),
		.timeout_ms = ASK_MS,
		.headers = headers,
		.upgrade = "websocket",
		.on_done = answered_cb,
		.arg = x});
	buf_clear(&path);
}

/* ---- public */

void
pod_execs_init(struct pod_execs *all, struct event_base *base,
    struct cluster *cluster, const char *namespace, const char *container)
{
	*all = (struct pod_execs){.base = base,
	    .cluster = cluster,
	    .namespace = namespace,
	    .container = container};
	TAILQ_INIT(&all->all);
}

void
pod_execs_clear(struct pod_execs *all)
{
	struct pod_exec *x, *next;

	for (x = TAILQ_FIRST(&all->all); x != NULL; x = next) {
		next = TAILQ_NEXT(x, link);
		if (x->stage != POD_EXEC_ASKS)
			pod_exec_free(x);
	}
}

struct backend_exec *
pod_exec_start(struct pod_execs *all, const char *pod,
    const char *const *command, const struct backend_exec_user *user, void *arg)
{
	struct pod_exec *x = xcalloc(1, sizeof(*x));

	x->in = all;
	x->user = user;
	x->arg = arg;
	TAILQ_INSERT_TAIL(&all->all, x, link);
	ask(x, pod, command);
	return (struct backend_exec *)x;
}

void
pod_exec_cancel(struct backend_exec *exec)
{
	struct pod_exec *x = (struct pod_exec *)exec;

	if (x->stage == POD_EXEC_JOINED) {
		leave(x);
		return;
	}
	cluster_cancel(x->call);
	pod_exec_free(x);
}
