/* prompts.h - the prompts, in the order of the list */
#ifndef MCP_PROMPTS_H
#define MCP_PROMPTS_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"
#include "supervisor/mcp/offer.h"

#define PROMPTS_MAX 1000
#define PROMPT_NAME_MAX 128 /* bytes */

struct prompt {
	json_t *definition;
	const char *name; /* in the definition */
	mcp_prompt_cb on_get;
	void *arg;
};

struct prompts;

struct prompts *prompts_new(void);
void prompts_free(struct prompts *p); /* NULL is fine */
int prompts_add(struct prompts *p, json_t *definition, mcp_prompt_cb on_get,
    void *arg, struct err *e) MUSTCHECK;
size_t prompts_count(const struct prompts *p);
/* prompts_at - i below the count; it stays where it is until prompts_free */
const struct prompt *prompts_at(const struct prompts *p, size_t i);
/* NULL when there is none of this name */
const struct prompt *prompts_find(const struct prompts *p, const char *name);

/* prompt_has - is this one of its arguments? */
bool prompt_has(const struct prompt *p, const char *argument);
/* prompt_check - do these arguments (an object) fit?  ERR_INVAL, and a text
 * for the client */
int prompt_check(
    const struct prompt *p, const json_t *arguments, struct err *e) MUSTCHECK;

#endif
