#include "common/tenant_lines.h"

#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>

#include "common/fd.h"
#include "common/xmalloc.h"

#define BLANKS " \t\r"

int
tenant_lines_read(const char *path, struct stat *st, char **out, struct err *e)
{
	/* O_NONBLOCK: a FIFO would block. */
	AUTO(auto_close)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	AUTO(auto_free) char *text = NULL;
	struct stat own;
	ssize_t n;

	if (st == NULL)
		st = &own;
	if (fd == -1 || fstat(fd, st) == -1)
		return err_set(
		    e, ERR_INVAL, "TENANTS_FILE %s: %s", path, strerror(errno));
	if (!S_ISREG(st->st_mode) || st->st_size > TENANT_LINES_FILE_MAX)
		return err_set(e, ERR_INVAL,
		    "TENANTS_FILE %s: want a file of at most %u bytes", path,
		    TENANT_LINES_FILE_MAX);
	text = xcalloc(1, (size_t)st->st_size + 1);
	n = fd_pread_all(fd, (uint8_t *)text, (size_t)st->st_size, 0, e);
	if (n < 0)
		return err_wrap(e, "TENANTS_FILE %s", path);
	if (strlen(text) != (size_t)n)
		return err_set(e, ERR_INVAL,
		    "TENANTS_FILE %s: there is a NUL in it", path);
	*out = text; /* the caller's */
	text = NULL;
	return 0;
}

static int
take_line(char *line, tenant_lines_cb cb, void *arg, struct err *e)
{
	char *words[TENANT_LINES_WORDS], *at = NULL;
	size_t n = 0;

	line[strcspn(line, "#")] = '\0';
	if (strlen(line) > TENANT_LINES_BYTES)
		return err_set(
		    e, ERR_INVAL, "longer than %d bytes", TENANT_LINES_BYTES);
	for (char *w = strtok_r(line, BLANKS, &at); w != NULL;
	     w = strtok_r(NULL, BLANKS, &at)) {
		if (n == TENANT_LINES_WORDS)
			return err_set(e, ERR_INVAL, "more than %d words",
			    TENANT_LINES_WORDS);
		words[n++] = w;
	}
	return n == 0 ? 0 : cb(words, n, arg, e);
}

int
tenant_lines_each(
    const char *path, char *text, tenant_lines_cb cb, void *arg, struct err *e)
{
	unsigned int number = 1;
	char *next;

	for (char *line = text; line != NULL; line = next, number++) {
		next = strchr(line, '\n');
		if (next != NULL)
			*next++ = '\0';
		if (take_line(line, cb, arg, e) != 0) {
			(void)err_wrap(
			    e, "TENANTS_FILE %s line %u", path, number);
			return ERR_INVAL;
		}
	}
	return 0;
}
