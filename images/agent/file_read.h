/*
 * file_read.h - the channel kind "read": a regular file's bytes
 *
 * From one offset to another, or to where the file ends when it is reached.
 */
#ifndef AGENT_FILE_READ_H
#define AGENT_FILE_READ_H

#include "images/agent/files.h"

#define FILE_READ_SLICE 131072u

int file_read_on_open(
    struct files *f, const struct frame_open_read *m, struct err *e) MUSTCHECK;

#endif
