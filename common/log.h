/*
 * log.h - one line per event on stderr
 *
 * Text form:  2026-11-20T19:00:00.123Z info worker/0[pid] message
 * logfmt:     ts=.. level=info role=worker/0 pid=7 msg="a message" and fields
 * JSON form:  {"ts":..,"level":..,"role":..,"pid":..,"msg":..} and the fields
 * of log_event
 *
 * Control characters and non-ASCII bytes of the message are escaped, so text
 * from outside cannot forge a line.  Lines longer than LOG_LINE_MAX are cut.
 * errno is preserved.  Never pass secrets (tokens, environment values).
 */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include "common/base.h"

#define LOG_LINE_MAX 2048

enum log_level {
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG
};
enum log_format {
	LOG_FORMAT_TEXT,
	LOG_FORMAT_LOGFMT,
	LOG_FORMAT_JSON
};

/* log_init - role such as "front" or "worker/0"; kept by pointer */
void log_init(const char *role);
void log_set_level(enum log_level level);
void log_set_format(enum log_format format);
/* log_parse_format - "text" "logfmt" "json"; text when unknown */
enum log_format log_parse_format(const char *name);
enum log_level log_get_level(void);
/* log_parse_level - "error" "warn" "info" "debug"; -1 when unknown */
int log_parse_level(const char *name);

void log_error(const char *fmt, ...) PRINTF(1, 2);
void log_warn(const char *fmt, ...) PRINTF(1, 2);
void log_info(const char *fmt, ...) PRINTF(1, 2);
void log_debug(const char *fmt, ...) PRINTF(1, 2);

/* What a line is about, for programs that read it. */
struct log_field {
	const char *name;  /* of ours: letters, digits, '_' */
	const char *value; /* NULL: left out */
};
/* log_event - a line with fields: in text behind the message as name=value, in
 * JSON as members of their own */
void log_event(enum log_level level, const char *message,
    const struct log_field *fields, size_t n);

/* fatal - log as error and exit with status (70: bug, 71: memory, ...) */
NORETURN void fatal(int status, const char *fmt, ...) PRINTF(2, 3);

/* For lines that someone outside can cause: at most 10 in 10 s per limit,
 * then silence and one line with the count of those left out. */
struct log_limit {
	uint64_t since_ms;
	unsigned int count;
};
/* log_may - for log_event: counts a line, and false: it is one too many */
bool log_may(struct log_limit *l);
void log_warn_limited(struct log_limit *l, const char *fmt, ...) PRINTF(2, 3);

#endif
