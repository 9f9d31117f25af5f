/* ctl_print.h - answers as a person reads them */
#ifndef CTL_PRINT_H
#define CTL_PRINT_H

#include <jansson.h>

#include "common/base.h"
#include "supervisor/ctl/ctl_options.h"

struct ctl_column {
	const char *head;
	const char *member; /* of each object of the list */
};

void ctl_print_json(const json_t *o);
/* ctl_print_json_line - in one line */
void ctl_print_json_line(const json_t *o);
/* ctl_print_table - a line per object of the list, under heads; null is "-".
 * As wide and as coloured as ctl_screen.h says */
void ctl_print_table(
    const json_t *list, const struct ctl_column *columns, size_t n);
/* An answer, with --json as it came; else as a table of the list that is its
 * member, as an object, or as a line. */
void ctl_print_list(const struct ctl_options *o, const json_t *answer,
    const char *member, const struct ctl_column *columns, size_t n);
void ctl_print_answer(const struct ctl_options *o, const json_t *answer);
void ctl_print_done(const struct ctl_options *o, const json_t *answer,
    const char *fmt, ...) PRINTF(3, 4);
/* Strings for a person: "1.5 MiB", "3 h 12 min". */
json_t *ctl_print_bytes(json_int_t n);
json_t *ctl_print_seconds(json_int_t s);
/* ctl_print_object - "member: value", objects within it indented */
void ctl_print_object(const json_t *o);
/* ctl_print_progress - how far long work has come: a line on standard error,
 * when that is a terminal, a few times a second at most; all 0: not known */
void ctl_print_progress(const char *what, uint64_t done, uint64_t all);
void ctl_print_progress_end(void); /* the line goes */

#endif
