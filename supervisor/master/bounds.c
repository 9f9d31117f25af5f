#include "supervisor/master/bounds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/ceiling.h"
#include "common/msg/msg_gen.h"
#include "common/xmalloc.h"

#define FILE_MAX (4 << 20)
#define BLANKS " \t\r\n"

static bool
is_others_to_write(const struct stat *st)
{
	return (st->st_mode & S_IWOTH) != 0 ||
	    ((st->st_mode & S_IWGRP) != 0 && st->st_gid != 0 &&
		st->st_gid != getegid()) ||
	    (st->st_uid != 0 && st->st_uid != geteuid());
}

static int
open_file(const char *path, FILE **out, struct err *e)
{
	/* O_NONBLOCK: a FIFO must not hold us up. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd == -1 || fstat(fd, &st) == -1)
		(void)err_set(
		    e, ERR_INVAL, "TENANTS_FILE %s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
		(void)err_set(e, ERR_INVAL,
		    "TENANTS_FILE %s: want a file of at most %d bytes", path,
		    FILE_MAX);
	else if (is_others_to_write(&st))
		(void)err_set(e, ERR_POLICY,
		    "TENANTS_FILE %s: others may write it: chown it to the "
		    "server's user, and chmod go-w it",
		    path);
	else if ((*out = fdopen(fd, "r")) != NULL)
		return 0;
	else
		(void)err_set(e, ERR_SYS, "TENANTS_FILE: fdopen");
	if (fd != -1)
		(void)close(fd);
	return e->code;
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
take_line(struct bounds *b, char *line, struct err *e)
{
	char *at = NULL, *tenant, *word;

	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, BLANKS, &at);
	if (word == NULL || strcmp(word, "tenant") != 0)
		return 0;
	tenant = strtok_r(NULL, BLANKS, &at);
	while (tenant != NULL && (word = strtok_r(NULL, BLANKS, &at)) != NULL)
		if (ceiling_is_word(word) && take_word(b, tenant, word, e) != 0)
			return e->code;
	return 0;
}

int
bounds_read(const char *path, struct bounds *out, struct err *e)
{
	AUTO(auto_free) char *line = NULL;
	unsigned int number = 0;
	FILE *f = NULL;
	size_t cap = 0;
	int rc = 0;

	if (path[0] == '\0')
		return 0;
	if (open_file(path, &f, e) != 0)
		return e->code;
	while (rc == 0 && getline(&line, &cap, f) != -1) {
		number++;
		if (take_line(out, line, e) != 0) {
			rc = ERR_INVAL;
			(void)err_wrap(
			    e, "TENANTS_FILE %s line %u", path, number);
		}
	}
	(void)fclose(f);
	return rc;
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
