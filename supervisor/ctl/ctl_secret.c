#include "supervisor/ctl/ctl_secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/js.h"
#include "supervisor/ctl/ctl_print.h"

#define VALUE_MAX 65537 /* the server takes 64 KiB; and a newline */
#define PATH_MAX_BYTES 256

static int
check_word(const char *word, struct err *e)
{
	static const char good[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    "._-";
	size_t n = strlen(word);

	if (n > 0 && n <= 64 && strspn(word, good) == n &&
	    strspn(word, ".") != n)
		return 0;
	return err_set(e, ERR_INVAL, "%.100s: that is no name", word);
}

/* name "": all of them. */
static int
path_of(
    const struct ctl_options *o, const char *name, char *path, struct err *e)
{
	const char *tenant = o->tenant;

	if (tenant == NULL && o->url == NULL)
		tenant = "default";
	if ((name[0] != '\0' && check_word(name, e) != 0) ||
	    (tenant != NULL && check_word(tenant, e) != 0))
		return e->code;
	(void)snprintf(path, PATH_MAX_BYTES, "/api/v1/%s%s%ssecrets%s%s",
	    tenant == NULL ? "" : "tenants/", tenant == NULL ? "" : tenant,
	    tenant == NULL ? "" : "/", name[0] == '\0' ? "" : "/", name);
	return 0;
}

/* ---- the value */

static int
read_value(int fd, const char *from, struct buf *b, struct err *e)
{
	for (;;) {
		uint8_t *p = buf_reserve(b, buf_room(b));
		ssize_t n = p == NULL ? 0 : read(fd, p, buf_room(b));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(
			    e, ERR_SYS, "%s: %s", from, strerror(errno));
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

int
ctl_secret_set(const struct ctl_options *o, struct ctl_link *l,
    const char *name, struct err *e)
{
	AUTO(auto_json) json_t *answer = NULL;
	char path[PATH_MAX_BYTES];
	struct buf b;
	int rc = path_of(o, name, path, e);

	if (rc != 0)
		return rc;
	buf_init(&b, VALUE_MAX + 1);
	rc = take_value(o, &b, e);
	if (rc == 0)
		rc = ctl_request_bytes(l, "PUT", path,
		    &(struct span){buf_data(&b), buf_len(&b)}, &answer, e);
	if (buf_len(&b) > 0)
		explicit_bzero(buf_data(&b), buf_len(&b));
	buf_clear(&b);
	if (rc == 0 && o->json)
		ctl_print_json(answer);
	else if (rc == 0)
		(void)printf("secret %s is set: give it to a command as "
			     "secret://%s\n",
		    name, name);
	return rc;
}

/* ---- the rest */

int
ctl_secret_list(const struct ctl_options *o, struct ctl_link *l, json_t **out,
    struct err *e)
{
	char path[PATH_MAX_BYTES];

	if (path_of(o, "", path, e) != 0)
		return e->code;
	return ctl_request(l, "GET", path, NULL, out, e);
}

int
ctl_secret_delete(const struct ctl_options *o, struct ctl_link *l,
    const char *name, struct err *e)
{
	AUTO(auto_json) json_t *answer = NULL;
	char path[PATH_MAX_BYTES];

	if (path_of(o, name, path, e) != 0 ||
	    ctl_request(l, "DELETE", path, NULL, &answer, e) != 0)
		return e->code;
	if (o->json)
		ctl_print_json(answer);
	else
		(void)printf("secret %s is deleted\n", name);
	return 0;
}
