/* chronicle.h - a line of the log for each run that ended: a member of the
 * core's bus */
#ifndef CORE_CHRONICLE_H
#define CORE_CHRONICLE_H

#include "supervisor/core/bus.h"

struct conf;

struct chronicle {
	const struct conf *conf; /* LOG_RUNS; kept */
	struct bus_member member;
};

void chronicle_init(
    struct chronicle *c, struct bus *bus, const struct conf *conf);
void chronicle_clear(struct chronicle *c, struct bus *bus);

#endif
