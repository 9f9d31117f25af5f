#include "supervisor/mcp/era.h"

#include <ctype.h>
#include <stdio.h>

#include "supervisor/mcp/mcp.h"

#define MODERN_SINCE "2026-07-28"
#define IN_2025_03 (ERA_ANNOTATIONS | ERA_AUDIO | ERA_PROGRESS_TEXT)
#define IN_2025_06                                                             \
	(IN_2025_03 | ERA_TITLE | ERA_OUTPUT_SCHEMA | ERA_STRUCTURED |         \
	    ERA_RESOURCE_LINK | ERA_TOOL_META)

const struct era_revision era_table[ERA_REVISIONS] = {
    {"2024-11-05", 20241105, false, 0},
    {"2025-03-26", 20250326, false, IN_2025_03 | ERA_BATCH},
    {"2025-06-18", 20250618, true, IN_2025_06},
    {"2025-11-25", 20251125, true, IN_2025_06 | ERA_ICONS | ERA_EXECUTION},
    {"2026-07-28", 20260728, false, IN_2025_06 | ERA_ICONS | ERA_STATELESS},
};

const struct era_revision *
era_find_served(const char *date)
{
	for (size_t i = 0; i < ERA_REVISIONS; i++)
		if (era_table[i].served && strcmp(era_table[i].date, date) == 0)
			return &era_table[i];
	return NULL;
}

const struct era_revision *
era_find_number(uint32_t number)
{
	for (size_t i = 0; i < ERA_REVISIONS; i++)
		if (era_table[i].served && era_table[i].number == number)
			return &era_table[i];
	return NULL;
}

const struct era_revision *
era_negotiate(const char *wanted)
{
	const struct era_revision *newest = NULL;

	for (size_t i = 0; i < ERA_REVISIONS; i++) {
		const struct era_revision *r = &era_table[i];

		if (!r->served || era_has(r, ERA_STATELESS))
			continue;
		if (strcmp(r->date, wanted) == 0)
			return r;
		newest = r;
	}
	return newest;
}

json_t *
era_served_dates(void)
{
	json_t *dates = json_array();

	for (size_t i = 0; i < ERA_REVISIONS; i++)
		if (era_table[i].served)
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

static void
refuse(struct era_answer *a, int code, const char *message, const char *what)
{
	a->branch = ERA_REFUSED;
	a->status = 400;
	a->code = code;
	(void)snprintf(a->message, sizeof(a->message), "%s", message);
	(void)snprintf(a->requested, sizeof(a->requested), "%s", what);
}

/*
 * No row of the modern era is served: its codes (-32020 to -32022, 404 with
 * -32601) would tell a client that can do both to stay modern.  An ordinary
 * 400 makes it fall back to initialize (MCP 2026-07-28, versioning).
 */
static void
refuse_modern(struct era_answer *a, const char *what)
{
	refuse(a, MCP_SERVER_ERROR,
	    "Unsupported protocol version: send initialize first; supported:",
	    what);
	for (size_t i = 0; i < ERA_REVISIONS; i++) {
		size_t used = strlen(a->message);

		if (era_table[i].served)
			(void)snprintf(a->message + used,
			    sizeof(a->message) - used, " %s",
			    era_table[i].date);
	}
}

void
era_decide(const struct era_question *q, struct era_answer *a)
{
	const json_t *meta = json_object_get(q->params, "_meta");
	const json_t *claim = json_object_get(meta, ERA_CLAIM);
	bool initialize = q->id != NULL && q->method != NULL &&
	    strcmp(q->method, "initialize") == 0;

	*a = (struct era_answer){.branch = ERA_LEGACY};
	if (claim != NULL)
		refuse_modern(
		    a, json_is_string(claim) ? json_string_value(claim) : "");
	else if (initialize && era_is_modern(q->header))
		/* The body is of one era, the header of the other: whoever
		 * routed on the header must not be made wrong. */
		refuse(a, ERA_HEADER_MISMATCH,
		    "MCP-Protocol-Version names a revision without initialize; "
		    "send initialize without that header",
		    q->header);
	else if (initialize)
		a->branch = ERA_INITIALIZE;
	else if (era_is_modern(q->header))
		refuse_modern(a, q->header);
}
