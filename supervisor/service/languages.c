#include "supervisor/service/tools.h"

#include <strings.h>

#include "common/embed.h"
#include "common/js.h"
#include "common/xmalloc.h"

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

int
languages_load(struct service *s, struct err *e)
{
	AUTO(auto_json) json_t *table = NULL;
	size_t i;
	json_t *row;

	if (js_parse(embed_data[0].data, embed_data[0].len, 1 << 20, 8, &table,
		e) != 0)
		return err_wrap(e, "languages.json");
	s->nlanguages = json_array_size(table);
	s->languages = xcalloc(s->nlanguages + 1, sizeof(*s->languages));
	json_array_foreach (table, i, row) {
		struct language *l = &s->languages[i];
		const char *name =
		    json_string_value(json_object_get(row, "name"));
		const char *file =
		    json_string_value(json_object_get(row, "file"));

		if (name == NULL || file == NULL ||
		    json_array_size(json_object_get(row, "run")) == 0)
			return err_set(e, ERR_PARSE,
			    "languages.json: row %zu lacks name, file or run",
			    i);
		l->name = xstrdup(name);
		l->file = xstrdup(file);
		l->aliases = strings_from(json_object_get(row, "aliases"));
		l->compile = strings_from(json_object_get(row, "compile"));
		l->run = strings_from(json_object_get(row, "run"));
	}
	return 0;
}

void
languages_free(struct service *s)
{
	for (size_t i = 0; i < s->nlanguages; i++) {
		free(s->languages[i].name);
		free(s->languages[i].file);
		strings_free(s->languages[i].aliases);
		strings_free(s->languages[i].compile);
		strings_free(s->languages[i].run);
	}
	free(s->languages);
}

const struct language *
language_find(const struct service *s, const char *name)
{
	for (size_t i = 0; i < s->nlanguages; i++) {
		const struct language *l = &s->languages[i];

		if (strcasecmp(l->name, name) == 0)
			return l;
		for (char **a = l->aliases; a != NULL && *a != NULL; a++)
			if (strcasecmp(*a, name) == 0)
				return l;
	}
	return NULL;
}
