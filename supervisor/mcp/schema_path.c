#include "supervisor/mcp/schema_path.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

#define KEY_SHOWN 48 /* bytes of a key or string of the client's */

static size_t
path_append(const struct schema_path *path, char *out, size_t size)
{
	size_t used, key;
	int n;

	if (path == NULL)
		return 0;
	used = path_append(path->up, out, size);
	if (used >= size)
		return used;
	if (path->key == NULL) {
		n = snprintf(out + used, size - used, "[%zu]", path->index);
	} else {
		key = strnlen(path->key, KEY_SHOWN);
		key = utf8_complete_len(path->key, key);
		n = snprintf(out + used, size - used, "%s%.*s",
		    used == 0 ? "" : ".", (int)key, path->key);
	}
	return n < 0 ? size : used + (size_t)n;
}

void
schema_path_format(const struct schema_path *path, char out[SCHEMA_PATH_TEXT])
{
	out[0] = '\0';
	(void)path_append(path, out, SCHEMA_PATH_TEXT);
}

int
schema_path_fail(
    const struct schema_path *path, struct err *e, const char *fmt, ...)
{
	char where[SCHEMA_PATH_TEXT], text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (path == NULL)
		return err_set(e, ERR_INVAL, "arguments: %s", text);
	schema_path_format(path, where);
	return err_set(e, ERR_INVAL, "argument %s: %s", where, text);
}

void
schema_value_format(const json_t *v, char out[SCHEMA_VALUE_TEXT])
{
	AUTO(auto_json) json_t *cut = NULL;
	AUTO(auto_free) char *text = NULL;
	size_t n;

	if (json_is_object(v) || json_is_array(v)) {
		(void)snprintf(out, SCHEMA_VALUE_TEXT, "%s", schema_type_of(v));
		return;
	}
	if (json_is_string(v) && json_string_length(v) > KEY_SHOWN) {
		n = utf8_complete_len(json_string_value(v), KEY_SHOWN);
		cut = json_stringn(json_string_value(v), n);
		v = cut;
	}
	text = json_dumps(v, JSON_ENCODE_ANY);
	(void)snprintf(out, SCHEMA_VALUE_TEXT, "%s%s",
	    text == NULL ? "?" : text, cut == NULL ? "" : "...");
}

const char *
schema_type_of(const json_t *v)
{
	static const char *const names[] = {[JSON_OBJECT] = "an object",
	    [JSON_ARRAY] = "an array",
	    [JSON_STRING] = "a string",
	    [JSON_INTEGER] = "an integer",
	    [JSON_REAL] = "a number",
	    [JSON_TRUE] = "a boolean",
	    [JSON_FALSE] = "a boolean",
	    [JSON_NULL] = "null"};

	return names[json_typeof(v)];
}
