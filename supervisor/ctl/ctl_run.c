#include "supervisor/ctl/ctl_run.h"

#include <stdio.h>

#include "common/js.h"
#include "common/uuid.h"
#include "common/xmalloc.h"
#include "supervisor/ctl/ctl_print.h"
#include "supervisor/ctl/ctl_query.h"

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

/* Of the run that the first word names. */
static int
ask_run(const struct ctl_call *c, const char *method, const char *below,
    json_t **out, struct err *e)
{
	AUTO(auto_free) char *path = NULL;
	struct uuid run;

	if (uuid_parse(c->words[0], &run) != 0)
		return err_set(e, ERR_INVAL,
		    "%.60s: want the id of a run, as run list prints it",
		    c->words[0]);
	path = xasprintf("/api/v1/runs/%s%s", c->words[0], below);
	return ask_path(c, method, path, 1, out, e);
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
	if (c->o->json) {
		ctl_print_json(o);
		return 0;
	}
	say_durations(json_object_get(o, "runs"));
	ctl_print_table(
	    json_object_get(o, "runs"), columns, ARRAY_LEN(columns));
	say_text_since(o);
	say_more(o);
	return 0;
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
	if (c->o->json) {
		ctl_print_json(o);
		return 0;
	}
	ctl_print_table(
	    json_object_get(o, "artifacts"), columns, ARRAY_LEN(columns));
	say_more(o);
	return 0;
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
	if (c->o->json) {
		ctl_print_json(o);
		return 0;
	}
	ctl_print_table(
	    json_object_get(o, "sandboxes"), columns, ARRAY_LEN(columns));
	say_more(o);
	return 0;
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
	const char *tenant = c->o->tenant;

	if (strspn(c->words[0],
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
		"TUVWXYZ0123456789_-") != strlen(c->words[0]))
		return err_set(e, ERR_INVAL,
		    "%.60s: want an identifier, as sandbox list prints it",
		    c->words[0]);
	if (tenant == NULL && c->o->url == NULL)
		tenant = "default";
	if (tenant != NULL && strpbrk(tenant, "/?#%") != NULL)
		return err_set(e, ERR_INVAL, "%.60s: that is no name", tenant);
	path = xasprintf("/api/v1/%s%s%ssandboxes/%s",
	    tenant == NULL ? "" : "tenants/", tenant == NULL ? "" : tenant,
	    tenant == NULL ? "" : "/", c->words[0]);
	return ctl_request(c->link, method, path, NULL, out, e);
}

int
ctl_sandbox_show(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;

	if (ask_sandbox(c, "GET", &o, e) != 0)
		return e->code;
	if (c->o->json)
		ctl_print_json(o);
	else
		ctl_print_object(o);
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
	if (c->o->json) {
		ctl_print_json(o);
		return 0;
	}
	state = js_text(o, "state");
	(void)printf("run %s %s%s%s\n", js_text(o, "run_id"), done,
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
	if (c->o->json)
		ctl_print_json(o);
	else
		(void)printf(
		    "sandbox %s is deleted\n", js_text(o, "identifier"));
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
	if (c->o->json)
		ctl_print_json(o);
	else
		print_groups(o);
	if (!c->o->json)
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
