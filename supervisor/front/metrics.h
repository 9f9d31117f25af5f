/*
 * metrics.h - what others count goes into the cells of common/metric.h
 */
#ifndef FRONT_METRICS_H
#define FRONT_METRICS_H

#include "supervisor/front/front.h"

/* metrics_begin - the front was started */
void metrics_begin(void);
/* metrics_note - with each tick: so much at most is lost by a front that is
 * killed */
void metrics_note(struct front *f);
/* metrics_on_request - one was answered; route: routes_number */
void metrics_on_request(unsigned int route, uint64_t us);

#endif
