/*
 * walk.h - the channel kind "walk": the entries below a directory
 *
 * Directories are visited one after another, each opened anew below the root
 * without following links.  Stream 0 is ENTRY frames, under credit by number.
 * The walk ends with E2BIG, after what it could say, at WALK_SCAN_MAX entries
 * looked at, or when the directories still to visit fill WALK_PENDING_BYTES.
 * What cannot be read, or vanishes, is left out.
 */
#ifndef AGENT_WALK_H
#define AGENT_WALK_H

#include "images/agent/files.h"

#define WALK_SCAN_MAX 200000u
#define WALK_PENDING_BYTES (1u << 20)
#define WALK_SLICE 64

int walk_on_open(
    struct files *f, const struct frame_open_walk *m, struct err *e) MUSTCHECK;

#endif
