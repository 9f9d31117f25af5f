/*
 * era.h - the revisions of the protocol, and which one a message belongs to
 *
 * One table says what each revision has; the ladder decides by the body
 * first, as the versioning page of MCP 2026-07-28 asks.  There are two kinds:
 * legacy ones begin with initialize, modern ones (2026-07-28 and later) say in
 * each request who asks for what.
 */
#ifndef MCP_ERA_H
#define MCP_ERA_H

#include <jansson.h>

#include "common/base.h"

enum era_feature {
	ERA_ANNOTATIONS = 1 << 0,   /* on tools */
	ERA_AUDIO = 1 << 1,         /* content blocks */
	ERA_PROGRESS_TEXT = 1 << 2, /* "message" in progress */
	ERA_BATCH = 1 << 3,
	ERA_TITLE = 1 << 4,
	ERA_OUTPUT_SCHEMA = 1 << 5,
	ERA_STRUCTURED = 1 << 6, /* structuredContent */
	ERA_RESOURCE_LINK = 1 << 7,
	ERA_TOOL_META = 1 << 8, /* _meta on tools */
	ERA_ICONS = 1 << 9,
	ERA_EXECUTION = 1 << 10, /* execution.taskSupport on tools */
	ERA_STATELESS = 1 << 11  /* no initialize, claim in every request */
};

struct era_revision {
	const char *date;
	uint32_t number;  /* the date as a number, for session ids */
	unsigned int has; /* enum era_feature, OR-ed */
};

#define ERA_REVISIONS 5
extern const struct era_revision era_table[ERA_REVISIONS]; /* by date */

static inline bool
era_has(const struct era_revision *rev, enum era_feature feature)
{
	return (rev->has & (unsigned int)feature) != 0;
}

enum era_kind {
	ERA_KIND_LEGACY,
	ERA_KIND_MODERN
};

/* NULL when it is none that is served. */
const struct era_revision *era_find_served(const char *date);
const struct era_revision *era_find_number(uint32_t number);
/* era_negotiate - what initialize answers: the wanted one when it has an
 * initialize, else the newest that has */
const struct era_revision *era_negotiate(const char *wanted);
json_t *era_dates(enum era_kind kind); /* a new array of strings */

#define ERA_CLAIM "io.modelcontextprotocol/protocolVersion"

enum era_branch {
	ERA_INITIALIZE,
	ERA_LEGACY,
	ERA_MODERN,
	ERA_REFUSED /* 400 */
};

struct era_question {
	const char *method;   /* of the message; NULL for a response */
	const json_t *params; /* NULL: none */
	const char *id;       /* NULL: none, a notification */
	const char *header;   /* MCP-Protocol-Version; NULL: none */
};
struct era_answer {
	enum era_branch branch;
	int code; /* when refused, and why */
	const char *message;
};

/* era_decide - step 8 of the ladder; reads nothing but the question */
void era_decide(const struct era_question *q, struct era_answer *a);
/* era_claim - the modern claim in these params; NULL: none */
const json_t *era_claim(const json_t *params);
/* era_is_modern - does this header value name 2026-07-28 or a later one? */
bool era_is_modern(const char *header);

#endif
