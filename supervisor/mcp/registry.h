/*
 * registry.h - the tools, in the order of the list
 *
 * A definition stays the JSON that it was; only the input schema is also made
 * ready for checking.  Where that has members "x-unlisted" (mcp.h), two schemas
 * are made of it: one is listed, the other is checked.  The answer to
 * tools/list is made once per revision.
 */
#ifndef MCP_REGISTRY_H
#define MCP_REGISTRY_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"
#include "supervisor/mcp/era.h"
#include "supervisor/mcp/mcp.h"
#include "supervisor/mcp/mirror.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/mcp/schema.h"

#define REGISTRY_TOOLS_MAX 64
#define REGISTRY_NAME_MAX 64 /* of [A-Za-z0-9_.-] */

enum registry_tasks { /* execution.taskSupport: may one stand for its result */
	REGISTRY_TASKS_FORBIDDEN,
	REGISTRY_TASKS_OPTIONAL,
	REGISTRY_TASKS_REQUIRED
};

struct registry_tool {
	json_t
	    *definition;  /* what is listed: ours, if it leaves anything out */
	const char *name; /* in the definition */
	enum registry_tasks tasks;
	struct schema *input;
	struct mirror_set *mirrors; /* NULL: it asks for no header lines */
	mcp_tool_cb on_call;
	mcp_resume_cb on_resume; /* NULL: its answers are said once */
	void *arg;
};

struct registry;

struct registry *registry_new(void);
void registry_free(struct registry *r);
int registry_add(struct registry *r, json_t *definition, mcp_tool_cb on_call,
    void *arg, struct err *e) MUSTCHECK;
/* registry_change - what is listed and checked of the tool of this name from
 * now on; ERR_NOTFOUND */
int registry_change(
    struct registry *r, json_t *definition, struct err *e) MUSTCHECK;
/* registry_set_resume - ERR_NOTFOUND */
int registry_set_resume(struct registry *r, const char *name,
    mcp_resume_cb on_resume, struct err *e) MUSTCHECK;
/* NULL when there is none of this name */
const struct registry_tool *registry_find(
    const struct registry *r, const char *name);
/* registry_list - the result of tools/list as JSON text; the registry's,
 * until the next registry_add or registry_change */
const char *registry_list(struct registry *r, const struct era_revision *rev);

#endif
