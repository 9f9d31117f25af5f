/* pod_name.h - what a box's Pod is called */
#ifndef WORKER_KUBERNETES_POD_NAME_H
#define WORKER_KUBERNETES_POD_NAME_H

#include "common/base.h"

#define POD_NAME_MAX                                                           \
	63 /* a label of RFC 1123: it is the Pod's host name, too */

/* pod_name - a box's name that is such a label stays as it is, and so does a
 * Pod's name.  Of another one, what cannot stand is "-", and where it was
 * changed or cut it ends in eight digits of its digest: two names do not
 * become one. */
void pod_name(const char *box_name, char out[POD_NAME_MAX + 1]);
/* pod_name_is_label - 1 to POD_NAME_MAX of a-z, 0-9 and "-", which does not
 * stand at an end */
bool pod_name_is_label(const char *s);

#endif
