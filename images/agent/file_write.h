/*
 * file_write.h - the channel kind "write": a file's new contents, whole
 *
 * They are collected in a file of its own beside the target, in a directory
 * that was reached without following a link, and take the target's name in
 * one step when all has come: nobody sees half of it, a link of that name is
 * replaced and not followed, and a write that ends otherwise leaves nothing.
 */
#ifndef AGENT_FILE_WRITE_H
#define AGENT_FILE_WRITE_H

#include "images/agent/files.h"

int file_write_on_open(
    struct files *f, const struct frame_open_write *m, struct err *e) MUSTCHECK;

#endif
