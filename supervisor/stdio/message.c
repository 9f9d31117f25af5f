#include "supervisor/stdio/message.h"

#include <jansson.h>

#include "common/js.h"
#include "common/xmalloc.h"

#define CLAIM "io.modelcontextprotocol/protocolVersion"
#define TEXT_MAX 1024 /* of another's complaint */

/* ---- ids */

/* One spelling for all: "\u0061" is "a". */
static char *
id_text(const json_t *id)
{
	if (!json_is_string(id) && !json_is_number(id))
		return NULL;
	return js_dump(id);
}

static void
add_id(struct message *m, const json_t *message)
{
	const json_t *id = json_object_get(message, "id");
	char *text;

	if (!json_is_string(json_object_get(message, "method")) ||
	    m->nids == MESSAGE_IDS_MAX || (text = id_text(id)) == NULL)
		return;
	m->ids = xreallocarray(m->ids, m->nids + 1, sizeof(*m->ids));
	m->ids[m->nids++] = text;
}

bool
message_has_id(const struct message *m, const char *id)
{
	for (size_t i = 0; i < m->nids; i++)
		if (strcmp(m->ids[i], id) == 0)
			return true;
	return false;
}

/* ---- reading */

static char *
copy_text(const json_t *o, const char *key)
{
	const char *text = json_string_value(json_object_get(o, key));

	return text != NULL ? xstrdup(text) : NULL;
}

/* MCP 2026-07-28, transports: what Mcp-Name has of which method. */
static char *
find_name(const char *method, const json_t *params)
{
	static const struct {
		const char *method, *member;
	} named[] = {{"tools/call", "name"}, {"prompts/get", "name"},
	    {"resources/read", "uri"}, {"tasks/get", "taskId"},
	    {"tasks/update", "taskId"}, {"tasks/cancel", "taskId"}};

	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		if (strcmp(method, named[i].method) == 0)
			return copy_text(params, named[i].member);
	return NULL;
}

static void
read_object(struct message *m, const json_t *o)
{
	const json_t *params = json_object_get(o, "params");

	m->kind = MESSAGE_RESPONSE;
	m->method = copy_text(o, "method");
	if (m->method == NULL)
		return;
	add_id(m, o);
	m->kind = m->nids > 0 ? MESSAGE_REQUEST : MESSAGE_NOTIFICATION;
	m->claim = copy_text(json_object_get(params, "_meta"), CLAIM);
	m->name = find_name(m->method, params);
	if (strcmp(m->method, "notifications/cancelled") == 0)
		m->cancels = id_text(json_object_get(params, "requestId"));
}

int
message_read(const char *text, size_t n, struct message *m, struct err *e)
{
	AUTO(auto_json) json_t *j = NULL;
	const json_t *part;
	size_t i;

	memset(m, 0, sizeof(*m));
	if (js_parse(text, n, SIZE_MAX, MESSAGE_DEPTH_MAX, &j, e) != 0)
		return e->code = ERR_PARSE;
	if (json_is_array(j)) {
		m->kind = MESSAGE_BATCH;
		json_array_foreach (j, i, part)
			add_id(m, part);
	} else {
		read_object(m, j);
	}
	return 0;
}

void
message_clear(struct message *m)
{
	for (size_t i = 0; i < m->nids; i++)
		free(m->ids[i]);
	free(m->ids);
	free(m->method);
	free(m->claim);
	free(m->name);
	free(m->cancels);
	memset(m, 0, sizeof(*m));
}

/* ---- the server's */

static json_t *
read_any(const char *text, size_t n)
{
	json_t *j = NULL;
	struct err e;

	return js_parse(text, n, SIZE_MAX, MESSAGE_DEPTH_MAX, &j, &e) == 0 ?
	    j :
	    NULL;
}

static void
take_id(struct message *m, const json_t *answer)
{
	AUTO(auto_free) char *id = id_text(json_object_get(answer, "id"));

	if (id == NULL || json_object_get(answer, "method") != NULL)
		return;
	for (size_t i = 0; i < m->nids; i++)
		if (strcmp(m->ids[i], id) == 0) {
			free(m->ids[i]);
			m->ids[i] = m->ids[--m->nids];
			return;
		}
}

int
message_take_answer(struct message *m, const char *text, size_t n)
{
	AUTO(auto_json) json_t *j = read_any(text, n);
	const json_t *part;
	size_t i;

	if (!json_is_object(j) && !json_is_array(j))
		return -1;
	take_id(m, j);
	json_array_foreach (j, i, part)
		take_id(m, part);
	return 0;
}

/* ---- answers that are made here */

char *
message_error(const char *id, enum message_code code, const char *text)
{
	AUTO(auto_json)
	json_t *o = json_pack("{s:s, s:{s:i, s:o}}", "jsonrpc", "2.0", "error",
	    "code", (int)code, "message",
	    js_string_bytes(text, strlen(text), NULL));

	if (id != NULL)
		(void)json_object_set_new(
		    o, "id", json_loads(id, JSON_DECODE_ANY, NULL));
	return js_dump(o);
}

char *
message_error_for(const char *id, const char *text, size_t n)
{
	AUTO(auto_json) json_t *o = read_any(text, n);
	const json_t *theirs = json_object_get(o, "id");

	if (!json_is_integer(
		json_object_get(json_object_get(o, "error"), "code")) ||
	    (theirs != NULL && !json_is_null(theirs)))
		return NULL;
	(void)json_object_set_new(
	    o, "id", json_loads(id, JSON_DECODE_ANY, NULL));
	return js_dump(o);
}

/* {"error": {"message": ...}}, {"error": "...", "message": ...}, or a text. */
char *
message_complaint(const char *text, size_t n)
{
	AUTO(auto_json) json_t *o = read_any(text, n);
	const json_t *error = json_object_get(o, "error");
	const char *said =
	    js_text(json_is_object(error) ? error : o, "message");

	return xstrndup(said, TEXT_MAX);
}

int64_t
message_error_code(const char *text, size_t n)
{
	AUTO(auto_json) json_t *o = read_any(text, n);

	return json_integer_value(
	    json_object_get(json_object_get(o, "error"), "code"));
}

char *
message_revision(const char *text, size_t n)
{
	AUTO(auto_json) json_t *o = read_any(text, n);

	return copy_text(json_object_get(o, "result"), "protocolVersion");
}
