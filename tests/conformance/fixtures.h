/*
 * fixtures.h - what the official conformance suite asks a server for
 *
 * The suite calls tools, resources and prompts by name and wants certain
 * answers.  They are registered here through the library's own headers, so
 * that what the suite measures is the library; nothing of the product is
 * behind them.  One file holds one group of them.
 */
#ifndef CONFORMANCE_FIXTURES_H
#define CONFORMANCE_FIXTURES_H

#include <jansson.h>
#include <sys/queue.h>

#include "supervisor/mcp/mcp.h"
#include "supervisor/mcp/offer.h"

struct event_base;
struct jobs;

LIST_HEAD(waits, wait);

/* Everybody's: there is no authentication. */
#define FIXTURE_TENANT ((struct tenant_id){1})

struct fixtures {
	struct event_base *base;
	struct mcp *mcp;
	struct waits waits; /* calls that a timer goes on with */
	struct jobs *jobs;
};

/* ---- each group, added to f->mcp */

void content_fixtures(struct fixtures *f);
void telling_fixtures(struct fixtures *f);
void question_fixtures(struct fixtures *f);
void resource_fixtures(struct fixtures *f);
void prompt_fixtures(struct fixtures *f);
void job_fixtures(struct fixtures *f);
/* jobs_end, fixture_end_waits - at the end, when no client is left; before
 * mcp_free */
void jobs_end(struct jobs *jobs);
void fixture_end_waits(struct fixtures *f);

/* ---- what they share */

struct fixture_tool {
	const char *name;
	const char *description;
	const char *input;   /* its input schema; NULL: it takes no arguments */
	const char *tasks;   /* execution.taskSupport; NULL: forbidden */
	mcp_tool_cb on_call; /* its arg is the struct fixtures */
};
void fixture_add_tools(
    struct fixtures *f, const struct fixture_tool *tools, size_t n);
/* fixture_json - a text of ours; one that is no JSON ends the process */
json_t *fixture_json(const char *text);
/* fixture_say, fixture_fail - the answer of a tool, one text block */
void fixture_say(struct mcp_call *c, const char *text);
void fixture_fail(struct mcp_call *c, const char *text);
/* fixture_wait - go on with the call in ms milliseconds; one that is cancelled
 * before is ended here */
typedef void (*fixture_cb)(
    struct fixtures *f, struct mcp_call *c, unsigned int step);
void fixture_wait(struct fixtures *f, struct mcp_call *c, unsigned int ms,
    fixture_cb then, unsigned int step);

/* An image of one pixel, also in base64. */
#define FIXTURE_PNG_LEN 69
extern const unsigned char fixture_png[FIXTURE_PNG_LEN];
#define FIXTURE_PNG_BASE64                                                     \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMB" \
	"AQD3A0FDAAAAAElFTkSuQmCC"

#endif
