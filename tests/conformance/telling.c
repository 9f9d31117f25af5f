/*
 * telling.c - tools that say something before they answer: log messages,
 * progress; and one that closes its stream in the middle of a call
 */
#include "tests/conformance/fixtures.h"

#include "common/clock.h"
#include "common/exit.h"
#include "common/log.h"

#define STEP_MS 50

/* ---- log messages */

static void
logging_step(struct fixtures *f, struct mcp_call *c, unsigned int step)
{
	static const char *const said[] = {"Tool execution started",
	    "Tool processing data", "Tool execution completed"};

	mcp_call_log(c, MCP_INFO, "fixture", json_string(said[step]));
	if (++step < ARRAY_LEN(said))
		fixture_wait(f, c, STEP_MS, logging_step, step);
	else
		fixture_say(c, "Tool with logging executed successfully");
}

static void
on_logging(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	logging_step(arg, c, 0);
}

/* ---- progress */

static void
progress_step(struct fixtures *f, struct mcp_call *c, unsigned int step)
{
	mcp_call_progress(c, step * 50.0, 100, NULL);
	if (step < 2)
		fixture_wait(f, c, STEP_MS, progress_step, step + 1);
	else
		fixture_say(c, "Tool with progress executed successfully");
}

static void
on_progress(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	progress_step(arg, c, 0);
}

/* ---- a stream that is closed in mid-call
 *
 * The token is the time at which the call is over, so that the answer can be
 * said again without the call.
 */

#define RECONNECT_MS 300
#define RETRY_MS 100

static void
reconnected(struct fixtures *f, struct mcp_call *c, unsigned int step)
{
	(void)f;
	(void)step;
	fixture_say(c, "Reconnection test completed successfully");
}

static void
on_reconnection(struct mcp_call *c, json_t *arguments, void *arg)
{
	uint64_t end_ms = clock_mono_ms() + RECONNECT_MS;

	(void)arguments;
	mcp_call_set_token(c, &end_ms, sizeof(end_ms));
	mcp_call_hang_up(c, RETRY_MS);
	fixture_wait(arg, c, RECONNECT_MS, reconnected, 0);
}

static void
on_resume(struct mcp_call *c, const void *token, size_t n, void *arg)
{
	uint64_t end_ms = 0, now = clock_mono_ms();

	if (n == sizeof(end_ms))
		memcpy(&end_ms, token, n);
	fixture_wait(arg, c,
	    end_ms > now && end_ms - now < RECONNECT_MS ?
		(unsigned int)(end_ms - now) :
		0,
	    reconnected, 0);
}

static const struct fixture_tool tools[] = {
    {"test_tool_with_logging", "Logs three messages", NULL, NULL, on_logging},
    {"test_logging_tool", "Logs, if the client asked for it", NULL, NULL,
	on_logging},
    {"test_tool_with_progress", "Tells its progress", NULL, NULL, on_progress},
    {"test_reconnection", "Closes its stream before it answers", NULL, NULL,
	on_reconnection},
};

void
telling_fixtures(struct fixtures *f)
{
	struct err e;

	fixture_add_tools(f, tools, ARRAY_LEN(tools));
	if (mcp_tool_on_resume(f->mcp, "test_reconnection", on_resume, &e) != 0)
		fatal(EXIT_BUG, "%s", e.msg);
}
