#include "worker/operation.h"

#include "common/metric.h"

/* In the order of the label "code". */
static const long statuses[] = {
    101, 200, 201, 204, 304, 400, 403, 404, 409, 500, 503};
#define CODE_OTHER ARRAY_LEN(statuses)
#define CODES (ARRAY_LEN(statuses) + 2)

_Static_assert(
    METRIC_ENGINE_REQUESTS_TOTAL_CELLS == (OPERATION_OTHER + 1) * CODES,
    "the labels are as operations and codes are here");

static bool
fits(const struct operation_shape *s, const char *method, const char *path)
{
	size_t n = strcspn(path, "?"), head = strlen(s->head);
	size_t tail = strlen(s->tail);

	return strcmp(s->method, method) == 0 && n >= head + tail &&
	    strncmp(path, s->head, head) == 0 &&
	    strncmp(path + n - tail, s->tail, tail) == 0 &&
	    (s->query == NULL || strstr(path + n, s->query) != NULL);
}

enum operation
operation_of(const struct operation_shape *shapes, size_t n, const char *method,
    const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (fits(&shapes[i], method, path))
			return shapes[i].operation;
	return OPERATION_OTHER;
}

void
operation_count(enum operation o, long status, uint64_t us)
{
	size_t code = 0;

	while (code < CODE_OTHER && statuses[code] != status)
		code++;
	if (status == 0)
		code = CODE_OTHER + 1;
	metric_add(METRIC_ENGINE_REQUESTS_TOTAL +
		(unsigned int)((size_t)o * CODES + code),
	    1);
	(void)metric_observe(
	    FAMILY_ENGINE_REQUEST_SECONDS, (unsigned int)o, us);
}
