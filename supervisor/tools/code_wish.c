#include "supervisor/tools/code_wish.h"

#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/tools/args.h"
#include "supervisor/tools/line_ends.h"

/* {file} and {dir} of a language's words. */
static char *
fill_word(const char *word, const char *dir, const char *file)
{
	if (strcmp(word, "{file}") == 0)
		return xasprintf("%s/%s", dir, file);
	if (strncmp(word, "{dir}", 5) == 0)
		return xasprintf("%s%s", dir, word + 5);
	return xstrdup(word);
}

static void
fill_command(struct run_wish *w, char *const *words, const char *dir,
    const char *file, uint32_t timeout_ms)
{
	struct runspec_command *c = &w->spec.commands[w->spec.ncommands];
	uint32_t n = 0;

	while (words[n] != NULL)
		n++;
	c->argv = xcalloc(n + 1, sizeof(*c->argv));
	for (uint32_t i = 0; i < n; i++)
		c->argv[c->argc++] = fill_word(words[i], dir, file);
	c->cwd = xstrdup("/workspace");
	c->timeout_ms = timeout_ms;
	c->deny = xstrdup("");
	args_command_row(&w->commands[w->spec.ncommands], w->spec.ncommands, c);
	w->spec.ncommands++;
}

static void
fill_file(struct runspec *s, const struct language *l, const struct span *code)
{
	s->files = xcalloc(1, sizeof(*s->files));
	s->nfiles = 1;
	s->files[0].name = xstrdup(l->file);
	s->files[0].len = code->n;
	s->files[0].data = xmemdup(code->p, code->n);
	if (l->takes_crlf)
		s->files[0].len =
		    line_ends_take((char *)s->files[0].data, code->n);
	s->files[0].mode = 0600;
}

/* The history has what was said, as the text of the first command. */
static void
keep_code(struct run_wish *w, const struct span *code)
{
	const char *text = (const char *)code->p;
	size_t n = code->n < CODE_KEPT_MAX ? code->n : CODE_KEPT_MAX;

	n = utf8_complete_len(text, n);
	free(w->commands[0].shell);
	w->commands[0].shell = xstrndup(text, n);
}

void
code_wish(const struct conf *conf, const struct language *l,
    const struct span *code, struct run_wish *w)
{
	uint32_t timeout_ms =
	    (uint32_t)conf_int(conf, CONF_DEFAULT_COMMAND_TIMEOUT_MS);
	AUTO(auto_free) char *dir = NULL;
	char id[UUID_TEXT_LEN + 1];

	*w = (struct run_wish){.tool = "execute_code",
	    .language = l->name,
	    .merge = RUN_MERGED,
	    .when = STORE_SOON};
	uuid_timed(&w->uuid);
	uuid_format(&w->uuid, id);
	dir = xasprintf("%s%s", RUNSPEC_DIR_PREFIX, id);
	fill_file(&w->spec, l, code);
	w->spec.commands = xcalloc(2, sizeof(*w->spec.commands));
	w->commands = xcalloc(2, sizeof(*w->commands));
	if (l->compile != NULL)
		fill_command(w, l->compile, dir, l->file, timeout_ms);
	fill_command(w, l->run, dir, l->file, timeout_ms);
	if (conf_bool(conf, CONF_HISTORY_CODE))
		keep_code(w, code);
}
