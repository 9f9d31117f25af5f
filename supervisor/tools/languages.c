#include "supervisor/tools/languages.h"

#include <strings.h>

#include "common/embed.h"
#include "common/js.h"
#include "common/xmalloc.h"

#define TABLE_MAX (1u << 20)
#define TABLE_DEPTH 8

struct languages {
	size_t n;
	struct language row[];
};

static char **
strings_from(const json_t *array)
{
	size_t n = json_array_size(array);
	char **out;

	if (!json_is_array(array))
		return NULL;
	out = xcalloc(n + 1, sizeof(*out));
	for (size_t i = 0; i < n; i++)
		out[i] = xstrdup(json_string_value(json_array_get(array, i)));
	return out;
}

static void
strings_free(char **list)
{
	for (size_t i = 0; list != NULL && list[i] != NULL; i++)
		free(list[i]);
	free(list);
}

static int
row_from(struct language *l, const json_t *row, size_t i, struct err *e)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	const char *file = json_string_value(json_object_get(row, "file"));

	if (name == NULL || file == NULL ||
	    json_array_size(json_object_get(row, "run")) == 0)
		return err_set(e, ERR_PARSE,
		    "languages.json: row %zu lacks name, file or run", i);
	l->name = xstrdup(name);
	l->file = xstrdup(file);
	l->aliases = strings_from(json_object_get(row, "aliases"));
	l->compile = strings_from(json_object_get(row, "compile"));
	l->run = strings_from(json_object_get(row, "run"));
	l->takes_crlf = json_is_true(json_object_get(row, "takes_crlf"));
	return 0;
}

int
languages_load(struct languages **out, struct err *e)
{
	AUTO(auto_json) json_t *table = NULL;
	struct languages *l;
	size_t n;

	if (js_parse(embed_data[0].data, embed_data[0].len, TABLE_MAX,
		TABLE_DEPTH, &table, e) != 0)
		return err_wrap(e, "languages.json");
	n = json_array_size(table);
	l = xcalloc(1, sizeof(*l) + n * sizeof(l->row[0]));
	l->n = n;
	for (size_t i = 0; i < n; i++)
		if (row_from(&l->row[i], json_array_get(table, i), i, e) != 0) {
			languages_free(l);
			return e->code;
		}
	*out = l;
	return 0;
}

void
languages_free(struct languages *l)
{
	if (l == NULL)
		return;
	for (size_t i = 0; i < l->n; i++) {
		free(l->row[i].name);
		free(l->row[i].file);
		strings_free(l->row[i].aliases);
		strings_free(l->row[i].compile);
		strings_free(l->row[i].run);
	}
	free(l);
}

const struct language *
languages_find(const struct languages *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct language *l = &all->row[i];

		if (strcasecmp(l->name, name) == 0)
			return l;
		for (char **a = l->aliases; a != NULL && *a != NULL; a++)
			if (strcasecmp(*a, name) == 0)
				return l;
	}
	return NULL;
}

void
languages_names(const struct languages *l, struct buf *out)
{
	for (size_t i = 0; i < l->n; i++)
		(void)buf_printf(
		    out, "%s%s", i == 0 ? "" : ", ", l->row[i].name);
}
