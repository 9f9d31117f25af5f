#include "supervisor/ctl/ctl_call.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/js.h"
#include "supervisor/ctl/ctl_print.h"
#include "supervisor/ctl/ctl_query.h"

#define VALUE_MAX 65537 /* the server takes 64 KiB; and a newline */

static int
read_value(int fd, const char *from, struct buf *b, struct err *e)
{
	for (;;) {
		uint8_t *p = buf_reserve(b, buf_room(b));
		ssize_t n = p == NULL ? 0 : read(fd, p, buf_room(b));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, "%s", from);
		if (n == 0)
			return 0;
		buf_commit(b, (size_t)n);
		if (buf_room(b) == 0)
			return err_set(e, ERR_INVAL,
			    "%s: more than 65536 bytes are no secret", from);
	}
}

static int
take_value(const struct ctl_options *o, struct buf *b, struct err *e)
{
	const char *from = o->file == NULL ? "stdin" : o->file;
	int fd = STDIN_FILENO, rc;
	size_t n;

	if (o->file != NULL)
		fd = open(o->file, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return err_set(
		    e, ERR_INVAL, "--file %s: %s", from, strerror(errno));
	if (isatty(fd) == 1)
		(void)fputs("type the value, then Ctrl-D:\n", stderr);
	rc = read_value(fd, from, b, e);
	if (o->file != NULL)
		(void)close(fd);
	n = buf_len(b);
	if (rc == 0 && o->file == NULL && n > 0 && buf_data(b)[n - 1] == '\n')
		buf_truncate(b, n - 1);
	if (rc == 0 && buf_len(b) == 0)
		return err_set(e, ERR_INVAL, "%s: the value is empty", from);
	return rc;
}

static int
path_of(const struct ctl_call *c, const char *name, char **path, struct err *e)
{
	return ctl_query_of_tenant(
	    c, "secrets", name, "", "that is no name", path, e);
}

int
ctl_secret_set(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *answer = NULL;
	AUTO(auto_free) char *path = NULL;
	struct buf b;
	int rc = path_of(c, c->words[0], &path, e);

	if (rc != 0)
		return rc;
	buf_init(&b, VALUE_MAX + 1);
	rc = take_value(c->o, &b, e);
	if (rc == 0)
		rc = ctl_request_bytes(c->link, "PUT", path,
		    &(struct span){buf_data(&b), buf_len(&b)}, &answer, e);
	if (buf_len(&b) > 0)
		explicit_bzero(buf_data(&b), buf_len(&b));
	buf_clear(&b);
	if (rc == 0)
		ctl_print_done(c->o, answer,
		    "secret %s is set: give it to a command as secret://%s",
		    c->words[0], c->words[0]);
	return rc;
}

int
ctl_secret_list(const struct ctl_call *c, struct err *e)
{
	static const struct ctl_column columns[] = {{"NAME", "name"},
	    {"BYTES", "bytes"}, {"STATE", "state"}, {"CHANGED", "changed_at"},
	    {"LAST USED", "last_used_at"}};
	AUTO(auto_json) json_t *answer = NULL;
	AUTO(auto_free) char *path = NULL;

	if (path_of(c, "", &path, e) != 0 ||
	    ctl_request(c->link, "GET", path, NULL, &answer, e) != 0)
		return e->code;
	ctl_print_list(c->o, answer, "secrets", columns, ARRAY_LEN(columns));
	return 0;
}

int
ctl_secret_delete(const struct ctl_call *c, struct err *e)
{
	AUTO(auto_json) json_t *answer = NULL;
	AUTO(auto_free) char *path = NULL;

	if (path_of(c, c->words[0], &path, e) != 0 ||
	    ctl_request(c->link, "DELETE", path, NULL, &answer, e) != 0)
		return e->code;
	ctl_print_done(c->o, answer, "secret %s is deleted", c->words[0]);
	return 0;
}
