#include "supervisor/master/bounds.h"

#include <sys/stat.h>

#include "common/ceiling.h"
#include "common/msg/msg_gen.h"
#include "common/tenant_lines.h"
#include "common/xmalloc.h"

static bool
is_others_to_write(const struct stat *st)
{
	return (st->st_mode & S_IWOTH) != 0 ||
	    ((st->st_mode & S_IWGRP) != 0 && st->st_gid != 0 &&
		st->st_gid != getegid()) ||
	    (st->st_uid != 0 && st->st_uid != geteuid());
}

static int
take_word(struct bounds *b, const char *tenant, const char *word, struct err *e)
{
	struct ceiling scratch = {.runtime = ""};

	if (strlen(tenant) > MSG_CEILING_TENANT_MAX ||
	    strlen(word) > MSG_CEILING_WORD_MAX)
		return err_set(
		    e, ERR_INVAL, "%.60s %.60s: too long", tenant, word);
	if (ceiling_word(&scratch, word, e) != 0)
		return e->code;
	b->items = xreallocarray(b->items, b->n + 1, sizeof(*b->items));
	b->items[b->n++] = (struct bounds_item){xstrdup(tenant), xstrdup(word)};
	return 0;
}

static int
take_line(char *const *words, size_t n, void *arg, struct err *e)
{
	if (strcmp(words[0], "tenant") != 0)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (ceiling_is_word(words[i]) &&
		    take_word(arg, words[1], words[i], e) != 0)
			return e->code;
	return 0;
}

int
bounds_read(const char *path, struct bounds *out, struct err *e)
{
	AUTO(auto_free) char *text = NULL;
	struct stat st;

	if (path[0] == '\0')
		return 0;
	if (tenant_lines_read(path, &st, &text, e) != 0)
		return e->code;
	if (is_others_to_write(&st))
		return err_set(e, ERR_POLICY,
		    "TENANTS_FILE %s: others may write it: chown it to the "
		    "server's user, and chmod go-w it",
		    path);
	return tenant_lines_each(path, text, take_line, out, e);
}

void
bounds_clear(struct bounds *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->items[i].tenant);
		free(b->items[i].word);
	}
	free(b->items);
	*b = (struct bounds){NULL, 0};
}

void
bounds_send(const struct bounds *b, struct ipc_chan *chan)
{
	for (size_t i = 0; i < b->n; i++)
		msg_send_ceiling(chan,
		    &(struct msg_ceiling){.tenant = b->items[i].tenant,
			.word = b->items[i].word});
}
