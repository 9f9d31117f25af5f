#include "common/err.h"

#undef err_set /* here are the functions themselves */
#undef err_errno

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* Formatted aside first: callers may pass e->msg as an argument. */
int
err_set(struct err *e, int code, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	va_list ap;

	if (e == NULL)
		return code;
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	memcpy(e->msg, text, strlen(text) + 1);
	e->code = code;
	e->refusal = (struct err_refusal){0};
	return code;
}

int
err_errno(struct err *e, const char *fmt, ...)
{
	const char *why = strerror(errno);
	char text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	return err_set(e, ERR_SYS, "%s: %s", text, why);
}

int
err_wrap(struct err *e, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	size_t head, tail;
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text) - 2, fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	head = strlen(text);
	text[head++] = ':';
	text[head++] = ' ';
	tail = strlen(e->msg);
	if (tail > sizeof(text) - 1 - head)
		tail = sizeof(text) - 1 - head;
	memcpy(text + head, e->msg, tail);
	memcpy(e->msg, text, head + tail);
	e->msg[head + tail] = '\0';
	return e->code;
}

static const struct {
	int code;
	const char *name;
} err_names[] = {
    {0, "ok"},
    {ERR_SYS, "system"},
    {ERR_INVAL, "invalid"},
    {ERR_PROTO, "protocol"},
    {ERR_PARSE, "parse"},
    {ERR_NOTFOUND, "not_found"},
    {ERR_DB, "database"},
    {ERR_LIMIT, "limit"},
    {ERR_BACKEND, "backend"},
    {ERR_POLICY, "policy"},
    {ERR_CONFLICT, "conflict"},
    {ERR_WRONG_STATE, "state"},
    {ERR_LOST, "lost"},
    {ERR_DAMAGED, "damaged"},
    {ERR_DISK_FULL, "disk_full"},
    {ERR_GONE, "gone"},
    {ERR_QUOTA, "quota_exceeded"},
    {ERR_NO_SECRET, "secret_not_found"},
    {ERR_NO_SECRET_KEY, "secret_unavailable"},
    {ERR_OUTPUT_LOST, "output_lost"},
};

const char *
err_name(int code)
{
	for (size_t i = 0; i < ARRAY_LEN(err_names); i++)
		if (err_names[i].code == code)
			return err_names[i].name;
	return "unknown";
}
