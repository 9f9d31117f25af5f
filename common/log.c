#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "common/clock.h"

#define LOG_LIMIT_LINES 10
#define LOG_LIMIT_MS 10000
#define LOG_TAIL_MAX 8 /* room kept for what closes a line */

static const char *const log_level_names[] = {
    [LOG_ERROR] = "error",
    [LOG_WARN] = "warn",
    [LOG_INFO] = "info",
    [LOG_DEBUG] = "debug",
};

/* Read by the store's threads while the loop may change them. */
static atomic_int log_level = LOG_INFO;
static atomic_int log_format = LOG_FORMAT_TEXT;
static const char *log_role = "-";

void
log_init(const char *role)
{
	log_role = role;
}

void
log_set_level(enum log_level level)
{
	atomic_store(&log_level, (int)level);
}

void
log_set_format(enum log_format format)
{
	atomic_store(&log_format, (int)format);
}

enum log_level
log_get_level(void)
{
	return (enum log_level)atomic_load(&log_level);
}

int
log_parse_level(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(log_level_names); i++)
		if (strcmp(name, log_level_names[i]) == 0)
			return (int)i;
	return -1;
}

enum log_format
log_parse_format(const char *name)
{
	return strcmp(name, "json") == 0 ? LOG_FORMAT_JSON :
	    strcmp(name, "logfmt") == 0  ? LOG_FORMAT_LOGFMT :
					   LOG_FORMAT_TEXT;
}

/* A line being built; what does not fit is left out as a whole character. */
struct log_line {
	char text[LOG_LINE_MAX];
	size_t len;
};

static bool
log_line_put(struct log_line *l, const char *s, size_t n)
{
	if (n > sizeof(l->text) - LOG_TAIL_MAX - l->len)
		return false;
	memcpy(l->text + l->len, s, n);
	l->len += n;
	return true;
}

/* By LOG_FORMAT_...: what must be escaped beside control characters. */
static const char *const log_quotes[] = {"", "\"\\", "\"\\"};

/*
 * Printable ASCII as it is, any other byte as \xHH.  Where quotes are escaped
 * the backslash of \xHH is, too, so a reader of each form sees the same text.
 */
static bool
log_line_put_byte(struct log_line *l, unsigned char c, enum log_format form)
{
	static const char hex[] = "0123456789abcdef";
	char t[6];
	size_t n = 0;

	if (c >= 0x20 && c < 0x7f) {
		if (strchr(log_quotes[form], c) != NULL)
			t[n++] = '\\';
		t[n++] = (char)c;
		return log_line_put(l, t, n);
	}
	if (form != LOG_FORMAT_TEXT)
		t[n++] = '\\';
	t[n++] = '\\';
	t[n++] = 'x';
	t[n++] = hex[c >> 4];
	t[n++] = hex[c & 15];
	return log_line_put(l, t, n);
}

static void
log_line_put_escaped(struct log_line *l, const char *s, enum log_format form)
{
	for (; *s != '\0'; s++) {
		if (!log_line_put_byte(l, (unsigned char)*s, form)) {
			memcpy(l->text + l->len, "...", 3); /* of the tail */
			l->len += 3;
			return;
		}
	}
}

/* In quotes, but where logfmt needs none. */
static void
log_line_put_value(struct log_line *l, const char *s, enum log_format form)
{
	static const char plain[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    "._-/:+@%,;~*#!?&()[]<>|^$";
	bool quoted = form == LOG_FORMAT_JSON ||
	    (form == LOG_FORMAT_LOGFMT &&
		(*s == '\0' || s[strspn(s, plain)] != '\0'));

	if (quoted)
		(void)log_line_put(l, "\"", 1);
	log_line_put_escaped(l, s, form);
	if (quoted)
		l->text[l->len++] = '"';
}

static void
log_write(const char *p, size_t n)
{
	while (n > 0) {
		ssize_t w = write(STDERR_FILENO, p, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			return; /* nowhere to complain */
		p += w;
		n -= (size_t)w;
	}
}

static void
log_line_begin(struct log_line *l, enum log_level level, const char *msg,
    enum log_format form)
{
	char when[CLOCK_TEXT_MAX], head[256];
	const char *name = log_level_names[level];
	long pid = getpid();
	int n;

	clock_format(clock_wall_ms(), when);
	l->len = 0;
	if (form == LOG_FORMAT_JSON)
		n = snprintf(head, sizeof(head),
		    "{\"ts\":\"%s\",\"level\":\"%s\",\"role\":\"%.64s\","
		    "\"pid\":%ld,\"msg\":",
		    when, name, log_role, pid);
	else
		n = snprintf(head, sizeof(head),
		    form == LOG_FORMAT_LOGFMT ?
			"ts=%s level=%s role=%.64s pid=%ld msg=" :
			"%s %s %.64s[%ld] ",
		    when, name, log_role, pid);
	if (n > 0 && (size_t)n < sizeof(head))
		(void)log_line_put(l, head, (size_t)n);
	log_line_put_value(l, msg, form);
}

/* One write per line: lines of several processes do not mix. */
static void
log_line_end(struct log_line *l, enum log_format form)
{
	if (form == LOG_FORMAT_JSON)
		l->text[l->len++] = '}';
	l->text[l->len++] = '\n';
	log_write(l->text, l->len);
}

/* A field that the line has no room for is left out whole. */
static void
log_line_put_field(
    struct log_line *l, const struct log_field *f, enum log_format form)
{
	char head[80];
	int n = snprintf(head, sizeof(head),
	    form == LOG_FORMAT_JSON ? ",\"%.32s\":" : " %.32s=", f->name);
	size_t worst = strlen(f->value) * 5 + 2;

	if (n < 0 ||
	    l->len + (size_t)n + worst > sizeof(l->text) - LOG_TAIL_MAX)
		return;
	(void)log_line_put(l, head, (size_t)n);
	log_line_put_value(l, f->value, form);
}

void
log_event(enum log_level level, const char *message,
    const struct log_field *fields, size_t n)
{
	enum log_format form = (enum log_format)atomic_load(&log_format);
	int saved = errno;
	struct log_line l;

	if ((int)level > atomic_load(&log_level))
		return;
	log_line_begin(&l, level, message, form);
	for (size_t i = 0; i < n; i++)
		if (fields[i].value != NULL)
			log_line_put_field(&l, &fields[i], form);
	log_line_end(&l, form);
	errno = saved;
}

PRINTF(2, 0)
static void
log_put(enum log_level level, const char *fmt, va_list ap)
{
	int saved = errno;
	char msg[LOG_LINE_MAX];

	if ((int)level > atomic_load(&log_level))
		return;
	if (vsnprintf(msg, sizeof(msg), fmt, ap) < 0)
		msg[0] = '\0';
	log_event(level, msg, NULL, 0);
	errno = saved;
}

void
log_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_put(LOG_ERROR, fmt, ap);
	va_end(ap);
}

void
log_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_put(LOG_WARN, fmt, ap);
	va_end(ap);
}

void
log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_put(LOG_INFO, fmt, ap);
	va_end(ap);
}

void
log_debug(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_put(LOG_DEBUG, fmt, ap);
	va_end(ap);
}

/* _exit: a forked child or a thread must not run the program's atexit. */
void
fatal(int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_put(LOG_ERROR, fmt, ap);
	va_end(ap);
	_exit(status);
}

bool
log_may(struct log_limit *l)
{
	uint64_t now = clock_mono_ms();

	if (now - l->since_ms >= LOG_LIMIT_MS) {
		if (l->count > LOG_LIMIT_LINES)
			log_warn("%u lines like the next one were left out",
			    l->count - LOG_LIMIT_LINES);
		l->since_ms = now;
		l->count = 0;
	}
	if (l->count < UINT32_MAX)
		l->count++;
	return l->count <= LOG_LIMIT_LINES;
}

void
log_warn_limited(struct log_limit *l, const char *fmt, ...)
{
	va_list ap;

	if (!log_may(l))
		return;
	va_start(ap, fmt);
	log_put(LOG_WARN, fmt, ap);
	va_end(ap);
}
