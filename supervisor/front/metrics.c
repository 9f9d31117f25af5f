#include "supervisor/front/front.h"

#include "common/buf.h"
#include "supervisor/front/tenant_metrics.h"

/* GET /metrics: Prometheus' text format 0.0.4. */

#define METRICS_MAX (2u << 20)

struct numbers {
	struct core_stats core;
	struct counters counters;
	struct store_stats store;
	struct store_room room;
	struct http_stats http;
};

enum metric_type {
	METRIC_COUNTER,
	METRIC_GAUGE
};

/* One line per sample; samples of one name stand together. */
static const struct metric {
	const char *name;
	enum metric_type type;
	const char *help;
	const char *labels; /* "" or {a="b"} */
	size_t offset;      /* of a uint64_t in struct numbers */
} metrics[] = {
#define CORE(field) offsetof(struct numbers, core.field)
#define COUNTED(field) offsetof(struct numbers, counters.field)
#define STORE(field) offsetof(struct numbers, store.field)
#define ROOM(field) offsetof(struct numbers, room.field)
#define HTTP(field) offsetof(struct numbers, http.field)
    {"mcp_active_sandboxes", METRIC_GAUGE, "Sandboxes that exist.", "",
	CORE(active_sandboxes)},
    {"mcp_active_runs", METRIC_GAUGE, "Runs queued or running.", "",
	CORE(active_runs)},
    {"mcp_runs_total", METRIC_COUNTER, "Runs ended.", "{status=\"completed\"}",
	COUNTED(total.runs_completed)},
    {"mcp_runs_total", METRIC_COUNTER, "", "{status=\"failed\"}",
	COUNTED(total.runs_failed)},
    {"mcp_runs_total", METRIC_COUNTER, "", "{status=\"canceled\"}",
	COUNTED(total.runs_canceled)},
    {"mcp_commands_total", METRIC_COUNTER, "Commands ended.",
	"{status=\"completed\"}", COUNTED(total.commands_completed)},
    {"mcp_commands_total", METRIC_COUNTER, "", "{status=\"failed\"}",
	COUNTED(total.commands_failed)},
    {"mcp_commands_total", METRIC_COUNTER, "", "{status=\"timed_out\"}",
	COUNTED(total.commands_timed_out)},
    {"mcp_reaper_deletes_total", METRIC_COUNTER,
	"Sandboxes removed because their time was over.", "",
	COUNTED(reaper_deletes)},
    {"sandboxd_history_bytes", METRIC_GAUGE,
	"Bytes that ended runs have in files.", "{kind=\"logs\"}",
	CORE(usage.log_bytes)},
    {"sandboxd_history_bytes", METRIC_GAUGE, "", "{kind=\"artifacts\"}",
	CORE(usage.blob_bytes)},
    {"sandboxd_history_files", METRIC_GAUGE, "Files that ended runs have.",
	"{kind=\"logs\"}", CORE(usage.log_files)},
    {"sandboxd_history_files", METRIC_GAUGE, "", "{kind=\"artifacts\"}",
	CORE(usage.blob_files)},
    {"sandboxd_evicted_runs_total", METRIC_COUNTER,
	"Ended runs that gave up their files.", "", CORE(usage.evicted)},
    {"sandboxd_http_requests_total", METRIC_COUNTER,
	"HTTP requests answered, by class of status.", "{code=\"1xx\"}",
	HTTP(by_class[1])},
    {"sandboxd_http_requests_total", METRIC_COUNTER, "", "{code=\"2xx\"}",
	HTTP(by_class[2])},
    {"sandboxd_http_requests_total", METRIC_COUNTER, "", "{code=\"3xx\"}",
	HTTP(by_class[3])},
    {"sandboxd_http_requests_total", METRIC_COUNTER, "", "{code=\"4xx\"}",
	HTTP(by_class[4])},
    {"sandboxd_http_requests_total", METRIC_COUNTER, "", "{code=\"5xx\"}",
	HTTP(by_class[5])},
    {"sandboxd_connections", METRIC_GAUGE, "Client connections.", "",
	HTTP(connections)},
    {"sandboxd_event_streams", METRIC_GAUGE, "Event streams open.", "",
	HTTP(streams)},
    {"sandboxd_connections_displaced_total", METRIC_COUNTER,
	"Resting connections closed for new ones.", "", HTTP(displaced)},
    {"sandboxd_tls_handshakes_total", METRIC_COUNTER,
	"TLS handshakes that came to their end.", "{result=\"open\"}",
	HTTP(handshakes)},
    {"sandboxd_tls_handshakes_total", METRIC_COUNTER, "", "{result=\"failed\"}",
	HTTP(handshakes_failed)},
    {"sandboxd_refused_total", METRIC_COUNTER,
	"What limits per address refused.", "{limit=\"connections\"}",
	HTTP(refused[LIMITER_CONNECTIONS])},
    {"sandboxd_refused_total", METRIC_COUNTER, "", "{limit=\"requests\"}",
	HTTP(refused[LIMITER_REQUESTS])},
    {"sandboxd_refused_total", METRIC_COUNTER, "", "{limit=\"logins\"}",
	HTTP(refused[LIMITER_LOGINS])},
    {"sandboxd_answers_waiting_bytes", METRIC_GAUGE,
	"Bytes of answers that clients have not taken.", "{in=\"memory\"}",
	HTTP(waiting_memory)},
    {"sandboxd_answers_waiting_bytes", METRIC_GAUGE, "", "{in=\"files\"}",
	HTTP(waiting_files)},
    {"sandboxd_workers_ready", METRIC_GAUGE,
	"Workers that can reach the engine.", "", CORE(workers_ready)},
    {"sandboxd_worker_restarts_total", METRIC_COUNTER, "Workers lost.", "",
	CORE(worker_restarts)},
    {"sandboxd_store_commits_total", METRIC_COUNTER,
	"Transactions committed by the database.", "", STORE(commits)},
    {"sandboxd_store_failures_total", METRIC_COUNTER,
	"Writes that the database refused.", "", STORE(failures)},
    {"sandboxd_disk_free_bytes", METRIC_GAUGE,
	"Room on the disks, as far as it is known.", "{dir=\"data\"}",
	ROOM(data.bytes)},
    {"sandboxd_disk_free_bytes", METRIC_GAUGE, "", "{dir=\"artifacts\"}",
	ROOM(artifacts.bytes)},
    {"sandboxd_disk_free_inodes", METRIC_GAUGE,
	"Inodes free on the disks, as far as it is known.", "{dir=\"data\"}",
	ROOM(data.inodes)},
    {"sandboxd_disk_free_inodes", METRIC_GAUGE, "", "{dir=\"artifacts\"}",
	ROOM(artifacts.inodes)},
#undef CORE
#undef COUNTED
#undef STORE
#undef ROOM
#undef HTTP
};

static void
add_head(struct buf *b, const char *name, const char *type, const char *help)
{
	(void)buf_printf(
	    b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void
add_histogram(struct buf *b, const struct counters_histogram *h)
{
	static const char name[] = "mcp_command_duration_seconds";
	uint64_t below = 0;

	add_head(b, name, "histogram", "How long commands ran.");
	for (size_t i = 0; i < COUNTERS_BOUNDS; i++) {
		below += h->bucket[i];
		(void)buf_printf(b, "%s_bucket{le=\"%g\"} %llu\n", name,
		    counters_bounds[i], (unsigned long long)below);
	}
	(void)buf_printf(b, "%s_bucket{le=\"+Inf\"} %llu\n", name,
	    (unsigned long long)h->count);
	(void)buf_printf(b, "%s_sum %.6f\n%s_count %llu\n", name, h->sum, name,
	    (unsigned long long)h->count);
}

static void
add_build_info(struct buf *b)
{
	add_head(b, "sandboxd_build_info", "gauge",
	    "Always 1; the version is a label.");
	(void)buf_printf(
	    b, "sandboxd_build_info{version=\"%s\"} 1\n", PACKAGE_VERSION);
}

static void
add_numbers(struct buf *b, const struct numbers *n)
{
	const struct metric *m;
	uint64_t value;

	for (size_t i = 0; i < ARRAY_LEN(metrics); i++) {
		m = &metrics[i];
		if (m->help[0] != '\0')
			add_head(b, m->name,
			    m->type == METRIC_GAUGE ? "gauge" : "counter",
			    m->help);
		memcpy(&value, (const char *)n + m->offset, sizeof(value));
		(void)buf_printf(b, "%s%s %llu\n", m->name, m->labels,
		    (unsigned long long)value);
	}
}

static void
read_store(const struct store *s, struct numbers *n)
{
	store_stats(s, &n->store);
	store_room(s, &n->room);
}

void
front_on_metrics(struct front *f, struct http_exchange *x)
{
	struct numbers n = {0};
	struct buf b;

	n.core = core_stats(f->core);
	n.counters = *core_counters(f->core);
	http_server_stats(f->http, &n.http);
	if (f->store != NULL)
		read_store(f->store, &n);
	buf_init(&b, METRICS_MAX);
	add_numbers(&b, &n);
	add_histogram(&b, &n.counters.command_seconds);
	add_build_info(&b);
	tenant_metrics_add(&b, f->core);
	http_add_header(x, "Cache-Control", "no-store");
	http_reply(x, 200, "text/plain; version=0.0.4; charset=utf-8",
	    buf_data(&b), buf_len(&b));
	buf_clear(&b);
}
