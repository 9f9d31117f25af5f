#include "supervisor/core/sandbox_row.h"

#include <ctype.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/xmalloc.h"
#include "supervisor/core/quota_use.h"

#define SLUG_MAX 40

/* mcp-sbx-<slug>-<8 hex>, the compatible tools' form; the hex is of the UUID,
 * so that a new generation never waits for the old one's name. */
static char *
container_name(const char *identifier, const struct uuid *uuid)
{
	char slug[SLUG_MAX + 1];
	size_t n = 0;

	for (; identifier[n] != '\0' && n < SLUG_MAX; n++)
		slug[n] = isalnum((unsigned char)identifier[n]) ?
		    (char)tolower((unsigned char)identifier[n]) :
		    '-';
	slug[n] = '\0';
	return xasprintf("mcp-sbx-%s-%02x%02x%02x%02x", slug, uuid->b[0],
	    uuid->b[1], uuid->b[2], uuid->b[3]);
}

void
sandbox_row_limits(
    struct store_sandbox *row, const struct conf *conf, struct quota_uses *uses)
{
	row->memory_bytes = (uint64_t)conf_int(conf, CONF_DEFAULT_MEMORY_MB)
	    << 20;
	row->nano_cpus =
	    (uint64_t)conf_int(conf, CONF_DEFAULT_CPU_CORES) * 1000000000u;
	row->pids = (uint32_t)conf_int(conf, CONF_DEFAULT_PIDS);
	quota_use_cut(uses, row);
}

void
sandbox_row_init(struct store_sandbox *row, const struct sandbox_wish *w,
    uint64_t id, uint32_t generation, const struct conf *conf,
    struct quota_uses *uses)
{
	struct uuid uuid;

	uuid_random(&uuid);
	*row = (struct store_sandbox){
	    .id = id,
	    .uuid = uuid,
	    .tenant = w->who->tenant.n,
	    .identifier = xstrdup(w->identifier),
	    .generation = generation,
	    .name = container_name(w->identifier, &uuid),
	    .container_id = xstrdup(""),
	    .image = xstrdup(w->image),
	    .state = SANDBOX_IS_CREATING,
	    .origin = xstrdup(w->origin),
	    .ttl_s = w->ttl_s,
	    .created_ms = clock_wall_ms(),
	};
	sandbox_row_limits(row, conf, uses);
}

/* ---- why it goes */

static bool
is_said(const char *text)
{
	return text != NULL && text[0] != '\0';
}

static void
say(char **to, const char *text)
{
	if (is_said(*to))
		return;
	free(*to);
	*to = xstrdup(text);
}

void
sandbox_row_explain_by(struct store_sandbox *row, const char *reason)
{
	say(&row->reason, reason);
}

void
sandbox_row_explain(struct store_sandbox *row, enum sandbox_state to,
    enum sandbox_happening what, const struct err *why)
{
	static const char *const reasons[SANDBOX_NHAPPENING] = {
	    [SANDBOX_FAILED] = "failed",
	    [SANDBOX_LOST] = "lost",
	    [SANDBOX_HUNG] = "hung",
	    [SANDBOX_UNWANTED] = "deleted",
	};

	if (sandbox_state_is_live(to) || reasons[what] == NULL)
		return;
	say(&row->reason, reasons[what]);
	if (why != NULL)
		say(&row->why, why->msg);
}
