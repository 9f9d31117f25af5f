/*
 * mcp-sandboxd-stdio - MCP over stdin and stdout, for clients that start a
 * command
 *
 * Started by "mcp-sandboxd stdio", whose options it is given behind that
 * program's path; what it needs of the settings is in its environment.
 * MCP_SANDBOXD_URL names the server; without one, a server of its own runs as
 * long as it does (household.h).
 *
 * It ends when its input does, once what was asked is answered or nothing has
 * moved for END_MS, and on SIGTERM and SIGINT.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sysexits.h>

#include <event2/event.h>

#include "common/exit.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/stdio/bridge.h"
#include "supervisor/stdio/header.h"
#include "supervisor/stdio/household.h"
#include "supervisor/stdio/lines.h"
#include "supervisor/stdio/outlet.h"
#include "supervisor/stdio/web.h"

#define END_MS 5000
#define PIECE 65536
#define TOKEN_MAX 8192

struct stdio_program {
	struct event_base *base;
	struct web *web;
	struct outlet *output;
	struct bridge *bridge;
	struct household *household; /* NULL: MCP_SANDBOXD_URL */
	struct lines lines;
	struct event *readable;
	struct event *signals[2];
	struct timer *end;
	bool is_reading;
	bool is_ending; /* the bridge is gone */
	int status;
};

/* ---- the end */

static void
finish(struct stdio_program *p)
{
	(void)event_base_loopbreak(p->base);
}

static void
done_cb(void *arg)
{
	finish(arg);
}

/* A server that is being started has its time, as long as anybody waits, and so
 * has a client that still reads. */
static void
end_cb(void *arg)
{
	struct stdio_program *p = arg;

	if ((p->household != NULL && !bridge_was_reached(p->bridge) &&
		p->status == 0) ||
	    bridge_moves(p->bridge)) {
		timer_set_ms(p->end, END_MS);
		return;
	}
	if (bridge_left(p->bridge) > 0)
		log_warn("%zu messages have no answer %d s after the input's "
			 "end, and nothing moves: they are left",
		    bridge_left(p->bridge), END_MS / 1000);
	finish(p);
}

static void
begin_end(struct stdio_program *p)
{
	if (p->is_reading)
		(void)event_del(p->readable);
	p->is_reading = false;
	bridge_end_input(p->bridge);
	(void)bridge_moves(p->bridge);
	timer_set_ms(p->end, END_MS);
}

static void
signal_cb(evutil_socket_t number, short what, void *arg)
{
	(void)what;
	log_info("%s", number == SIGINT ? "SIGINT" : "SIGTERM");
	finish(arg);
}

static void
gone_cb(void *arg)
{
	log_info("the client reads no more");
	finish(arg);
}

/* ---- the client */

static void
line_cb(const char *line, size_t n, void *arg)
{
	struct stdio_program *p = arg;

	bridge_take_line(p->bridge, line, n);
}

static void
too_long_cb(const struct glimpse *what, void *arg)
{
	struct stdio_program *p = arg;

	bridge_take_too_long(p->bridge, what);
}

static const struct lines_ops lines_ops = {
    .on_line = line_cb, .on_too_long = too_long_cb};

static void
look_for_room(struct stdio_program *p)
{
	bool wants = !bridge_is_full(p->bridge);

	if (wants == p->is_reading || timer_is_set(p->end))
		return;
	p->is_reading = wants;
	if (!wants)
		(void)event_del(p->readable);
	else if (event_add(p->readable, NULL) == -1)
		fatal(EXIT_MEMORY, "no event");
}

static void
readable_cb(evutil_socket_t fd, short what, void *arg)
{
	static char piece[PIECE];
	struct stdio_program *p = arg;
	ssize_t n = read(fd, piece, sizeof(piece));

	(void)what;
	if (n > 0) {
		lines_feed(&p->lines, piece, (size_t)n);
		look_for_room(p);
		return;
	}
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == -1)
		log_error("stdin: %s", strerror(errno));
	lines_end(&p->lines);
	begin_end(p);
}

static void
room_cb(void *arg)
{
	look_for_room(arg);
}

static void
output_room_cb(void *arg)
{
	struct stdio_program *p = arg;

	bridge_output_has_room(p->bridge);
	look_for_room(p);
}

/* ---- the server */

static void
nobody_cb(void *arg)
{
	struct stdio_program *p = arg;

	if (p->household != NULL)
		household_wake(p->household);
}

static void
server_end_cb(bool good, const char *why, void *arg)
{
	struct stdio_program *p = arg;
	char text[400];

	if (p->is_ending) {
		finish(p);
		return;
	}
	if (good || bridge_was_reached(p->bridge))
		return; /* the next request starts another */
	(void)snprintf(text, sizeof(text),
	    "no server could be started (%s): what stands above in the log "
	    "says why; \"mcp-sandboxd --check-config\" with the same settings "
	    "says what to do",
	    why);
	log_error("%s", text);
	p->status = EX_CONFIG;
	bridge_give_up(p->bridge, text);
	begin_end(p);
}

static const struct bridge_ops bridge_ops = {
    .on_room = room_cb, .on_nobody = nobody_cb, .on_done = done_cb};
static const struct outlet_ops outlet_ops = {
    .on_room = output_room_cb, .on_gone = gone_cb};
static const struct household_ops household_ops = {.on_end = server_end_cb};

static const char *
setting(const char *name)
{
	const char *value = getenv(name);

	return value != NULL ? value : "";
}

static int
read_token(char **out, struct err *e)
{
	const char *path = setting("MCP_SANDBOXD_TOKEN_FILE");
	size_t n;

	*out = NULL;
	if (setting("MCP_SANDBOXD_TOKEN")[0] != '\0') {
		if (path[0] != '\0')
			return err_set(e, ERR_INVAL,
			    "MCP_SANDBOXD_TOKEN or MCP_SANDBOXD_TOKEN_FILE, "
			    "one of them");
		*out = xstrdup(setting("MCP_SANDBOXD_TOKEN"));
	} else if (path[0] == '\0') {
		return 0;
	} else if (fd_read_file(path, TOKEN_MAX, out, &n, e) != 0) {
		return err_wrap(e, "MCP_SANDBOXD_TOKEN_FILE");
	}
	for (n = strlen(*out); n > 0 && (*out)[n - 1] <= ' '; n--)
		(*out)[n - 1] = '\0';
	if (!header_is_plain(*out) || strchr(*out, ' ') != NULL)
		return err_set(e, ERR_INVAL,
		    "MCP_SANDBOXD_TOKEN or its file: a token is of visible "
		    "characters, in one line");
	return 0;
}

static int
open_url(struct stdio_program *p, struct err *e)
{
	AUTO(auto_free) char *token = NULL;
	int rc = read_token(&token, e);

	if (rc == 0)
		rc = web_new_url(p->base,
		    &(struct web_site){.url = setting("MCP_SANDBOXD_URL"),
			.token = token,
			.ca_file = setting("MCP_SANDBOXD_CA_FILE")},
		    &p->web, e);
	if (token != NULL)
		explicit_bzero(token, strlen(token));
	return rc;
}

/* argv: this program, mcp-sandboxd, its arguments. */
static int
open_household(struct stdio_program *p, char **argv, struct err *e)
{
	const struct household_ask ask = {.program = argv[1],
	    .args = argv + 2,
	    .data_dir = setting("DATA_DIR"),
	    .listens = strcmp(setting("STDIO_HTTP"), "true") == 0 ?
		HOUSEHOLD_AS_SET :
		HOUSEHOLD_SOCKET_ALONE,
	    .ops = &household_ops,
	    .arg = p};

	if (household_new(p->base, &ask, &p->household, e) != 0)
		return e->code;
	p->web = web_new_socket(
	    p->base, household_socket(p->household), setting("MCP_PATH"));
	return 0;
}

/* ---- life */

/* poll, as epoll knows no regular files; and a clock that is not some
 * milliseconds behind: what a server says in "retry" is waited for. */
static struct event_base *
make_base(void)
{
	struct event_config *c = event_config_new();
	struct event_base *base;

	if (c == NULL || event_config_avoid_method(c, "epoll") != 0 ||
	    event_config_set_flag(c, EVENT_BASE_FLAG_PRECISE_TIMER) != 0 ||
	    (base = event_base_new_with_config(c)) == NULL)
		fatal(EXIT_MEMORY, "no event base");
	event_config_free(c);
	return base;
}

static struct event *
add_signal(struct stdio_program *p, int number)
{
	struct event *ev = evsignal_new(p->base, number, signal_cb, p);

	if (ev == NULL || event_add(ev, NULL) == -1)
		fatal(EXIT_MEMORY, "no event");
	return ev;
}

static void
start(struct stdio_program *p)
{
	p->output = outlet_new(p->base, STDOUT_FILENO, &outlet_ops, p);
	p->bridge = bridge_new(p->base, p->web, p->output, &bridge_ops, p);
	p->end = timer_new(p->base, end_cb, p);
	lines_init(&p->lines, BRIDGE_LINE_MAX, &lines_ops, p);
	p->signals[0] = add_signal(p, SIGTERM);
	p->signals[1] = add_signal(p, SIGINT);
	p->readable = event_new(
	    p->base, STDIN_FILENO, EV_READ | EV_PERSIST, readable_cb, p);
	if (p->readable == NULL)
		fatal(EXIT_MEMORY, "no event");
	look_for_room(p);
}

/* The server's own end is waited for: the next bridge finds its place free. */
static void
stop(struct stdio_program *p)
{
	p->is_ending = true;
	bridge_free(p->bridge);
	web_free(p->web);
	event_free(p->readable);
	outlet_free(p->output);
	lines_clear(&p->lines);
	timer_free(p->end);
	if (p->household != NULL && household_stop(p->household))
		(void)event_base_dispatch(p->base); /* or a signal */
	household_free(p->household);
	for (size_t i = 0; i < ARRAY_LEN(p->signals); i++)
		event_free(p->signals[i]);
	event_base_free(p->base);
}

int
main(int argc, char **argv)
{
	int level = log_parse_level(setting("LOG_LEVEL"));
	struct stdio_program p = {.status = 0};
	struct err e;

	log_init("stdio");
	if (argc < 2) {
		log_error("mcp-sandboxd-stdio is started by \"mcp-sandboxd "
			  "stdio\"");
		return EX_USAGE;
	}
	log_set_format(log_parse_format(setting("LOG_FORMAT")));
	if (level != -1)
		log_set_level((enum log_level)level);
	(void)signal(SIGPIPE, SIG_IGN);
	p.base = make_base();
	if ((setting("MCP_SANDBOXD_URL")[0] != '\0' ?
		    open_url(&p, &e) :
		    open_household(&p, argv, &e)) != 0) {
		log_error("%s", e.msg);
		event_base_free(p.base);
		return EX_CONFIG;
	}
	start(&p);
	nobody_cb(&p); /* the sooner it starts, the sooner it is there */
	(void)event_base_dispatch(p.base);
	stop(&p);
	return p.status;
}
