#include "worker/docker/operation.h"

#include "common/metric.h"

/* A tail of "" is any; the first that fits counts. */
static const struct shape {
	const char *method;
	const char *head; /* of the path, behind its version */
	const char *tail; /* of the path, before the query */
	enum operation operation;
} shapes[] = {
    {"GET", "/info", "", OPERATION_INFO},
    {"GET", "/version", "", OPERATION_INFO},
    {"GET", "/_ping", "", OPERATION_INFO},
    {"GET", "/events", "", OPERATION_EVENTS},
    {"GET", "/containers/json", "", OPERATION_LIST},
    {"GET", "/containers/", "/json", OPERATION_INSPECT},
    {"POST", "/containers/create", "", OPERATION_CREATE},
    {"POST", "/containers/", "/start", OPERATION_START},
    {"POST", "/containers/", "/stop", OPERATION_STOP},
    {"POST", "/containers/", "/update", OPERATION_UPDATE},
    {"DELETE", "/containers/", "", OPERATION_REMOVE},
    {"GET", "/images/", "", OPERATION_IMAGE},
    {"POST", "/images/", "", OPERATION_IMAGE},
    {"POST", "/build", "", OPERATION_BUILD},
};

/* In the order of the label "code". */
static const long statuses[] = {
    200, 201, 204, 304, 400, 403, 404, 409, 500, 503};
#define CODE_OTHER ARRAY_LEN(statuses)
#define CODES (ARRAY_LEN(statuses) + 2)

_Static_assert(
    METRIC_ENGINE_REQUESTS_TOTAL_CELLS == (OPERATION_OTHER + 1) * CODES,
    "the labels are as operations and codes are here");

/* "/v1.41/info" is "/info". */
static const char *
skip_version(const char *path)
{
	size_t n;

	if (strncmp(path, "/v", 2) != 0 || path[2] < '0' || path[2] > '9')
		return path;
	n = 2 + strspn(path + 2, "0123456789.");
	return path[n] == '/' ? path + n : path;
}

static bool
fits(const struct shape *s, const char *method, const char *path)
{
	size_t n = strcspn(path, "?"), head = strlen(s->head);
	size_t tail = strlen(s->tail);

	return strcmp(s->method, method) == 0 && n >= head + tail &&
	    strncmp(path, s->head, head) == 0 &&
	    strncmp(path + n - tail, s->tail, tail) == 0;
}

enum operation
operation_of(const char *method, const char *path)
{
	path = skip_version(path);
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		if (fits(&shapes[i], method, path))
			return shapes[i].operation;
	return OPERATION_OTHER;
}

void
operation_ended(enum operation o, long status, uint64_t us)
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
