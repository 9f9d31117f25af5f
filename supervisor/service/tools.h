/* tools.h - what the tool functions of service/ share: a call in flight. */
#ifndef SERVICE_TOOLS_H
#define SERVICE_TOOLS_H

#include "supervisor/service/internal.h"

struct tool_call {
	struct service *service;
	struct principal principal;
	json_t *args;
	service_json_cb done;
	void *arg;
	bool await;
	uint64_t await_timeout_ms;
	const struct language *language;
};

struct tool_call *tool_call_new(struct service *s, const struct principal *p,
    json_t *args, service_json_cb done, void *arg);
/* Each ends and frees the call; result is taken over. */
void tool_call_result(struct tool_call *c, json_t *result);
void tool_call_fail(struct tool_call *c, const struct err *why);

/* tool_check_admission - may one more run begin? */
int tool_check_admission(struct service *s, struct err *e) MUSTCHECK;
/* tool_new_sandbox - NULL with *e over a limit or when its worker or the
 * engine is away */
struct sandbox *tool_new_sandbox(struct service *s, const struct principal *p,
    const struct sandbox_request *q, struct err *e) MUSTCHECK;

/* languages.c: the table of images/languages.json. */
struct language {
	char *name;
	char **aliases; /* NULL-terminated, as the rest */
	char *file;
	char **compile; /* NULL: none */
	char **run;
};
int languages_load(struct service *s, struct err *e) MUSTCHECK;
void languages_free(struct service *s);
const struct language *language_find(const struct service *s, const char *name);

#endif
