#include "supervisor/ctl/ctl_call.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/js.h"
#include "common/utf8.h"
#include "common/uuid.h"
#include "common/xmalloc.h"
#include "supervisor/ctl/ctl_print.h"
#include "supervisor/ctl/ctl_query.h"

#define PIECE_MAX (1u << 20)
#define PAUSE_NS 200000000L
#define AGAIN_S 1
#define HURRY_S 20L

/* ---- asking */

static int
ask_path(const struct ctl_call *c, const char *method, const char *path,
    int first, json_t **out, struct err *e)
{
	AUTO(auto_free) char *full = NULL;

	if (ctl_query_path(c, path, first, &full, e) != 0)
		return e->code;
	return ctl_request(c->link, method, full, NULL, out, e);
}

/* Of the run that the first word names; the caller's to free, NULL: *e. */
static char *
run_path(const struct ctl_call *c, const char *below, struct err *e)
{
	struct uuid run;

	if (uuid_parse(c->words[0], &run) == 0)
		return xasprintf("/api/v1/runs/%s%s", c->words[0], below);
	(void)err_set(e, ERR_INVAL,
	    "%.60s: want the id of a run, as run list prints it", c->words[0]);
	return NULL;
}

static int
ask_run(const struct ctl_call *c, const char *method, const char *below,
    json_t **out, struct err *e)
{
	AUTO(auto_free) char *path = run_path(c, below, e);

	return path == NULL ? e->code : ask_path(c, method, path, 1, out, e);
}

/* ---- lists */

/* What a person reads in place of numbers. */
static void
say_durations(json_t *list)
{
	json_t *o;
	size_t i;

	json_array_foreach (list, i, o) {
		const json_t *ms = json_object_get(o, "duration_ms");

		if (json_is_integer(ms))
			json_object_set_new(o, "duration",
			    json_sprintf("%.3f s",
				(double)json_integer_value(ms) / 1000));
	}
}

static void
say_more(const json_t *o)
{
	const char *next = js_text(o, "next_cursor");

	if (next[0] != '\0')
		(void)fprintf(stderr, "there are more: cursor=%s\n", next);
}

static void
say_text_since(const json_t *o)
{
	const char *since = js_text(o, "text_since");

	if (since[0] != '\0')
		(void)fprintf(stderr,
		    "of runs created before %s the text was given up: q does "
		    "not find them\n",
		    since);
}

static int
list(const struct ctl_call *c, const json_t *o, const char *member,
    const struct ctl_column *columns, size_t n)
{
	if (!c->o->json)
		say_durations(json_object_get(o, member));
	ctl_print_list(c->o, o, member, columns, n);
	if (c->o->json)
		return 0;
	say_text_since(o);
	say_more(o);
	return 0;
}

int
ctl_run_list(const struct ctl_call *c, struct err *e)
{
	static const struct ctl_column columns[] = {{"RUN", "run_id"},
	    {"IDENTIFIER", "identifier"}, {"STATE", "state"},
	    {"REASON", "end_reason"}, {"EXIT", "exit_code"},
	    {"DURATION", "duration"}, {"CREATED", "created_at"},
	    {"TOOL", "tool"}, {"BY", "principal"}};
	AUTO(auto_json) json_t *o = NULL;

	if (ask_path(c, "GET", "/api/v1/runs", 0, &o, e) != 0)
		return e->code;
	return list(c, o, "runs", columns, ARRAY_LEN(columns));
}

int
ctl_run_artifacts(const struct ctl_call *c, struct err *e)
{
	static const struct ctl_column columns[] = {{"SIZE", "size"},
	    {"MODIFIED", "modified_at"}, {"SHA-256", "sha256"},
	    {"PATH", "path"}};
	AUTO(auto_json) json_t *o = NULL;

	if (ask_run(c, "GET", "/artifacts", &o, e) != 0)
		return e->code;
	return list(c, o, "artifacts", columns, ARRAY_LEN(columns));
}

int
ctl_sandbox_list(const struct ctl_call *c, struct err *e)
{
	static const struct ctl_column columns[] = {
	    {"IDENTIFIER", "identifier"}, {"STATE", "state"}, {"NAME", "name"},
	    {"RUNS", "active_runs"}, {"IMAGE", "image"},
	    {"CREATED", "created_at"}, {"EXPIRES", "expires_at"}};
	AUTO(auto_json) json_t *o = NULL;

	if (ask_path(c, "GET", "/api/v1/sandboxes", 0, &o, e) != 0)
		return e->code;
	return list(c, o, "sandboxes", columns, ARRAY_LEN(columns));
}

/* ---- one */

/* Its commands are a table below it. */
static void
print_record(json_t *o)
{
	static const struct ctl_column columns[] = {{"#", "index"},
	    {"STATUS", "status"}, {"REASON", "end_reason"},
	    {"EXIT", "exit_code"}, {"DURATION", "duration"},
	    {"STDOUT", "stdout_bytes"}, {"STDERR", "stderr_bytes"},
	    {"COMMAND", "said"}};
	json_t *commands = json_incref(json_object_get(o, "commands"));
	json_t *one;
	size_t i;

	json_object_del(o, "commands");
	json_array_foreach (commands, i, one)
		json_object_set(one, "said",
		    json_is_null(json_object_get(one, "shell")) ?
			json_object_get(one, "argv") :
			json_object_get(one, "shell"));
	say_durations(commands);
	ctl_print_object(o);
	(void)putchar('\n');
	ctl_print_table(commands, columns, ARRAY_LEN(columns));
	json_decref(commands);
}

int
ctl_run_show(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;

	if (ask_run(c, "GET", "", &o, e) != 0)
		return e->code;
	if (c->o->json)
		ctl_print_json(o);
	else
		print_record(o);
	return 0;
}

/* Of the sandbox that the first word names. */
static int
ask_sandbox(
    const struct ctl_call *c, const char *method, json_t **out, struct err *e)
{
	AUTO(auto_free) char *path = NULL;

	if (!ctl_query_is_name(c->words[0]) || strchr(c->words[0], '.') != NULL)
		return err_set(e, ERR_INVAL,
		    "%.60s: want an identifier, as sandbox list prints it",
		    c->words[0]);
	if (ctl_query_of_tenant(c, "sandboxes", c->words[0], "",
		"that is no name", &path, e) != 0)
		return e->code;
	return ctl_request(c->link, method, path, NULL, out, e);
}

int
ctl_sandbox_show(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;

	if (ask_sandbox(c, "GET", &o, e) != 0)
		return e->code;
	ctl_print_answer(c->o, o);
	return 0;
}

/* ---- what is done to one */

static int
change(const struct ctl_call *c, const char *method, const char *below,
    const char *done, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;
	const char *state;

	if (ask_run(c, method, below, &o, e) != 0)
		return e->code;
	state = js_text(o, "state");
	ctl_print_done(c->o, o, "run %s %s%s%s", js_text(o, "run_id"), done,
	    state[0] != '\0' ? ": " : "", state);
	return 0;
}

int
ctl_run_cancel(const struct ctl_call *c, struct err *e)
{
	return change(c, "POST", "/cancel", "is told to end", e);
}

int
ctl_run_delete(const struct ctl_call *c, struct err *e)
{
	return change(c, "DELETE", "", "is deleted", e);
}

int
ctl_run_rerun(const struct ctl_call *c, struct err *e)
{
	return change(c, "POST", "/rerun", "is begun", e);
}

int
ctl_sandbox_delete(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;

	if (ask_sandbox(c, "DELETE", &o, e) != 0)
		return e->code;
	ctl_print_done(
	    c->o, o, "sandbox %s is deleted", js_text(o, "identifier"));
	return 0;
}

/* ---- numbers, and all of it */

static void
print_groups(const json_t *o)
{
	static const struct ctl_column columns[] = {{"GROUP", "key"},
	    {"RUNS", "runs"}, {"P50 MS", "p50_ms"}, {"P95 MS", "p95_ms"},
	    {"P99 MS", "p99_ms"}, {"CPU S", "cpu_seconds"},
	    {"OUTPUT", "output_bytes"}, {"ARTIFACTS", "artifact_bytes"}};
	json_int_t more = json_integer_value(json_object_get(o, "more_groups"));

	ctl_print_table(
	    json_object_get(o, "groups"), columns, ARRAY_LEN(columns));
	if (more > 0)
		(void)fprintf(stderr, "there are %lld more groups\n", more);
}

int
ctl_run_stats(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;

	if (ask_path(c, "GET", "/api/v1/stats", 0, &o, e) != 0)
		return e->code;
	if (c->o->json) {
		ctl_print_json(o);
		return 0;
	}
	print_groups(o);
	say_text_since(o);
	return 0;
}

int
ctl_run_export(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_free) char *path = NULL;

	if (ctl_query_path(c, "/api/v1/export", 0, &path, e) != 0)
		return e->code;
	return ctl_request_pipe(c->link, path, stdout, e);
}

/* ---- what one prints */

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
	AUTO(auto_free) char *path = run_path(c, "", e);
	int rc;

	if (path == NULL)
		return e->code;
	t.is_escaped = isatty(STDOUT_FILENO) == 1 && !c->o->raw;
	while ((rc = tail_piece(&t, e)) == 1)
		;
	if (rc == 0)
		say_end(&t);
	ctl_link_close(t.link);
	return rc;
}
