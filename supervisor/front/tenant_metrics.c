#include "supervisor/front/tenant_metrics.h"

#include "common/quota.h"
#include "common/xmalloc.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/core/tenants.h"

#define REST "other"

struct numbers_of_tenant {
	const char *name;
	uint64_t sandboxes, running, queued, streams;
	uint64_t completed, failed, canceled;
	uint64_t output_bytes, requests;
	uint64_t refused[QUOTA_COUNT];
};

static const struct family {
	const char *name, *type, *help;
	const char *label; /* "" or a further one */
	size_t offset;
} families[] = {
#define AT(field) offsetof(struct numbers_of_tenant, field)
    {"sandboxes", "gauge", "Sandboxes that a tenant has.", "", AT(sandboxes)},
    {"runs_running", "gauge", "Runs of a tenant that are at work.", "",
	AT(running)},
    {"runs_queued", "gauge", "Runs of a tenant that wait.", "", AT(queued)},
    {"event_streams", "gauge", "Event streams of a tenant.", "", AT(streams)},
    {"runs_total", "counter", "Runs of a tenant that ended.",
	",status=\"completed\"", AT(completed)},
    {"runs_total", "counter", "", ",status=\"failed\"", AT(failed)},
    {"runs_total", "counter", "", ",status=\"canceled\"", AT(canceled)},
    {"output_bytes_total", "counter", "Bytes that runs of a tenant printed.",
	"", AT(output_bytes)},
    {"requests_total", "counter", "HTTP requests of a tenant.", "",
	AT(requests)},
#undef AT
};

/* ---- counting */

static void
add_use(struct numbers_of_tenant *to, const struct quota_use *u)
{
	to->sandboxes += u->sandboxes;
	to->running += u->lane.nrunning;
	to->queued += u->lane.nwaiting;
	to->streams += u->streams;
	to->completed += u->runs_completed;
	to->failed += u->runs_failed;
	to->canceled += u->runs_canceled;
	to->output_bytes += u->output_bytes;
	to->requests += u->requests;
	for (size_t i = 0; i < QUOTA_COUNT; i++)
		to->refused[i] += u->refused[i];
}

/* all has room for one more than there may be; how many there are. */
static size_t
collect(const struct core *c, struct numbers_of_tenant *all)
{
	const struct tenants *t = core_tenants(c);
	struct numbers_of_tenant rest = {.name = REST};
	const struct tenant *n = NULL;
	bool has_rest = false;
	size_t used = 0;

	while ((n = tenants_next(t, n)) != NULL) {
		const struct quota_use *u =
		    quota_use_of(core_quota_uses(c), tenant_id_of(n));

		if (used < TENANT_METRICS_MAX &&
		    strcmp(n->row.name, REST) != 0) {
			all[used] =
			    (struct numbers_of_tenant){.name = n->row.name};
			add_use(&all[used++], u);
		} else {
			add_use(&rest, u);
			has_rest = true;
		}
	}
	if (has_rest)
		all[used++] = rest;
	return used;
}

/* ---- telling */

static void
add_sample(struct buf *b, const char *family, const char *tenant,
    const char *label, uint64_t value)
{
	(void)buf_printf(b, "sandboxd_tenant_%s{tenant=\"", family);
	for (const char *p = tenant; *p != '\0'; p++) {
		if (*p == '\\' || *p == '"')
			(void)buf_printf(b, "\\%c", *p);
		else if (*p == '\n')
			(void)buf_printf(b, "\\n");
		else
			(void)buf_printf(b, "%c", *p);
	}
	(void)buf_printf(b, "\"%s} %llu\n", label, (unsigned long long)value);
}

static void
add_head(struct buf *b, const char *family, const char *help, const char *type)
{
	(void)buf_printf(b,
	    "# HELP sandboxd_tenant_%s %s\n# TYPE sandboxd_tenant_%s %s\n",
	    family, help, family, type);
}

/* Most are 0, and are left out. */
static void
add_refused(struct buf *b, const struct numbers_of_tenant *all, size_t n)
{
	static const char family[] = "refusals_total";

	add_head(b, family, "What quotas refused a tenant.", "counter");
	for (size_t i = 0; i < n; i++)
		for (size_t q = 0; q < QUOTA_COUNT; q++) {
			AUTO(auto_free) char *label = NULL;

			if (all[i].refused[q] == 0)
				continue;
			label = xasprintf(",quota=\"%s\"",
			    quota_rule((enum quota_key)q)->key);
			add_sample(
			    b, family, all[i].name, label, all[i].refused[q]);
		}
}

void
tenant_metrics_add(struct buf *b, const struct core *c)
{
	struct numbers_of_tenant *all =
	    xcalloc(TENANT_METRICS_MAX + 1, sizeof(*all));
	size_t n = collect(c, all);
	uint64_t value;

	for (size_t k = 0; k < ARRAY_LEN(families); k++) {
		const struct family *f = &families[k];

		if (f->help[0] != '\0')
			add_head(b, f->name, f->help, f->type);
		for (size_t i = 0; i < n; i++) {
			memcpy(&value, (const char *)&all[i] + f->offset,
			    sizeof(value));
			add_sample(b, f->name, all[i].name, f->label, value);
		}
	}
	add_refused(b, all, n);
	free(all);
}
