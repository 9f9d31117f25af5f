#include "supervisor/ctl/ctl_run.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/js.h"
#include "common/utf8.h"
#include "common/uuid.h"
#include "common/xmalloc.h"
#include "supervisor/ctl/ctl_query.h"

#define PIECE_MAX (1u << 20)
#define PAUSE_NS 200000000L
#define AGAIN_S 1
#define HURRY_S 20L

struct tail {
	const struct ctl_call *c;
	struct ctl_link *link; /* NULL: the server is away */
	uint64_t offset;
	bool is_escaped;
	bool is_known;   /* the server answered for it at least once */
	uint8_t rest[4]; /* of a character that is not whole yet */
	size_t nrest;
};

static void
pause_ns(time_t seconds, long ns)
{
	const struct timespec t = {.tv_sec = seconds, .tv_nsec = ns};

	(void)nanosleep(&t, NULL);
}

/* ---- on a terminal */

/* Valid UTF-8; each control character but newline and tab as \xNN. */
static void
put_escaped(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool is_c1 = p[i] == 0xc2 && i + 1 < n && p[i + 1] < 0xa0;

		if (is_c1)
			(void)printf("\\x%02x", p[++i]);
		else if ((p[i] < 0x20 && p[i] != '\n' && p[i] != '\t') ||
		    p[i] == 0x7f)
			(void)printf("\\x%02x", p[i]);
		else
			(void)putchar(p[i]);
	}
}

static void
put_shown(struct tail *t, const struct span *piece, bool is_last)
{
	struct buf in, out;
	size_t whole;

	buf_init(&in, PIECE_MAX + sizeof(t->rest));
	buf_init(&out, 4 * (PIECE_MAX + sizeof(t->rest)));
	(void)!buf_append(&in, t->rest, t->nrest);
	(void)!buf_append(&in, piece->p, piece->n);
	whole = is_last || buf_len(&in) == 0 ?
	    buf_len(&in) :
	    utf8_complete_len(buf_data(&in), buf_len(&in));
	t->nrest = buf_len(&in) - whole;
	if (t->nrest > 0)
		memcpy(t->rest, buf_data(&in) + whole, t->nrest);
	if (whole > 0 && utf8_append_repaired(&out, buf_data(&in), whole) == 0)
		put_escaped(buf_data(&out), buf_len(&out));
	buf_clear(&in);
	buf_clear(&out);
}

static void
put(struct tail *t, const struct span *piece, bool is_last)
{
	if (t->is_escaped)
		put_shown(t, piece, is_last);
	else if (piece->n > 0)
		(void)fwrite(piece->p, 1, piece->n, stdout);
	(void)fflush(stdout);
}

/* ---- asking */

static int
ask_piece(struct tail *t, struct ctl_output *out, struct err *e)
{
	AUTO(auto_free)
	char *path = xasprintf("/api/v1/runs/%s/output?offset=%llu&limit=%u",
	    t->c->words[0], (unsigned long long)t->offset, PIECE_MAX);
	AUTO(auto_free) char *full = NULL;

	if (t->link == NULL) {
		if (ctl_link_open(t->c->o, &t->link, e) != 0)
			return ERR_LOST;
		ctl_link_hurry(t->link, HURRY_S);
	}
	if (ctl_query_path(t->c, path, 1, &full, e) != 0)
		return e->code;
	return ctl_request_output(t->link, full, out, e);
}

/* A server that goes away comes back: what was printed is not printed again. */
static int
ask_patiently(struct tail *t, struct ctl_output *out, struct err *e)
{
	bool is_said = false;
	int rc;

	while ((rc = ask_piece(t, out, e)) == ERR_LOST && t->is_known &&
	    t->c->o->follow) {
		if (!is_said)
			(void)fprintf(stderr,
			    "sandboxctl: %s; waiting for the server\n", e->msg);
		is_said = true;
		ctl_link_close(t->link);
		t->link = NULL;
		pause_ns(AGAIN_S, 0);
	}
	t->is_known = true;
	return rc;
}

/* 1: there may be more. */
static int
tail_piece(struct tail *t, struct err *e)
{
	struct ctl_output o = {.next = t->offset};
	bool is_over;

	if (ask_patiently(t, &o, e) != 0)
		return e->code < 0 ? e->code : ERR_BACKEND;
	is_over = o.is_complete || (o.bytes.n == 0 && !t->c->o->follow);
	put(t, &o.bytes, is_over);
	t->offset = o.next;
	if (ferror(stdout) != 0)
		return 0; /* main says so */
	if (is_over && o.missing > 0)
		return err_set(e, ERR_BACKEND,
		    "%llu bytes that it printed are not there any more",
		    (unsigned long long)o.missing);
	if (!is_over && o.bytes.n == 0)
		pause_ns(0, PAUSE_NS);
	return is_over ? 0 : 1;
}

/* On a terminal, how it ended; the output itself stays what it was. */
static void
say_end(const struct tail *t)
{
	AUTO(auto_free)
	char *path = xasprintf("/api/v1/runs/%s", t->c->words[0]);
	AUTO(auto_free) char *full = NULL;
	AUTO(auto_json) json_t *o = NULL;
	AUTO(auto_free) char *code = NULL;
	struct err ignored;

	if (isatty(STDERR_FILENO) != 1 || !t->c->o->follow ||
	    ctl_query_path(t->c, path, 1, &full, &ignored) != 0 ||
	    ctl_request(t->link, "GET", full, NULL, &o, &ignored) != 0)
		return;
	code = json_dumps(json_object_get(o, "exit_code"), JSON_ENCODE_ANY);
	(void)fprintf(stderr, "sandboxctl: %s: %s, exit code %s\n",
	    t->c->words[0], js_text(o, "state"), code == NULL ? "-" : code);
}

int
ctl_tail_run(const struct ctl_call *c, struct err *e)
{
	struct tail t = {.c = c};
	struct uuid run;
	int rc;

	if (uuid_parse(c->words[0], &run) != 0)
		return err_set(e, ERR_INVAL,
		    "%.60s: want the id of a run, as run list prints it",
		    c->words[0]);
	t.is_escaped = isatty(STDOUT_FILENO) == 1 && !c->o->raw;
	while ((rc = tail_piece(&t, e)) == 1)
		;
	if (rc == 0)
		say_end(&t);
	ctl_link_close(t.link);
	return rc;
}
