/* args.h - arguments of tools, which fit their schema, as the core wants them
 */
#ifndef TOOLS_ARGS_H
#define TOOLS_ARGS_H

#include <jansson.h>

#include "common/conf.h"
#include "common/err.h"
#include "common/runspec.h"
#include "supervisor/core/denylist.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/tools/languages.h"

/* What a caller of run_sandbox wants; run_wish_clear its wish. */
struct run_args {
	char identifier[SANDBOX_IDENTIFIER_MAX + 1];
	uint32_t ttl_s;
	bool await;
	uint64_t await_timeout_ms;
	uint64_t took_crlf; /* as LF: a bit for each command */
	struct run_wish wish;
};
#define ARGS_NAME_MAX 1024 /* bytes of a variable's name */

/* args_run_from - *out is filled only on success; deny may be NULL.  What is
 * too large for exec or for a run is refused here, and named with its size and
 * its limit; no value of a variable is. */
int args_run_from(const struct conf *conf, const struct denylist *deny,
    const json_t *args, struct run_args *out, struct err *e) MUSTCHECK;

/* args_identifier - of any tool's arguments; absent gives fallback */
void args_identifier(const json_t *args, const char *fallback,
    char out[SANDBOX_IDENTIFIER_MAX + 1]);
/* args_ttl - options.ttl_seconds: absent or <= 0 gives the default, more than
 * MAX_TTL_SECONDS is cut to it (the compatible tool's rule) */
uint32_t args_ttl(const struct conf *conf, const json_t *options);
/* args_kills_leftovers - options.kill_leftovers */
bool args_kills_leftovers(const json_t *options);
/* args_run_id - run_id */
int args_run_id(const json_t *args, struct uuid *out, struct err *e) MUSTCHECK;

#define CODE_MAX (1u << 20)
#define CODE_KEPT_MAX 16384 /* of it in the history */

/* args_code_wish - what execute_code runs: a file with the code, and the
 * language's words.  run_wish_clear it; who asks and the options are the
 * caller's to set */
void args_code_wish(const struct conf *conf, const struct language *l,
    const struct span *code, struct run_wish *w);

#endif
