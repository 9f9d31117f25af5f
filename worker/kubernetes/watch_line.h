/* watch_line.h - a line of a watch: what happened to one object */
#ifndef WORKER_KUBERNETES_WATCH_LINE_H
#define WORKER_KUBERNETES_WATCH_LINE_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"

#define WATCH_LINE_MAX 4194304 /* an object has at most 1.5 MB in etcd */
#define WATCH_WHY_MAX 160

enum watch_line_kind {
	WATCH_THERE,    /* it came, or changed */
	WATCH_GONE,     /* it went; the object is what it was */
	WATCH_BOOKMARK, /* nothing happened up to that version */
	WATCH_EXPIRED,  /* the version that was watched from is forgotten */
	WATCH_ERROR,    /* the watch ends; why says more */
	WATCH_OTHER     /* a kind of later servers */
};

struct watch_line {
	enum watch_line_kind kind;
	json_t *all;          /* owns what follows */
	const json_t *object; /* NULL: none */
	const char *version;  /* of the object; "": none */
	char why[WATCH_WHY_MAX];
};

/* watch_line_read - ERR_PARSE: it is none; else watch_line_clear */
int watch_line_read(const char *line, size_t n, struct watch_line *out,
    struct err *e) MUSTCHECK;
void watch_line_clear(struct watch_line *l);

#endif
