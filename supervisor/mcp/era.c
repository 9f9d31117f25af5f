#include "supervisor/mcp/era.h"

#include <ctype.h>

#include "supervisor/mcp/mcp.h"

#define MODERN_SINCE "2026-07-28"
#define IN_2025_03 (ERA_ANNOTATIONS | ERA_AUDIO | ERA_PROGRESS_TEXT)
#define IN_2025_06                                                             \
	(IN_2025_03 | ERA_TITLE | ERA_OUTPUT_SCHEMA | ERA_STRUCTURED |         \
	    ERA_RESOURCE_LINK | ERA_TOOL_META)

const struct era_revision era_table[ERA_REVISIONS] = {
    {"2024-11-05", 20241105, 0},
    {"2025-03-26", 20250326, IN_2025_03 | ERA_BATCH},
    {"2025-06-18", 20250618, IN_2025_06},
    {"2025-11-25", 20251125, IN_2025_06 | ERA_ICONS | ERA_EXECUTION},
    {"2026-07-28", 20260728, IN_2025_06 | ERA_ICONS | ERA_STATELESS},
};

const struct era_revision *
era_find_served(const char *date)
{
	for (size_t i = 0; i < ERA_REVISIONS; i++)
		if (strcmp(era_table[i].date, date) == 0)
			return &era_table[i];
	return NULL;
}

const struct era_revision *
era_find_number(uint32_t number)
{
	for (size_t i = 0; i < ERA_REVISIONS; i++)
		if (era_table[i].number == number)
			return &era_table[i];
	return NULL;
}

const struct era_revision *
era_negotiate(const char *wanted)
{
	const struct era_revision *newest = NULL;

	for (size_t i = 0; i < ERA_REVISIONS; i++) {
		const struct era_revision *r = &era_table[i];

		if (era_has(r, ERA_STATELESS))
			continue;
		if (strcmp(r->date, wanted) == 0)
			return r;
		newest = r;
	}
	return newest;
}

json_t *
era_dates(enum era_kind kind)
{
	json_t *dates = json_array();

	for (size_t i = 0; i < ERA_REVISIONS; i++)
		if (era_has(&era_table[i], ERA_STATELESS) ==
		    (kind == ERA_KIND_MODERN))
			json_array_append_new(
			    dates, json_string(era_table[i].date));
	return dates;
}

bool
era_is_modern(const char *header)
{
	static const char form[] = "dddd-dd-dd";

	if (header == NULL || strlen(header) != sizeof(form) - 1)
		return false;
	for (size_t i = 0; i < sizeof(form) - 1; i++)
		if (form[i] == 'd' ? !isdigit((unsigned char)header[i]) :
				     header[i] != form[i])
			return false;
	return strcmp(header, MODERN_SINCE) >= 0;
}

const json_t *
era_claim(const json_t *params)
{
	return json_object_get(json_object_get(params, "_meta"), ERA_CLAIM);
}

static void
refuse(struct era_answer *a, int code, const char *message)
{
	a->branch = ERA_REFUSED;
	a->code = code;
	a->message = message;
}

/* The header names a modern revision, and the body claims none. */
static void
decide_by_header(const struct era_question *q, struct era_answer *a)
{
	if (q->method == NULL)
		refuse(a, MCP_INVALID_REQUEST,
		    "responses are not sent in this revision: repeat the "
		    "request with inputResponses");
	else if (q->id == NULL)
		a->branch = ERA_MODERN;
	else if (strcmp(q->method, "initialize") == 0)
		/* The body is of one kind, the header of the other: whoever
		 * routed on the header must not be made wrong. */
		refuse(a, MCP_HEADER_MISMATCH,
		    "MCP-Protocol-Version names a revision without initialize; "
		    "send initialize without that header");
	else
		refuse(a, MCP_INVALID_PARAMS,
		    "params._meta is missing " ERA_CLAIM
		    ": each request of this revision says its revision and "
		    "what its client can");
}

/*
 * The codes -32020 to -32022, and -32601 with 404, say "this server is modern"
 * to a client that can do both (MCP 2026-07-28, versioning): what is legacy in
 * its body and its header never gets them.
 */
void
era_decide(const struct era_question *q, struct era_answer *a)
{
	*a = (struct era_answer){.branch = ERA_LEGACY};
	if (era_claim(q->params) != NULL)
		a->branch = ERA_MODERN;
	else if (era_is_modern(q->header))
		decide_by_header(q, a);
	else if (q->id != NULL && q->method != NULL &&
	    strcmp(q->method, "initialize") == 0)
		a->branch = ERA_INITIALIZE;
}
