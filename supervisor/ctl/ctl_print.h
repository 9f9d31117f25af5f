/* ctl_print.h - answers as a person reads them */
#ifndef CTL_PRINT_H
#define CTL_PRINT_H

#include <jansson.h>

#include "common/base.h"

struct ctl_column {
	const char *head;
	const char *member; /* of each object of the list */
};

void ctl_print_json(const json_t *o);
/* ctl_print_table - a line per object of the list, under heads; null is "-" */
void ctl_print_table(
    const json_t *list, const struct ctl_column *columns, size_t n);
/* ctl_print_object - "member: value", objects within it indented */
void ctl_print_object(const json_t *o);

#endif
