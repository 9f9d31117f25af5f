#include "common/conf_file.h"

#include "common/buf.h"
#include "common/conf.h"
#include "common/conf_near.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define CONF_FILE_MAX (256u << 10)

struct conf_reader {
	const char *p;
	const char *end;
	unsigned int line;
};

static int
conf_reader_peek(const struct conf_reader *r)
{
	return r->p < r->end ? (unsigned char)*r->p : -1;
}

static int
conf_reader_next(struct conf_reader *r)
{
	int c = conf_reader_peek(r);

	if (c >= 0)
		r->p++;
	if (c == '\n')
		r->line++;
	return c;
}

static void
conf_reader_skip(struct conf_reader *r, const char *set)
{
	int c;

	while ((c = conf_reader_peek(r)) > 0 && strchr(set, c) != NULL)
		(void)conf_reader_next(r);
}

static void
conf_reader_skip_line(struct conf_reader *r)
{
	int c;

	do
		c = conf_reader_next(r);
	while (c >= 0 && c != '\n');
}

/* No limit to exceed: the text is never longer than the file. */
static void
conf_put(struct buf *b, int c)
{
	char byte = (char)c;

	if (buf_append(b, &byte, 1) != 0)
		abort();
}

/* Up to the closing quote, which is taken too. */
static int
conf_read_quoted(struct conf_reader *r, int quote, struct buf *b, struct err *e)
{
	for (;;) {
		int c = conf_reader_next(r);

		if (c < 0)
			return err_set(
			    e, ERR_PARSE, "the closing %c is missing", quote);
		if (c == quote)
			return 0;
		if (c == '\\' && quote == '"' && conf_reader_peek(r) >= 0) {
			c = conf_reader_next(r);
			if (c == '\n')
				continue;
			if (strchr("\"\\`$", c) == NULL)
				conf_put(b, '\\');
		}
		conf_put(b, c);
	}
}

/* The value up to the end of its line. */
static int
conf_read_value(struct conf_reader *r, struct buf *b, struct err *e)
{
	size_t keep = 0; /* blanks up to here are part of the value */

	conf_reader_skip(r, " \t");
	for (;;) {
		int c = conf_reader_next(r);

		if (c < 0 || c == '\n')
			break;
		if (c == '\'' || c == '"') {
			if (conf_read_quoted(r, c, b, e) != 0)
				return ERR_PARSE;
			keep = buf_len(b);
			continue;
		}
		if (c == '\\') {
			c = conf_reader_next(r);
			if (c < 0)
				break;
			if (c == '\n')
				continue;
			conf_put(b, c);
			keep = buf_len(b);
			continue;
		}
		conf_put(b, c);
		if (c != ' ' && c != '\t' && c != '\r')
			keep = buf_len(b);
	}
	b->end = b->start + keep;
	conf_put(b, '\0');
	return 0;
}

static int
conf_read_key(struct conf_reader *r, char **key, struct err *e)
{
	const char *start = r->p, *end;
	int c;

	while ((c = conf_reader_peek(r)) >= 0 && c != '=' && c != '\n')
		(void)conf_reader_next(r);
	end = r->p;
	if (c != '=')
		return err_set(e, ERR_PARSE, "want KEY=value or a comment");
	(void)conf_reader_next(r);
	while (end > start && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (end == start)
		return err_set(e, ERR_PARSE, "the key before = is missing");
	*key = xstrndup(start, (size_t)(end - start));
	return 0;
}

int
conf_file_parse(const char *text, size_t len, const char *name,
    int (*cb)(const char *key, const char *value, void *arg, struct err *e),
    void *arg, struct err *e)
{
	struct conf_reader r = {text, text + len, 1};
	struct err own = {0};
	int rc = 0;

	if (len > 0 && memchr(text, '\0', len) != NULL)
		return err_set(
		    e, ERR_PARSE, "%s has a NUL byte: no text", name);
	while (rc == 0) {
		AUTO(auto_free) char *key = NULL;
		struct buf value;
		unsigned int line;

		conf_reader_skip(&r, " \t\r\n");
		line = r.line;
		if (conf_reader_peek(&r) < 0)
			break;
		if (strchr("#;", conf_reader_peek(&r)) != NULL) {
			conf_reader_skip_line(&r);
			continue;
		}
		buf_init(&value, 0);
		rc = conf_read_key(&r, &key, &own);
		if (rc == 0)
			rc = conf_read_value(&r, &value, &own);
		if (rc == 0)
			rc = cb(key, (char *)buf_data(&value), arg, &own);
		buf_clear(&value);
		if (rc != 0)
			return err_set(e, rc, "%s:%u: %s", name, line, own.msg);
	}
	return rc;
}

static int
conf_load_cb(const char *key, const char *value, void *arg, struct err *e)
{
	if (conf_is_unset(key, value))
		return 0;
	if (conf_is_foreign(key)) {
		log_warn("%s means nothing to this server: left out", key);
		return 0;
	}
	return conf_set(arg, key, value, e);
}

int
conf_load_file(struct conf *c, const char *path, struct err *e)
{
	AUTO(auto_free) char *text = NULL;
	size_t len = 0;
	int rc = fd_read_file(path, CONF_FILE_MAX, &text, &len, e);

	if (rc != 0)
		return err_wrap(e, "configuration");
	return conf_file_parse(text, len, path, conf_load_cb, c, e);
}
