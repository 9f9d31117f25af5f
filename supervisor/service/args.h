/* args.h - the arguments of run_sandbox, checked and made into a runspec. */
#ifndef SERVICE_ARGS_H
#define SERVICE_ARGS_H

#include <jansson.h>

#include "common/conf.h"
#include "common/err.h"
#include "common/runspec.h"
#include "supervisor/store/store.h"

#define ARGS_IDENTIFIER_MAX 36

/* What a caller wants run; run_request_clear frees all. */
struct run_request {
	char identifier[ARGS_IDENTIFIER_MAX + 1];
	const char *tool; /* static text */
	struct runspec spec;
	struct store_command *commands; /* rows beside the spec */
	uint32_t ttl_s;
	bool lock;
	bool await;
	uint64_t await_timeout_ms;
	struct uuid uuid; /* of the run, chosen before: files need it */
};
void run_request_clear(struct run_request *q);

struct denylist;
/* denylist_new - NULL when switched off; ERR_INVAL names a bad pattern */
int denylist_new(
    const struct conf *conf, struct denylist **out, struct err *e) MUSTCHECK;
void denylist_free(struct denylist *d);

/* args_identifier - the identifier of any tool's arguments; absent gives
 * fallback (NULL: an error) */
int args_identifier(const json_t *args, const char *fallback,
    char out[ARGS_IDENTIFIER_MAX + 1], struct err *e) MUSTCHECK;
/* args_ttl - options.ttl_seconds by the seed's rule: absent or <= 0 gives the
 * default, more than MAX_TTL_SECONDS is cut to it */
uint32_t args_ttl(const struct conf *conf, const json_t *options);
int args_run_request(const struct conf *conf, const struct denylist *deny,
    const json_t *args, struct run_request *out, struct err *e) MUSTCHECK;
/* args_command_row - the row that belongs to a command of the spec */
void args_command_row(
    struct store_command *row, uint32_t index, const struct runspec_command *c);

#endif
