#include "supervisor/ctl/ctl_call.h"

#include <stdio.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/ctl/ctl_print.h"
#include "supervisor/ctl/ctl_query.h"

/* id "": all of them; more: "" or "/test". */
static int
ask(const struct ctl_call *c, const char *method, const char *id,
    const char *more, const json_t *body, json_t **out, struct err *e)
{
	AUTO(auto_free) char *path = NULL;

	if (ctl_query_of_tenant(c, "webhooks", id, more,
		"that is no webhook's id, or tenant", &path, e) != 0)
		return e->code;
	return ctl_request(c->link, method, path, body, out, e);
}

/* ---- settings */

static json_t *
list_of(const char *words)
{
	AUTO(auto_free) char *copy = xstrdup(words);
	json_t *list = json_array();
	char *rest = copy, *word;

	while ((word = strsep(&rest, ",")) != NULL)
		json_array_append_new(list, json_string(word));
	return list;
}

static int
take_setting(json_t *body, const char *word, struct err *e)
{
	const char *value = strchr(word, '=');
	char key[32];

	if (value == NULL || (size_t)(value - word) >= sizeof(key))
		return err_set(e, ERR_INVAL,
		    "%.100s: want url=URL, events=KIND,KIND, enabled=true or "
		    "false, or new_secret=true",
		    word);
	(void)snprintf(key, sizeof(key), "%.*s", (int)(value - word), word);
	value++;
	json_object_set_new(body, key,
	    strcmp(key, "events") == 0      ? list_of(value) :
		strcmp(value, "true") == 0  ? json_true() :
		strcmp(value, "false") == 0 ? json_false() :
					      json_string(value));
	return 0;
}

static int
take_settings(const struct ctl_call *c, int from, json_t *body, struct err *e)
{
	int rc = 0;

	for (int i = from; i < c->n && rc == 0; i++)
		rc = take_setting(body, c->words[i], e);
	return rc;
}

/* ---- commands */

int
ctl_webhook_add(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *body = json_object();
	AUTO(auto_json) json_t *answer = NULL;

	json_object_set_new(body, "url", json_string(c->words[0]));
	if (take_settings(c, 1, body, e) != 0 ||
	    ask(c, "POST", "", "", body, &answer, e) != 0)
		return e->code;
	ctl_print_answer(c->o, answer);
	return 0;
}

int
ctl_webhook_list(const struct ctl_call *c, struct err *e)
{
	static const struct ctl_column columns[] = {{"ID", "id"},
	    {"URL", "url"}, {"ENABLED", "enabled"}, {"TAKEN", "taken"},
	    {"LOST", "lost"}, {"FAILING SINCE", "failing_since"},
	    {"LAST ERROR", "last_error"}};
	AUTO(auto_json) json_t *answer = NULL;
	json_t *one;
	size_t i;

	if (ask(c, "GET", "", "", NULL, &answer, e) != 0)
		return e->code;
	if (!c->o->json)
		json_array_foreach (json_object_get(answer, "webhooks"), i, one)
			(void)json_object_update(
			    one, json_object_get(one, "deliveries"));
	ctl_print_list(c->o, answer, "webhooks", columns, ARRAY_LEN(columns));
	return 0;
}

/* With its deliveries, which the list has. */
int
ctl_webhook_show(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *answer = NULL;
	json_t *one;
	size_t i;

	if (ask(c, "GET", "", "", NULL, &answer, e) != 0)
		return e->code;
	json_array_foreach (json_object_get(answer, "webhooks"), i, one)
		if (strcmp(js_text(one, "id"), c->words[0]) == 0) {
			ctl_print_answer(c->o, one);
			return 0;
		}
	return err_set(e, ERR_NOTFOUND, "%.100s: no such webhook", c->words[0]);
}

int
ctl_webhook_set(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *body = json_object();
	AUTO(auto_json) json_t *answer = NULL;

	if (take_settings(c, 1, body, e) != 0 ||
	    ask(c, "PATCH", c->words[0], "", body, &answer, e) != 0)
		return e->code;
	ctl_print_answer(c->o, answer);
	return 0;
}

int
ctl_webhook_delete(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *answer = NULL;

	if (ask(c, "DELETE", c->words[0], "", NULL, &answer, e) != 0)
		return e->code;
	ctl_print_answer(c->o, answer);
	return 0;
}

/* What is not taken is a failure. */
int
ctl_webhook_test(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *answer = NULL;

	if (ask(c, "POST", c->words[0], "/test", NULL, &answer, e) != 0)
		return e->code;
	ctl_print_answer(c->o, answer);
	return json_is_true(json_object_get(answer, "taken")) ?
	    0 :
	    err_set(e, ERR_BACKEND, "the receiver did not take it");
}
