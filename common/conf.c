/*
 * conf.c - the configuration's values: the table of keys, parsing of one value
 * by its type, names that are nearly a key, the environment, files, and what a
 * reload may change.  Rules across keys are in conf_check.c.
 */
#include "common/conf.h"

#include <errno.h>
#include <strings.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/xmalloc.h"

/* A value travels in one IPC message. */
#define CONF_VALUE_MAX 32767
#define CONF_EXTRAS_MAX 64
#define CONF_EXTRA_NAME_MAX 64
#define CONF_EXTRA_PREFIX "TOOL_DESC_"

enum conf_type {
	CONF_TYPE_INT,
	CONF_TYPE_BOOL,
	CONF_TYPE_STR,
	CONF_TYPE_PATH,
	CONF_TYPE_ENUM,
	CONF_TYPE_LIST
};

struct conf_row {
	const char *key;
	enum conf_type type;
	const char *def;
	const char *items; /* of an enum, with commas between */
	int64_t min;
	int64_t max;
	unsigned int who;
	bool reload;
	const char *text;
};

static const struct conf_row conf_table[CONF_KEY_COUNT] = {
#include "common/conf_table.h"
};

struct conf_value {
	char *text;
	int64_t num;  /* int; bool: 0 or 1 */
	char **items; /* list: NULL-terminated, all in one allocation */
};

struct conf_pair {
	char *key;
	char *value;
};

struct conf {
	struct conf_value values[CONF_KEY_COUNT];
	struct conf_pair extras[CONF_EXTRAS_MAX];
	size_t nextras;
};

static const struct conf_row *
conf_find(const char *key)
{
	for (size_t i = 0; i < CONF_KEY_COUNT; i++)
		if (strcmp(conf_table[i].key, key) == 0)
			return &conf_table[i];
	return NULL;
}

/* A value as an error may show it: cut, and printable. */
static const char *
conf_show(const char *value, char out[64])
{
	size_t i;

	for (i = 0; i < 60 && value[i] != '\0'; i++)
		out[i] = value[i] >= 0x20 && value[i] < 0x7f ? value[i] : '?';
	(void)strcpy(out + i, value[i] != '\0' ? "..." : "");
	return out;
}

static int
conf_parse_int(
    const struct conf_row *r, const char *value, int64_t *out, struct err *e)
{
	char shown[64], *end;
	long long n;

	errno = 0;
	n = strtoll(value, &end, 10);
	/* strtoll skips blanks; we do not. */
	if (end == value || *end != '\0' || errno != 0 ||
	    (value[0] != '-' && (value[0] < '0' || value[0] > '9')) ||
	    n < r->min || n > r->max)
		return err_set(e, ERR_INVAL,
		    "%s is \"%s\", want a number from %lld to %lld", r->key,
		    conf_show(value, shown), (long long)r->min,
		    (long long)r->max);
	*out = n;
	return 0;
}

static int
conf_parse_bool(
    const struct conf_row *r, const char *value, int64_t *out, struct err *e)
{
	static const struct {
		const char *word;
		int64_t num;
	} words[] = {{"1", 1}, {"true", 1}, {"yes", 1}, {"y", 1}, {"on", 1},
	    {"0", 0}, {"false", 0}, {"no", 0}, {"n", 0}, {"off", 0}};
	char shown[64];

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strcasecmp(words[i].word, value) == 0) {
			*out = words[i].num;
			return 0;
		}
	}
	return err_set(e, ERR_INVAL, "%s is \"%s\", want true or false", r->key,
	    conf_show(value, shown));
}

static int
conf_parse_enum(const struct conf_row *r, const char *value, struct err *e)
{
	size_t len = strlen(value);
	const char *p = r->items;
	char shown[64];

	for (;;) {
		size_t n = strcspn(p, ",");

		if (n == len && memcmp(p, value, n) == 0)
			return 0;
		if (p[n] == '\0')
			break;
		p += n + 1;
	}
	return err_set(e, ERR_INVAL, "%s is \"%s\", want one of %s", r->key,
	    conf_show(value, shown), r->items);
}

/* Control characters would break log lines, labels and paths. */
static int
conf_parse_text(
    const char *key, const char *value, const char *permitted, struct err *e)
{
	if (strlen(value) > CONF_VALUE_MAX)
		return err_set(e, ERR_INVAL,
		    "%s has %zu bytes, want at most %d", key, strlen(value),
		    CONF_VALUE_MAX);
	for (const char *p = value; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;

		if ((c < 0x20 || c == 0x7f) && strchr(permitted, c) == NULL)
			return err_set(e, ERR_INVAL,
			    "%s has the control character \\x%02x, want none",
			    key, c);
	}
	return 0;
}

static bool
conf_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The items of a list without the blanks around them; empty ones are left
 * out.  Pointers and text share one allocation. */
static char **
conf_split(const char *value)
{
	size_t len = strlen(value), n = 0, max = 2;
	char **items, *text;

	for (const char *p = value; *p != '\0'; p++)
		max += *p == ',';
	items = xmalloc(max * sizeof(*items) + len + 1);
	text = (char *)&items[max];
	memcpy(text, value, len + 1);
	for (char *p = text, *next; p != NULL; p = next) {
		char *end;

		next = strchr(p, ',');
		end = next != NULL ? next : p + strlen(p);
		if (next != NULL)
			next++;
		while (p < end && conf_is_blank(*p))
			p++;
		while (end > p && conf_is_blank(end[-1]))
			end--;
		*end = '\0';
		if (end > p)
			items[n++] = p;
	}
	items[n] = NULL;
	return items;
}

static void
conf_value_clear(struct conf_value *v)
{
	free(v->text);
	free(v->items);
	memset(v, 0, sizeof(*v));
}

static int
conf_set_row(
    struct conf *c, const struct conf_row *r, const char *value, struct err *e)
{
	struct conf_value *v = &c->values[r - conf_table];
	int64_t num = 0;
	int rc;

	/* A sandbox without these could not even change its user. */
	if (value[0] == '\0' && r == &conf_table[CONF_SANDBOX_CAP_ADD])
		value = r->def;
	rc = conf_parse_text(r->key, value, "", e);
	if (rc == 0 && r->type == CONF_TYPE_INT)
		rc = conf_parse_int(r, value, &num, e);
	if (rc == 0 && r->type == CONF_TYPE_BOOL)
		rc = conf_parse_bool(r, value, &num, e);
	if (rc == 0 && r->type == CONF_TYPE_ENUM)
		rc = conf_parse_enum(r, value, e);
	if (rc != 0)
		return rc;
	conf_value_clear(v);
	/* "YES" and "1" are the same value, so they look the same. */
	v->text = xstrdup(r->type != CONF_TYPE_BOOL ? value :
		num != 0                            ? "true" :
						      "false");
	v->num = num;
	if (r->type == CONF_TYPE_LIST)
		v->items = conf_split(value);
	return 0;
}

static bool
conf_has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);

	return n > k && strcmp(s + n - k, suffix) == 0;
}

/* TOOL_DESC_<NAME>_OVERRIDE or TOOL_DESC_<NAME>_APPEND */
static bool
conf_is_extra(const char *key)
{
	static const char prefix[] = CONF_EXTRA_PREFIX;
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	size_t len = strlen(key), head = sizeof(prefix) - 1;

	if (len > CONF_EXTRA_NAME_MAX || strncmp(key, prefix, head) != 0)
		return false;
	return key[head] != '_' && strspn(key, letters) == len &&
	    (conf_has_suffix(key + head, "_OVERRIDE") ||
		conf_has_suffix(key + head, "_APPEND"));
}

static const struct conf_pair *
conf_find_extra(const struct conf *c, const char *key)
{
	for (size_t i = 0; i < c->nextras; i++)
		if (strcmp(c->extras[i].key, key) == 0)
			return &c->extras[i];
	return NULL;
}

/* An empty value takes the key away. */
static int
conf_set_extra(
    struct conf *c, const char *key, const char *value, struct err *e)
{
	const struct conf_pair *old = conf_find_extra(c, key);
	size_t at = old != NULL ? (size_t)(old - c->extras) : c->nextras;
	int rc = conf_parse_text(key, value, "\t\r\n", e);

	if (rc != 0)
		return rc;
	if (at == CONF_EXTRAS_MAX && value[0] != '\0')
		return err_set(e, ERR_INVAL,
		    "%s is one too many, want at most %d such keys", key,
		    CONF_EXTRAS_MAX);
	if (old != NULL) {
		free(c->extras[at].key);
		free(c->extras[at].value);
		c->extras[at] = c->extras[--c->nextras];
	}
	if (value[0] != '\0')
		c->extras[c->nextras++] =
		    (struct conf_pair){xstrdup(key), xstrdup(value)};
	return 0;
}

/* ---- names that are no keys, and what may be meant by them */

#define NAME_MAX_BYTES 64
#define NAME_MIN_BYTES 5 /* below, everything is near to something */
#define NEAR 2

static size_t
least(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Levenshtein's distance, a row at a time; both at most NAME_MAX_BYTES. */
static size_t
distance(const char *a, const char *b)
{
	size_t row[NAME_MAX_BYTES + 1] = {0}, n = strlen(b);

	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1] != '\0'; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t above = row[j];

			row[j] = least(above + 1, row[j - 1] + 1,
			    diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[n];
}

/* Of one word, many a variable of somebody else's is the beginning. */
static bool
is_cut_short(const char *name, size_t n, const char *key)
{
	const char *second = strchr(name, '_');

	return second != NULL && second[1] != '\0' &&
	    strncmp(name, key, n) == 0 && key[n] != '\0';
}

const char *
conf_nearest(const char *name, const char *(*key_at)(size_t i), size_t nkeys)
{
	const char *best = NULL, *whole = NULL;
	size_t n = strlen(name), least_so_far = NEAR + 1;

	if (n < NAME_MIN_BYTES || n > NAME_MAX_BYTES)
		return NULL;
	for (size_t i = 0; i < nkeys; i++) {
		const char *key = key_at(i);
		size_t d =
		    strlen(key) > NAME_MAX_BYTES ? n : distance(name, key);

		if (d == 0)
			return NULL;
		if (d < least_so_far) {
			least_so_far = d;
			best = key;
		}
		if (is_cut_short(name, n, key) &&
		    (whole == NULL || strlen(key) < strlen(whole)))
			whole = key;
	}
	return best != NULL ? best : whole;
}

/* A setting that the compatible server has and this one has no use for: its
 * files can be read all the same. */
static bool
conf_is_foreign(const char *name)
{
	static const char *const names[] = {
	    "DEBUG_UI_ENABLED", "POD_NAMESPACE"};
	static const char *const beginnings[] = {"KUBERNETES_", "K8S_"};

	if (conf_find(name) != NULL)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
		if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

/* ---- values by name */

static const char *
key_at(size_t i)
{
	return conf_table[i].key;
}

static const char *
nearest(const char *name)
{
	return conf_nearest(name, key_at, CONF_KEY_COUNT);
}

int
conf_set(struct conf *c, const char *key, const char *value, struct err *e)
{
	const struct conf_row *r = conf_find(key);
	const char *near;
	char shown[64];

	if (r != NULL)
		return conf_set_row(c, r, value, e);
	if (conf_is_extra(key))
		return conf_set_extra(c, key, value, e);
	near = nearest(key);
	return err_set(e, ERR_NOTFOUND, "%s is no configuration key (%s%s)",
	    conf_show(key, shown),
	    near != NULL ? "did you mean " : "see --help",
	    near != NULL ? near : "");
}

/* An empty value for a number, a truth value or a choice: in the environment
 * and in files it counts as not set. */
static bool
conf_is_unset(const char *key, const char *value)
{
	const struct conf_row *r = conf_find(key);

	return r != NULL && value[0] == '\0' &&
	    (r->type == CONF_TYPE_INT || r->type == CONF_TYPE_BOOL ||
		r->type == CONF_TYPE_ENUM);
}

static void
warn_of_slip(const char *key)
{
	const char *near = nearest(key);

	if (near != NULL)
		log_warn("environment: %s is no key of this server; did you "
			 "mean %s?",
		    key, near);
}

int
conf_load_env(struct conf *c, struct err *e)
{
	for (char **v = environ; v != NULL && *v != NULL; v++) {
		AUTO(auto_free) char *key = NULL;
		const char *eq = strchr(*v, '=');
		int rc;

		if (eq == NULL)
			continue;
		key = xstrndup(*v, (size_t)(eq - *v));
		if (conf_find(key) == NULL && !conf_is_extra(key)) {
			warn_of_slip(key);
			continue;
		}
		if (conf_is_unset(key, eq + 1))
			continue;
		rc = conf_set(c, key, eq + 1, e);
		if (rc != 0)
			return err_wrap(e, "environment");
	}
	return 0;
}

/* ---- files */

#define CONF_FILE_MAX (256u << 10)

/* Up to the closing quote, which is taken too. */
static int
conf_read_quoted(const char **p, char quote, char **to, struct err *e)
{
	for (;; (*p)++) {
		if (**p == '\0')
			return err_set(
			    e, ERR_PARSE, "the closing %c is missing", quote);
		if (**p == quote) {
			(*p)++;
			return 0;
		}
		if (**p == '\\' && quote == '"' && (*p)[1] != '\0') {
			(*p)++;
			if (**p == '\n')
				continue;
			if (strchr("\"\\`$", **p) == NULL)
				*(*to)++ = '\\';
		}
		*(*to)++ = **p;
	}
}

/* The value up to the end of its line; it is never longer than the text. */
static int
conf_read_value(const char **p, char *value, struct err *e)
{
	char *to = value, *keep = value; /* blanks up to there are part of it */

	*p += strspn(*p, " \t");
	while (**p != '\0') {
		char c = *(*p)++;

		if (c == '\n')
			break;
		if (c == '\'' || c == '"') {
			if (conf_read_quoted(p, c, &to, e) != 0)
				return ERR_PARSE;
			keep = to;
			continue;
		}
		if (c == '\\') {
			c = **p;
			if (c == '\0')
				break;
			(*p)++;
			if (c == '\n')
				continue;
			*to++ = c;
			keep = to;
			continue;
		}
		*to++ = c;
		if (c != ' ' && c != '\t' && c != '\r')
			keep = to;
	}
	*keep = '\0';
	return 0;
}

static int
conf_read_key(const char **p, char **key, struct err *e)
{
	const char *start = *p;
	size_t n = strcspn(start, "=\n");

	if (start[n] != '=')
		return err_set(e, ERR_PARSE, "want KEY=value or a comment");
	*p = start + n + 1;
	while (n > 0 && conf_is_blank(start[n - 1]))
		n--;
	if (n == 0)
		return err_set(e, ERR_PARSE, "the key before = is missing");
	*key = xstrndup(start, n);
	return 0;
}

static unsigned int
conf_line_of(const char *text, const char *at)
{
	unsigned int line = 1;

	for (; text < at; text++)
		line += *text == '\n';
	return line;
}

int
conf_file_parse(const char *text, size_t len, const char *name,
    int (*cb)(const char *key, const char *value, void *arg, struct err *e),
    void *arg, struct err *e)
{
	AUTO(auto_free) char *copy = xcalloc(1, len + 1);
	AUTO(auto_free) char *value = xmalloc(len + 1);
	const char *p = copy, *start;
	struct err own = {0};
	int rc = 0;

	if (len > 0)
		memcpy(copy, text, len);
	if (strlen(copy) != len)
		return err_set(
		    e, ERR_PARSE, "%s has a NUL byte: no text", name);
	while (rc == 0) {
		AUTO(auto_free) char *key = NULL;

		start = p += strspn(p, " \t\r\n");
		if (*p == '\0')
			break;
		if (*p == '#' || *p == ';') {
			p += strcspn(p, "\n");
			continue;
		}
		rc = conf_read_key(&p, &key, &own);
		if (rc == 0)
			rc = conf_read_value(&p, value, &own);
		if (rc == 0)
			rc = cb(key, value, arg, &own);
		if (rc != 0)
			(void)err_set(e, rc, "%s:%u: %s", name,
			    conf_line_of(copy, start), own.msg);
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

/* ---- the whole */

struct conf *
conf_new(void)
{
	struct conf *c = xcalloc(1, sizeof(*c));
	struct err e;

	/* schema/gen.py has checked the defaults, a test does again. */
	for (size_t i = 0; i < CONF_KEY_COUNT; i++)
		if (conf_set_row(c, &conf_table[i], conf_table[i].def, &e) != 0)
			abort();
	return c;
}

static void
conf_clear_extras(struct conf *c)
{
	while (c->nextras > 0) {
		struct conf_pair *x = &c->extras[--c->nextras];

		free(x->key);
		free(x->value);
	}
}

void
conf_free(struct conf *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < CONF_KEY_COUNT; i++)
		conf_value_clear(&c->values[i]);
	conf_clear_extras(c);
	free(c);
}

static void
conf_value_copy(struct conf_value *to, const struct conf_value *from)
{
	conf_value_clear(to);
	to->text = xstrdup(from->text);
	to->num = from->num;
	if (from->items != NULL)
		to->items = conf_split(from->text);
}

static void
conf_copy_extras(struct conf *to, const struct conf *from)
{
	conf_clear_extras(to);
	for (; to->nextras < from->nextras; to->nextras++) {
		const struct conf_pair *x = &from->extras[to->nextras];

		to->extras[to->nextras].key = xstrdup(x->key);
		to->extras[to->nextras].value = xstrdup(x->value);
	}
}

struct conf *
conf_copy(const struct conf *c)
{
	struct conf *copy = xcalloc(1, sizeof(*copy));

	for (size_t i = 0; i < CONF_KEY_COUNT; i++)
		conf_value_copy(&copy->values[i], &c->values[i]);
	conf_copy_extras(copy, c);
	return copy;
}

int64_t
conf_int(const struct conf *c, enum conf_key k)
{
	return c->values[k].num;
}

bool
conf_bool(const struct conf *c, enum conf_key k)
{
	return c->values[k].num != 0;
}

const char *
conf_str(const struct conf *c, enum conf_key k)
{
	return c->values[k].text;
}

char *const *
conf_list(const struct conf *c, enum conf_key k)
{
	static char *const none[] = {NULL};

	return c->values[k].items != NULL ? c->values[k].items : none;
}

const char *
conf_extra(const struct conf *c, const char *key)
{
	const struct conf_pair *x = conf_find_extra(c, key);

	return x != NULL ? x->value : NULL;
}

void
conf_each(const struct conf *c, enum conf_who who,
    void (*cb)(const char *key, const char *value, void *arg), void *arg)
{
	for (size_t i = 0; i < CONF_KEY_COUNT; i++)
		if ((conf_table[i].who & (unsigned int)who) != 0)
			cb(conf_table[i].key, c->values[i].text, arg);
	if ((who & CONF_FRONT) == 0)
		return;
	for (size_t i = 0; i < c->nextras; i++)
		cb(c->extras[i].key, c->extras[i].value, arg);
}

int
conf_take_reload(struct conf *c, const struct conf *newer, const char **first)
{
	int others = 0;

	*first = NULL;
	for (size_t i = 0; i < CONF_KEY_COUNT; i++) {
		if (strcmp(c->values[i].text, newer->values[i].text) == 0)
			continue;
		if (conf_table[i].reload) {
			conf_value_copy(&c->values[i], &newer->values[i]);
			continue;
		}
		if (others++ == 0)
			*first = conf_table[i].key;
	}
	/* Descriptions are read whenever the list of tools is made. */
	conf_copy_extras(c, newer);
	return others;
}

void
conf_apply_log(const struct conf *c)
{
	int level = log_parse_level(conf_str(c, CONF_LOG_LEVEL));

	if (level >= 0)
		log_set_level((enum log_level)level);
	log_set_format(log_parse_format(conf_str(c, CONF_LOG_FORMAT)));
}

static void
conf_print_values(const struct conf_row *r, FILE *f)
{
	static const char *const words[] = {[CONF_TYPE_BOOL] = "true or false",
	    [CONF_TYPE_LIST] = "items with commas between",
	    [CONF_TYPE_PATH] = "a path",
	    [CONF_TYPE_STR] = "text"};

	if (r->type == CONF_TYPE_INT)
		(void)fprintf(
		    f, "%lld to %lld", (long long)r->min, (long long)r->max);
	else if (r->type == CONF_TYPE_ENUM)
		(void)fprintf(f, "one of %s", r->items);
	else
		(void)fputs(words[r->type], f);
}

void
conf_print_help(FILE *f)
{
	for (size_t i = 0; i < CONF_KEY_COUNT; i++) {
		const struct conf_row *r = &conf_table[i];

		(void)fprintf(
		    f, "  %s=%s\n      %s\n      (", r->key, r->def, r->text);
		conf_print_values(r, f);
		(void)fputs(r->reload ? "; reload)\n" : ")\n", f);
	}
}
