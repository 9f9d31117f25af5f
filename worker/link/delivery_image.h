/*
 * delivery_image.h - a delivery for an engine that shares no directory with us
 *
 * The agent's program is in the box's image: the backend makes one for each
 * image that sandboxes are made of (backend_wishes.prepared), and the boxes
 * share its one copy.
 */
#ifndef WORKER_LINK_DELIVERY_IMAGE_H
#define WORKER_LINK_DELIVERY_IMAGE_H

#include "worker/link/delivery.h"

/* delivery_image_new - the program is the one that the backend was opened with
 * (backend_start.agent) */
struct agent_delivery *delivery_image_new(void);

#endif
