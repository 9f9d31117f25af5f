/*
 * rpc.c - JSON-RPC envelopes, read and written
 *
 * Order of reading: how deep, how many values, is it JSON, an object or a
 * batch of them, then by "method" a call (request or notification) or a
 * response.  The id is read first, so that every later complaint can carry it.
 */
#include "supervisor/mcp/rpc.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/mcp.h"

/* A string or integer as JSON text; NULL for anything else. */
static char *
scalar_text(const json_t *v)
{
	if (json_is_string(v))
		return json_string_length(v) > RPC_STRING_MAX ?
		    NULL :
		    json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
	if (!json_is_integer(v))
		return NULL;
	return xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(v));
}

/* what: how the text calls it.  v NULL: there is none. */
static int
take_scalar(const json_t *v, const char *what, char **out, struct err *e)
{
	if (v == NULL)
		return 0;
	if (json_is_string(v) && json_string_length(v) > RPC_STRING_MAX)
		return err_set(e, MCP_INVALID_REQUEST,
		    "%s is longer than %d bytes", what, RPC_STRING_MAX);
	*out = scalar_text(v);
	if (*out == NULL)
		return err_set(e, MCP_INVALID_REQUEST,
		    "%s must be a string or an integer", what);
	return 0;
}

static int
check_version(const json_t *root, struct err *e)
{
	const json_t *version = json_object_get(root, "jsonrpc");

	if (!json_is_string(version) ||
	    strcmp(json_string_value(version), "2.0") != 0)
		return err_set(e, MCP_INVALID_REQUEST,
		    "jsonrpc must be \"2.0\" in every message");
	return 0;
}

/*
 * No method: a client's answer to a request of ours, or half a request.  The
 * id of an answer is from our numbers, so it is never echoed.
 */
static int
read_response(struct rpc_message *m, struct err *e)
{
	const json_t *id = json_object_get(m->root, "id");
	const json_t *error = json_object_get(m->root, "error");
	const json_t *result = json_object_get(m->root, "result");

	if (error == NULL && result == NULL) {
		if (take_scalar(id, "id", &m->id, e) != 0)
			return MCP_INVALID_REQUEST;
		return err_set(e, MCP_INVALID_REQUEST,
		    "method is missing, and it is no response either");
	}
	if (error != NULL && result != NULL)
		return err_set(e, MCP_INVALID_REQUEST,
		    "a response has a result or an error, not both");
	m->kind = RPC_RESPONSE;
	/* JSON-RPC gives errors about unreadable requests a null id. */
	if (error != NULL && (id == NULL || json_is_null(id)))
		return check_version(m->root, e);
	if (!json_is_string(id) && !json_is_integer(id))
		return err_set(e, MCP_INVALID_REQUEST,
		    "the id of a response must be a string or an integer");
	return check_version(m->root, e);
}

static int
read_call(struct rpc_message *m, const json_t *method, struct err *e)
{
	const json_t *id = json_object_get(m->root, "id");
	const json_t *token, *meta;

	m->kind = id == NULL ? RPC_NOTIFICATION : RPC_REQUEST;
	if (take_scalar(id, "id", &m->id, e) != 0)
		return MCP_INVALID_REQUEST;
	if (!json_is_string(method) ||
	    strlen(json_string_value(method)) != json_string_length(method))
		return err_set(
		    e, MCP_INVALID_REQUEST, "method must be a string");
	m->method = json_string_value(method);
	m->params = json_object_get(m->root, "params");
	m->request_id = scalar_text(json_object_get(m->params, "requestId"));
	meta = json_object_get(m->params, "_meta");
	m->traceparent =
	    json_string_value(json_object_get(meta, "traceparent"));
	token = json_object_get(meta, "progressToken");
	/* null: some clients write all members, also those without a value */
	if (id != NULL && !json_is_null(token) &&
	    take_scalar(token, "progressToken", &m->progress_token, e) != 0)
		return MCP_INVALID_REQUEST;
	return check_version(m->root, e);
}

static int
read_batch(struct rpc_message *m, struct err *e)
{
	const json_t *message;
	size_t i;

	m->kind = RPC_BATCH;
	if (json_array_size(m->root) == 0)
		return err_set(e, MCP_INVALID_REQUEST, "the batch is empty");
	if (json_array_size(m->root) > RPC_BATCH_MAX)
		return err_set(e, MCP_INVALID_REQUEST,
		    "a batch of %zu messages: send at most %d at once",
		    json_array_size(m->root), RPC_BATCH_MAX);
	json_array_foreach (m->root, i, message)
		if (!json_is_object(message))
			return err_set(e, MCP_INVALID_REQUEST,
			    "message %zu of the batch is no JSON object",
			    i + 1);
	return 0;
}

static int
read_message(struct rpc_message *m, struct err *e)
{
	const json_t *method;

	if (json_is_array(m->root))
		return read_batch(m, e);
	if (!json_is_object(m->root))
		return err_set(
		    e, MCP_INVALID_REQUEST, "the body must be a JSON object");
	method = json_object_get(m->root, "method");
	if (method == NULL)
		return read_response(m, e);
	return read_call(m, method, e);
}

static int
not_json(const json_error_t *je, struct err *e)
{
	if (json_error_code(je) == json_error_numeric_overflow)
		return err_set(e, MCP_INVALID_REQUEST,
		    "line %d column %d: a number beyond 64 bits; ids must be "
		    "strings or integers within them",
		    je->line, je->column);
	return err_set(e, MCP_PARSE_ERROR, "not JSON: line %d column %d: %s",
	    je->line, je->column, je->text);
}

int
rpc_parse(const void *body, size_t len, struct rpc_message *out, struct err *e)
{
	json_error_t je;

	*out = (struct rpc_message){0};
	body = js_skip_mark(body, &len);
	if (len == 0)
		return err_set(e, MCP_PARSE_ERROR, "the body is empty");
	if (js_is_deeper(body, len, RPC_DEPTH_MAX))
		return err_set(e, MCP_INVALID_REQUEST,
		    "nested deeper than %d levels; send a flatter message",
		    RPC_DEPTH_MAX);
	if (js_is_more(body, len, RPC_VALUES_MAX))
		return err_set(e, MCP_INVALID_REQUEST,
		    "more than %d values; send fewer at once", RPC_VALUES_MAX);
	/* NUL characters are let in here, so that the answer can have an id
	 * and name the argument that holds one. */
	out->root = json_loadb(body, len,
	    JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &je);
	if (out->root == NULL)
		return not_json(&je, e);
	return read_message(out, e);
}

int
rpc_read(json_t *value, struct rpc_message *out, struct err *e)
{
	*out = (struct rpc_message){.root = json_incref(value)};
	return read_message(out, e);
}

void
rpc_clear(struct rpc_message *m)
{
	json_decref(m->root);
	json_decref(m->removed);
	free(m->id);
	free(m->request_id);
	free(m->progress_token);
	*m = (struct rpc_message){0};
}

char *
rpc_result(const char *id, const char *result)
{
	return xasprintf(
	    "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}", id, result);
}

char *
rpc_error(const char *id, int code, const char *message, const json_t *data)
{
	AUTO(auto_json) json_t *error = json_object();
	AUTO(auto_free) char *text = NULL;

	json_object_set_new(error, "code", json_integer(code));
	json_object_set_new(
	    error, "message", js_string_bytes(message, strlen(message), NULL));
	if (data != NULL)
		json_object_set_new(error, "data", json_deep_copy(data));
	text = js_dump(error);
	if (id == NULL)
		return xasprintf("{\"jsonrpc\":\"2.0\",\"error\":%s}", text);
	return xasprintf(
	    "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":%s}", id, text);
}

char *
rpc_notification(const char *method, const char *params)
{
	return xasprintf("{\"jsonrpc\":\"2.0\",\"method\":\"%s\","
			 "\"params\":%s}",
	    method, params);
}
