#include "supervisor/mcp/mirror.h"

#include <ctype.h>
#include <strings.h>
#include <sys/queue.h>

#include <openssl/evp.h>

#include "common/js.h"
#include "common/xmalloc.h"

#define KEYWORD "x-mcp-header"
#define HEADER_PREFIX "Mcp-Param-"
#define ENCODED_HEAD "=?base64?"
#define ENCODED_TAIL "?="

/* ---- values */

/* Base64 with all its padding, and nothing else. */
static bool
is_base64(const char *p, size_t n)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "abcdefghijklmnopqrstuvwxyz"
				       "0123456789+/";
	size_t plain = strspn(p, alphabet);

	return n % 4 == 0 && plain <= n && n - plain <= 2 &&
	    strspn(p + plain, "=") >= n - plain;
}

/* n bytes at p, a multiple of four; *len of what is returned. */
static char *
decode(const char *p, size_t n, size_t *len)
{
	char *out = xmalloc(n / 4 * 3 + 1);

	(void)EVP_DecodeBlock(
	    (unsigned char *)out, (const unsigned char *)p, (int)n);
	*len = n / 4 * 3;
	for (size_t i = n; i > 0 && p[i - 1] == '='; i--)
		(*len)--;
	out[*len] = '\0';
	return out;
}

/* What the line says, its length in *len, or NULL: malformed. */
static char *
line_value(const char *line, size_t *len)
{
	const size_t head = strlen(ENCODED_HEAD), tail = strlen(ENCODED_TAIL);
	size_t n = strlen(line);

	*len = n;
	if (n < head + tail || memcmp(line, ENCODED_HEAD, head) != 0 ||
	    memcmp(line + n - tail, ENCODED_TAIL, tail) != 0)
		return xstrdup(line);
	n -= head + tail;
	return is_base64(line + head, n) ? decode(line + head, n, len) : NULL;
}

static bool
shows_number(const char *text, size_t len, const json_t *value)
{
	AUTO(auto_json)
	json_t *said = json_loadb(text, len, JSON_DECODE_ANY, NULL);

	if (!json_is_number(said))
		return false;
	if (json_is_integer(said) && json_is_integer(value))
		return json_integer_value(said) == json_integer_value(value);
	return json_number_value(said) == json_number_value(value);
}

bool
mirror_shows(const char *line, const json_t *value)
{
	size_t len;
	AUTO(auto_free) char *text = line_value(line, &len);

	if (text == NULL)
		return false;
	if (json_is_string(value))
		return len == json_string_length(value) &&
		    memcmp(text, json_string_value(value), len) == 0;
	if (json_is_number(value))
		return shows_number(text, len, value);
	return strcmp(text, json_is_true(value) ? "true" : "false") == 0 &&
	    json_is_boolean(value);
}

/* ---- what a tool asks for */

struct mirror {
	TAILQ_ENTRY(mirror) link;
	char *header; /* whole */
	json_t *path; /* names of properties, from the root */
};

struct mirror_set {
	TAILQ_HEAD(, mirror) all;
};

void
mirror_set_free(struct mirror_set *set)
{
	struct mirror *x;

	if (set == NULL)
		return;
	while ((x = TAILQ_FIRST(&set->all)) != NULL) {
		TAILQ_REMOVE(&set->all, x, link);
		json_decref(x->path);
		free(x->header);
		free(x);
	}
	free(set);
}

static bool
is_token(const char *s)
{
	const char *p = s;

	while (isalnum((unsigned char)*p) != 0 ||
	    (*p != '\0' && strchr("!#$%&'*+-.^_`|~", *p) != NULL))
		p++;
	return *p == '\0' && p != s;
}

static const struct mirror *
find(const struct mirror_set *set, const char *header)
{
	const struct mirror *x;

	TAILQ_FOREACH (x, &set->all, link)
		if (strcasecmp(x->header, header) == 0)
			return x;
	return NULL;
}

/* One property that has the keyword. */
static int
add(struct mirror_set *set, const json_t *schema, const json_t *path,
    struct err *e)
{
	const char *name = js_text(schema, KEYWORD);
	const char *type = js_text(schema, "type");
	AUTO(auto_free) char *header = xasprintf(HEADER_PREFIX "%s", name);
	struct mirror *x;

	if (!is_token(name))
		return err_set(
		    e, ERR_INVAL, KEYWORD " must be a word of a header's name");
	if (find(set, header) != NULL)
		return err_set(
		    e, ERR_INVAL, KEYWORD " %.80s is there twice", name);
	if (strcmp(type, "string") != 0 && strcmp(type, "integer") != 0 &&
	    strcmp(type, "boolean") != 0)
		return err_set(e, ERR_INVAL,
		    KEYWORD " %.80s is for string, integer or boolean", name);
	x = xcalloc(1, sizeof(*x));
	x->header = header;
	header = NULL;
	x->path = json_copy((json_t *)(uintptr_t)path);
	TAILQ_INSERT_TAIL(&set->all, x, link);
	return 0;
}

/* Somewhere in it, as the key of an object. */
static bool
has_keyword(const json_t *value)
{
	const char *key;
	json_t *part;
	size_t i;

	json_array_foreach (value, i, part)
		if (has_keyword(part))
			return true;
	json_object_foreach ((json_t *)(uintptr_t)value, key, part)
		if (strcmp(key, KEYWORD) == 0 || has_keyword(part))
			return true;
	return false;
}

static int collect(
    struct mirror_set *set, const json_t *schema, json_t *path, struct err *e);

static int
collect_properties(struct mirror_set *set, const json_t *properties,
    json_t *path, struct err *e)
{
	const char *name;
	json_t *schema;

	json_object_foreach ((json_t *)(uintptr_t)properties, name, schema) {
		int rc;

		json_array_append_new(path, json_string(name));
		rc = collect(set, schema, path, e);
		json_array_remove(path, json_array_size(path) - 1);
		if (rc != 0)
			return err_wrap(e, "%.80s", name);
	}
	return 0;
}

/* Its depth is bounded: schema_new has seen it before. */
static int
collect(
    struct mirror_set *set, const json_t *schema, json_t *path, struct err *e)
{
	const char *key;
	json_t *part;

	json_object_foreach ((json_t *)(uintptr_t)schema, key, part) {
		int rc = 0;

		if (strcmp(key, KEYWORD) == 0)
			rc = add(set, schema, path, e);
		else if (strcmp(key, "properties") == 0)
			rc = collect_properties(set, part, path, e);
		else if (has_keyword(part))
			rc = err_set(e, ERR_INVAL,
			    KEYWORD " below %.80s: it may stand in "
				    "properties only",
			    key);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int
mirror_set_new(const json_t *schema, struct mirror_set **out, struct err *e)
{
	AUTO(auto_json) json_t *path = json_array();
	struct mirror_set *set = xcalloc(1, sizeof(*set));

	*out = NULL;
	TAILQ_INIT(&set->all);
	if (collect(set, schema, path, e) != 0) {
		mirror_set_free(set);
		return e->code;
	}
	if (TAILQ_EMPTY(&set->all))
		mirror_set_free(set);
	else
		*out = set;
	return 0;
}

/* Where the keyword may stand, mirror_set_new has made sure. */
static void
strip(json_t *schema)
{
	const char *name;
	json_t *part;

	if (json_is_object(schema))
		(void)json_object_del(schema, KEYWORD);
	json_object_foreach (json_object_get(schema, "properties"), name, part)
		strip(part);
}

json_t *
mirror_strip(const json_t *schema)
{
	json_t *out = json_deep_copy(schema);

	strip(out);
	return out;
}

/* ---- a call */

/* NULL when it is absent, or null. */
static const json_t *
argument_at(const json_t *arguments, const json_t *path)
{
	const json_t *v = arguments;
	const json_t *name;
	size_t i;

	json_array_foreach (path, i, name)
		v = json_object_get(v, json_string_value(name));
	return json_is_null(v) ? NULL : v;
}

static int
check(const struct mirror *x, const json_t *value,
    const struct mirror_source *source, struct err *e)
{
	unsigned int lines = 0;
	const char *line = source->find == NULL ?
	    NULL :
	    source->find(source->handle, x->header, &lines);

	/* What no line can say does not fit the schema: that is told. */
	if (json_is_object(value) || json_is_array(value))
		return 0;
	if (line == NULL && value == NULL)
		return 0;
	if (line == NULL)
		return err_set(e, ERR_INVAL,
		    "the header %s is missing: it repeats an argument",
		    x->header);
	if (value == NULL)
		return err_set(e, ERR_INVAL,
		    "the header %s repeats an argument that is not there",
		    x->header);
	if (lines > 1 || !mirror_shows(line, value))
		return err_set(e, ERR_INVAL,
		    "the header %s does not say what the argument does",
		    x->header);
	return 0;
}

int
mirror_set_check(const struct mirror_set *set, const json_t *arguments,
    const struct mirror_source *source, struct err *e)
{
	const struct mirror *x;

	if (set == NULL)
		return 0;
	TAILQ_FOREACH (x, &set->all, link)
		if (check(x, argument_at(arguments, x->path), source, e) != 0)
			return e->code;
	return 0;
}
