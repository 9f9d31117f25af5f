/*
 * tools.h - the tools: what MCP calls, what the core does
 *
 * The only room that knows both.  A tool is one file beside its schema in
 * schema/tools/: arguments, work, words.  tools.c registers them and ends
 * their calls.
 */
#ifndef TOOLS_TOOLS_H
#define TOOLS_TOOLS_H

#include "common/base.h"
#include "common/embed.h"
#include "common/err.h"
#include "common/siphash.h"

struct core;
struct denylist;
struct languages;
struct mcp;
struct tools;

/* tools_new - registers the tools whose definitions are in files; ERR_INVAL
 * when one has no function, or a function no definition.  core, m and files
 * are kept by pointer; key is copied: it signs cursors of output. */
int tools_new(struct core *core, struct mcp *m, const struct embed_file *files,
    const uint8_t key[SIPHASH_KEY_BYTES], struct tools **out,
    struct err *e) MUSTCHECK;
/* tools_free - calls that are not answered end as failed */
void tools_free(struct tools *t);
/* What calls are held against, and what there is for execute_code. */
const struct denylist *tools_denylist(const struct tools *t); /* NULL: off */
const struct languages *tools_languages(const struct tools *t);
void tools_reload(struct tools *t); /* the configuration has new values */
/* tools_drain - on_idle once no call is open any more; perhaps inside */
void tools_drain(struct tools *t, void (*on_idle)(void *arg), void *arg);

#endif
