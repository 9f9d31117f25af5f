#include "supervisor/tools/definition.h"

#include <ctype.h>
#include <stdio.h>

#include "common/buf.h"
#include "common/js.h"
#include "common/xmalloc.h"

#define DEFINITION_MAX 65536
#define DEFINITION_DEPTH 32
#define TEXT_MAX (2 * DEFINITION_MAX) /* with what is filled in */

/* ---- settings by name */

static const struct setting {
	const char *name;
	enum conf_key key;
	bool is_bool;
} settings[] = {
    {"DEFAULT_AWAIT_COMPLETION", CONF_DEFAULT_AWAIT_COMPLETION, true},
    {"DEFAULT_AWAIT_TIMEOUT_MS", CONF_DEFAULT_AWAIT_TIMEOUT_MS, false},
    {"DEFAULT_COMMAND_TIMEOUT_MS", CONF_DEFAULT_COMMAND_TIMEOUT_MS, false},
    {"DEFAULT_TTL_SECONDS", CONF_DEFAULT_TTL_SECONDS, false},
    {"MAX_TTL_SECONDS", CONF_MAX_TTL_SECONDS, false},
};

/* The name in braces at the beginning of p: its length, or 0. */
static size_t
name_len(const char *p)
{
	size_t n = 0;

	if (*p != '{')
		return 0;
	while (isupper((unsigned char)p[1 + n]) || p[1 + n] == '_')
		n++;
	return p[1 + n] == '}' ? n : 0;
}

static const struct setting *
find_setting(const char *p, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		if (strlen(settings[i].name) == n &&
		    strncmp(settings[i].name, p, n) == 0)
			return &settings[i];
	return NULL;
}

static json_t *
value_of(const struct conf *conf, const struct setting *s)
{
	return s->is_bool ? json_boolean(conf_bool(conf, s->key)) :
			    json_integer(conf_int(conf, s->key));
}

/* ---- filling in */

/* What stands for this text; NULL: it names a setting that nobody knows. */
static json_t *
filled(const struct conf *conf, const char *text, struct err *e)
{
	const struct setting *s;
	json_t *out;
	struct buf b;
	size_t n;

	buf_init(&b, TEXT_MAX);
	for (const char *p = text; *p != '\0'; p += n) {
		AUTO(auto_json) json_t *value = NULL;
		AUTO(auto_free) char *words = NULL;

		n = name_len(p);
		if (n == 0) {
			n = 1;
			(void)!buf_append(&b, p, 1);
			continue;
		}
		s = find_setting(p + 1, n);
		if (s == NULL) {
			buf_clear(&b);
			(void)err_set(e, ERR_INVAL,
			    "no definition may name the setting %.*s", (int)n,
			    p + 1);
			return NULL;
		}
		value = value_of(conf, s);
		if (p == text && p[n + 2] == '\0') {
			buf_clear(&b);
			return json_incref(value);
		}
		words = json_dumps(value, JSON_ENCODE_ANY);
		(void)buf_printf(&b, "%s", words);
		n += 2;
	}
	out = js_string_bytes(buf_data(&b), buf_len(&b), NULL);
	buf_clear(&b);
	return out;
}

static bool
names_setting(const char *text)
{
	for (; *text != '\0'; text++)
		if (name_len(text) > 0)
			return true;
	return false;
}

/* Our own files are not nested deep.  Texts in lists name no settings. */
static int
fill(const struct conf *conf, json_t *node, struct err *e)
{
	const char *name;
	json_t *value;
	size_t i;

	json_array_foreach (node, i, value)
		if (fill(conf, value, e) != 0)
			return e->code;
	json_object_foreach (node, name, value) {
		const char *text = json_string_value(value);
		json_t *is;

		if (fill(conf, value, e) != 0)
			return e->code;
		if (text == NULL || !names_setting(text))
			continue;
		is = filled(conf, text, e);
		if (is == NULL)
			return e->code;
		json_object_set_new(node, name, is); /* the key exists */
	}
	return 0;
}

/* ---- what the operator says of a tool */

static const char *
description_extra(const struct conf *conf, const char *tool, const char *what)
{
	char key[80];

	(void)snprintf(key, sizeof(key), "TOOL_DESC_%s_%s", tool, what);
	for (char *p = key; *p != '\0'; p++)
		*p = (char)toupper((unsigned char)*p);
	return conf_extra(conf, key);
}

static void
set_description(const struct conf *conf, const char *tool, json_t *definition)
{
	const char *text = js_text(definition, "description");
	const char *override, *append;
	AUTO(auto_free) char *both = NULL;

	if (!conf_bool(conf, CONF_TOOL_DESC_OVERRIDES_ENABLED))
		return;
	override = description_extra(conf, tool, "OVERRIDE");
	append = description_extra(conf, tool, "APPEND");
	if (override == NULL && append == NULL)
		return;
	both = xasprintf("%s%s%s", override != NULL ? override : text,
	    append != NULL ? " " : "", append != NULL ? append : "");
	json_object_set_new(definition, "description",
	    js_string_bytes(both, strlen(both), NULL));
}

/* Which images may be asked for is the operator's choice. */
static void
set_images(const struct conf *conf, const char *tool, json_t *definition)
{
	json_t *image = json_object_get(
	    json_object_get(
		json_object_get(definition, "inputSchema"), "properties"),
	    "image");
	const char *more = conf_str(conf, CONF_SANDBOX_IMAGES_ALLOWED);
	AUTO(auto_free) char *text = NULL;

	if (strcmp(tool, "initialize_sandbox") != 0 || image == NULL)
		return;
	text = xasprintf("Container image: %s (the default)%s%s",
	    conf_str(conf, CONF_SANDBOX_IMAGE), more[0] != '\0' ? ", " : "",
	    more);
	json_object_set_new(
	    image, "description", js_string_bytes(text, strlen(text), NULL));
}

static const struct embed_file *
find_file(const struct embed_file *files, const char *name)
{
	char file[64];

	(void)snprintf(file, sizeof(file), "%s.json", name);
	for (; files->name != NULL; files++)
		if (strcmp(files->name, file) == 0)
			return files;
	return NULL;
}

int
definition_make(const struct conf *conf, const struct embed_file *files,
    const char *name, json_t **out, struct err *e)
{
	const struct embed_file *file = find_file(files, name);
	AUTO(auto_json) json_t *definition = NULL;

	if (file == NULL)
		return err_set(e, ERR_INVAL, "tool %s has no definition", name);
	if (js_parse(file->data, file->len, DEFINITION_MAX, DEFINITION_DEPTH,
		&definition, e) != 0 ||
	    fill(conf, definition, e) != 0)
		return err_wrap(e, "%s", file->name);
	if (strcmp(js_text(definition, "name"), name) != 0)
		return err_set(
		    e, ERR_INVAL, "%s: its name must be %s", file->name, name);
	set_description(conf, name, definition);
	set_images(conf, name, definition);
	*out = definition;
	definition = NULL;
	return 0;
}
