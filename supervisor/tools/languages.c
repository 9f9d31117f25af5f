#include "supervisor/tools/languages.h"

#include <strings.h>

#include "common/embed.h"
#include "common/js.h"
#include "common/xmalloc.h"

#define TABLE_MAX (1u << 20)
#define TABLE_DEPTH 8

struct languages {
	json_t *table; /* what the rows point into */
	size_t n;
	struct language row[];
};

static int
row_from(struct language *l, const json_t *row, size_t i, struct err *e)
{
	l->name = json_string_value(json_object_get(row, "name"));
	l->file = json_string_value(json_object_get(row, "file"));
	l->aliases = json_object_get(row, "aliases");
	l->compile = json_object_get(row, "compile");
	l->run = json_object_get(row, "run");
	l->takes_crlf = json_is_true(json_object_get(row, "takes_crlf"));
	if (l->name == NULL || l->file == NULL || json_array_size(l->run) == 0)
		return err_set(e, ERR_PARSE,
		    "languages.json: row %zu lacks name, file or run", i);
	return 0;
}

int
languages_load(struct languages **out, struct err *e)
{
	json_t *table = NULL;
	struct languages *l;
	size_t n;

	if (js_parse(embed_data[0].data, embed_data[0].len, TABLE_MAX,
		TABLE_DEPTH, &table, e) != 0)
		return err_wrap(e, "languages.json");
	n = json_array_size(table);
	l = xcalloc(1, sizeof(*l) + n * sizeof(l->row[0]));
	l->table = table;
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
	json_decref(l->table);
	free(l);
}

const struct language *
languages_find(const struct languages *all, const char *name)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct language *l = &all->row[i];
		const json_t *alias;
		size_t k;

		if (strcasecmp(l->name, name) == 0)
			return l;
		json_array_foreach (l->aliases, k, alias)
			if (strcasecmp(json_string_value(alias), name) == 0)
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
