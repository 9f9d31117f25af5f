#include "supervisor/ctl/ctl_call.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/ctl/ctl_print.h"
#include "supervisor/ctl/ctl_screen.h"

#define WATCH_PATIENCE_S 5L
#define CLOCK_BYTES 16

static volatile sig_atomic_t is_interrupted;

/* ---- one answer, for a person */

static json_int_t
number(const json_t *o, const char *member)
{
	return json_integer_value(json_object_get(o, member));
}

/* A number becomes what a person reads. */
static void
say(json_t *o, const char *member, json_t *(*form)(json_int_t))
{
	const json_t *v = json_object_get(o, member);

	if (json_is_integer(v))
		json_object_set_new(o, member, form(json_integer_value(v)));
}

/* What the server says of others, for a terminal. */
static char *
take_words(const json_t *o, const char *member)
{
	char *text = xstrdup(js_text(o, member));

	text[utf8_mask_controls(text, strlen(text))] = '\0';
	return text;
}

static void
print_head(const json_t *o, const struct ctl_screen *screen)
{
	const char *health = js_text(o, "health");
	AUTO(auto_free) char *why = take_words(o, "why");
	const char *paint = screen->has_colours ? ctl_screen_paint(health) : "";
	AUTO(auto_json) json_t *up = ctl_print_seconds(number(o, "uptime_s"));

	(void)printf("mcp-sandboxd %s: %s%s%s%s%s, up %s, since %s\n",
	    js_text(o, "version"), paint, health,
	    paint[0] != '\0' ? CTL_SCREEN_PLAIN : "",
	    why[0] != '\0' ? ": " : "", why, json_string_value(up),
	    js_text(o, "started_at"));
}

static void
print_lists(json_t *o)
{
	static const struct ctl_column programs[] = {{"PROGRAM", "name"},
	    {"PID", "pid"}, {"STATE", "state"}, {"RESTARTS", "restarts"},
	    {"UP", "uptime_s"}};
	static const struct ctl_column engine[] = {{"WORKER", "worker"},
	    {"ENGINE", "engine"}, {"SINCE", "since"}, {"NAME", "name"},
	    {"VERSION", "version"}, {"API", "api_version"},
	    {"RUNTIME", "runtime"}, {"CARRIER", "carrier"},
	    {"WHY", "carrier_why"}, {"DETAIL", "detail"}};
	static const struct ctl_column disks[] = {{"DISK", "name"},
	    {"FREE", "free_bytes"}, {"INODES", "free_inodes"},
	    {"DIRECTORY", "dir"}};
	json_t *v;
	size_t i;

	json_array_foreach (json_object_get(o, "programs"), i, v)
		say(v, "uptime_s", ctl_print_seconds);
	json_array_foreach (json_object_get(o, "disks"), i, v)
		say(v, "free_bytes", ctl_print_bytes);
	(void)putchar('\n');
	ctl_print_table(
	    json_object_get(o, "programs"), programs, ARRAY_LEN(programs));
	(void)putchar('\n');
	ctl_print_table(
	    json_object_get(o, "engine"), engine, ARRAY_LEN(engine));
	(void)putchar('\n');
	ctl_print_table(json_object_get(o, "disks"), disks, ARRAY_LEN(disks));
}

static void
print_index(const json_t *index)
{
	json_int_t rows = number(index, "lag_rows");
	AUTO(auto_json) json_t *oldest = NULL;
	AUTO(auto_free) char *why = NULL;

	if (json_is_false(json_object_get(index, "available"))) {
		why = take_words(index, "why");
		(void)printf("index of the history: not available: %s; ", why);
	} else {
		(void)printf("index of the history: ");
	}
	if (rows == 0) {
		(void)puts("no rows wait");
		return;
	}
	oldest = ctl_print_seconds(number(index, "lag_s"));
	(void)printf("%lld rows wait, the first for %s\n", rows,
	    json_string_value(oldest));
}

static void
print_counts(json_t *o)
{
	const json_t *load = json_object_get(o, "load");
	json_t *history = json_object_get(o, "history");
	const json_t *store = json_object_get(o, "store");
	const json_t *http = json_object_get(o, "http");

	(void)printf("\n%lld tenants, %lld sandboxes, ",
	    number(load, "tenants"), number(load, "sandboxes"));
	if (json_is_integer(json_object_get(load, "containers")))
		(void)printf("%lld containers on the engine; ",
		    number(load, "containers"));
	else
		(void)printf("containers not counted yet; ");
	(void)printf("runs: %lld running, %lld queued; %lld connections, %lld "
		     "event streams\n",
	    number(load, "runs_running"), number(load, "runs_queued"),
	    number(http, "connections"), number(http, "streams"));
	(void)printf(
	    "history: %lld logs in files", number(history, "log_files"));
	say(history, "log_bytes", ctl_print_bytes);
	say(history, "artifact_bytes", ctl_print_bytes);
	(void)printf(" (%s), %lld artifacts (%s), %lld runs gave up theirs\n",
	    js_text(history, "log_bytes"), number(history, "artifact_files"),
	    js_text(history, "artifact_bytes"),
	    number(history, "evicted_runs"));
	print_index(json_object_get(history, "index"));
	(void)printf("database: %lld writes wait, %lld commits, %lld "
		     "failures\n",
	    number(store, "queue"), number(store, "commits"),
	    number(store, "failures"));
}

static void
print_status(json_t *o)
{
	const struct ctl_screen screen = ctl_screen_look();

	print_head(o, &screen);
	print_lists(o);
	print_counts(o);
}

/* ---- asking */

static int
ask(const struct ctl_call *c, long patience_s, json_t **out, struct err *e)
{
	struct ctl_link *l = NULL;
	int rc;

	/* Each time anew: a server that restarts has another socket. */
	if (ctl_link_open(c->o, &l, e) != 0)
		return e->code;
	if (patience_s > 0)
		ctl_link_hurry(l, patience_s);
	rc = ctl_request(l, "GET", "/api/v1/status", NULL, out, e);
	ctl_link_close(l);
	return rc;
}

/* ---- again and again */

static void
interrupt_cb(int sig)
{
	(void)sig;
	is_interrupted = 1;
}

struct watch_view {
	json_t *last; /* as it was printed; NULL: none yet */
	time_t missing_since;
};

static void
say_clock(time_t at, char text[CLOCK_BYTES])
{
	struct tm tm;

	(void)localtime_r(&at, &tm);
	(void)strftime(text, CLOCK_BYTES, "%H:%M:%S", &tm);
}

static void
draw_missing(struct watch_view *w, time_t now, const struct err *why)
{
	char since[CLOCK_BYTES];

	if (w->missing_since == 0)
		w->missing_since = now;
	say_clock(w->missing_since, since);
	(void)printf("no answer since %s (%lld s): %s\n", since,
	    (long long)(now - w->missing_since), why->msg);
	if (w->last == NULL)
		return;
	(void)puts("before that:\n");
	print_status(w->last);
}

static void
watch_turn(const struct ctl_call *c, struct watch_view *w)
{
	const struct ctl_screen screen = ctl_screen_look();
	json_t *fresh = NULL;
	struct err why = {0};
	int rc = ask(c, WATCH_PATIENCE_S, &fresh, &why);

	if (screen.is_terminal && !c->o->json)
		(void)fputs(CTL_SCREEN_CLEAR, stdout);
	if (rc == 0) {
		w->missing_since = 0;
		json_decref(w->last);
		w->last = fresh;
	}
	if (c->o->json && rc == 0) {
		ctl_print_json_line(w->last);
	} else if (c->o->json) {
		(void)fprintf(stderr, "sandboxctl: %s\n", why.msg);
	} else if (rc == 0) {
		print_status(w->last);
	} else {
		draw_missing(w, time(NULL), &why);
	}
	if (!screen.is_terminal && !c->o->json)
		(void)putchar('\n');
	(void)fflush(stdout);
}

static int
watch(const struct ctl_call *c, struct err *e)
{
	const struct sigaction act = {.sa_handler = interrupt_cb};
	const struct timespec second = {.tv_sec = 1};
	struct watch_view w = {0};

	if (sigaction(SIGINT, &act, NULL) == -1 ||
	    sigaction(SIGTERM, &act, NULL) == -1)
		return err_errno(e, "signals");
	while (!is_interrupted && ferror(stdout) == 0) {
		watch_turn(c, &w);
		if (!is_interrupted)
			(void)nanosleep(&second, NULL);
	}
	json_decref(w.last);
	return 0;
}

int
ctl_status_show(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;

	if (c->o->watch)
		return watch(c, e);
	if (ask(c, 0, &o, e) != 0)
		return e->code;
	if (c->o->json)
		ctl_print_json(o);
	else
		print_status(o);
	return 0;
}
