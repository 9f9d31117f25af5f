#include "supervisor/tools/list_text.h"

#include "common/js.h"

/* How it stands; why, where that says more; its exit code and how long. */
static void
add_run(struct buf *b, const json_t *o)
{
	const char *state = js_text(o, "state");
	const char *reason = js_text(o, "end_reason");
	const char *command = js_text(o, "command");
	const json_t *code = json_object_get(o, "exit_code");
	const json_t *ms = json_object_get(o, "duration_ms");
	bool exited = strcmp(reason, "exit") == 0;

	(void)buf_printf(b, "%s %s", js_text(o, "run_id"), state);
	if (exited && json_is_integer(code))
		(void)buf_printf(b, " with exit code %lld",
		    (long long)json_integer_value(code));
	else if (reason[0] != '\0' && !exited && strcmp(reason, state) != 0)
		(void)buf_printf(b, " by %s", reason);
	if (json_is_integer(ms))
		(void)buf_printf(
		    b, " after %lld ms", (long long)json_integer_value(ms));
	(void)buf_printf(b, " in %s, made %s", js_text(o, "identifier"),
	    js_text(o, "created_at"));
	if (command[0] != '\0')
		(void)buf_printf(b, ": %s", command);
	(void)buf_printf(b, "\n");
}

static void
add_sandbox(struct buf *b, const json_t *o)
{
	long long left = json_integer_value(json_object_get(o, "left_running"));
	long long active =
	    json_integer_value(json_object_get(o, "active_runs"));

	(void)buf_printf(b, "%s %s, %lld active run%s, ",
	    js_text(o, "identifier"), js_text(o, "state"), active,
	    active == 1 ? "" : "s");
	if (left > 0)
		(void)buf_printf(b, "%lld process%s left running, ", left,
		    left == 1 ? "" : "es");
	(void)buf_printf(b, "expires %s, image %.200s\n",
	    js_text(o, "expires_at"), js_text(o, "image"));
}

void
list_text_write(struct buf *b, const json_t *result)
{
	const json_t *o;
	size_t i;

	json_array_foreach (json_object_get(result, "runs"), i, o)
		add_run(b, o);
	json_array_foreach (json_object_get(result, "sandboxes"), i, o)
		add_sandbox(b, o);
}
