#include "supervisor/master/tuning.h"

#include <errno.h>

#include "common/log.h"

static const struct tuning defaults = {
    .ready_ms = 10000,
    .going_on_ms = 120000,
    .ready_max_ms = 3600000,
    .ping_ms = 1000,
    .quiet_ms = 3000,
    .silence_ms = 15000,
    .abort_ms = 2000,
    .leave_ms = 3000,
    .front = {.first_ms = 100,
	.max_ms = 60000,
	.healthy_ms = 1000,
	.burst = 5,
	.window_ms = 60000,
	.throttle_ms = 60000},
    .worker = {.first_ms = 100,
	.max_ms = 60000,
	.healthy_ms = 60000,
	.burst = 5,
	.window_ms = 60000,
	.throttle_ms = 60000},
};

#define NOWHERE SIZE_MAX
#define AT(field) offsetof(struct tuning, field)

static const struct tunable {
	const char *name;
	size_t at[2]; /* where it goes */
	uint32_t min;
	uint32_t max;
} tunables[] = {
    {"MCP_SANDBOXD_READY_MS", {AT(ready_ms), NOWHERE}, 10, 600000},
    {"MCP_SANDBOXD_GOING_ON_MS", {AT(going_on_ms), NOWHERE}, 10, 600000},
    {"MCP_SANDBOXD_READY_MAX_MS", {AT(ready_max_ms), NOWHERE}, 10, 3600000},
    {"MCP_SANDBOXD_PING_MS", {AT(ping_ms), NOWHERE}, 10, 600000},
    {"MCP_SANDBOXD_QUIET_MS", {AT(quiet_ms), NOWHERE}, 10, 600000},
    {"MCP_SANDBOXD_SILENCE_MS", {AT(silence_ms), NOWHERE}, 10, 600000},
    {"MCP_SANDBOXD_ABORT_MS", {AT(abort_ms), NOWHERE}, 10, 600000},
    {"MCP_SANDBOXD_LEAVE_MS", {AT(leave_ms), NOWHERE}, 10, 600000},
    {"MCP_SANDBOXD_BACKOFF_MS", {AT(front.first_ms), AT(worker.first_ms)}, 1,
	60000},
    {"MCP_SANDBOXD_FRONT_HEALTHY_MS", {AT(front.healthy_ms), NOWHERE}, 0,
	600000},
    {"MCP_SANDBOXD_WORKER_HEALTHY_MS", {AT(worker.healthy_ms), NOWHERE}, 1,
	600000},
    {"MCP_SANDBOXD_BURST", {AT(front.burst), AT(worker.burst)}, 1, UINT32_MAX},
    {"MCP_SANDBOXD_BURST_WINDOW_MS",
	{AT(front.window_ms), AT(worker.window_ms)}, 10, 600000},
    {"MCP_SANDBOXD_THROTTLE_MS",
	{AT(front.throttle_ms), AT(worker.throttle_ms)}, 10, 600000},
};

static void
tunable_read(const struct tunable *k, struct tuning *t)
{
	const char *text = getenv(k->name);
	char *end = NULL;
	unsigned long long v;
	uint32_t value;

	if (text == NULL)
		return;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || v < k->min ||
	    v > k->max) {
		log_warn("%s: \"%s\" is left out, want %u..%u", k->name, text,
		    k->min, k->max);
		return;
	}
	value = (uint32_t)v;
	for (size_t i = 0; i < ARRAY_LEN(k->at); i++)
		if (k->at[i] != NOWHERE)
			memcpy((uint8_t *)t + k->at[i], &value, sizeof(value));
}

void
tuning_load(struct tuning *t)
{
	*t = defaults;
	for (size_t i = 0; i < ARRAY_LEN(tunables); i++)
		tunable_read(&tunables[i], t);
}
