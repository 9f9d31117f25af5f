/*
 * transcript.h - a result as text for a model: what a terminal would show
 *
 *	run 3f0c... completed
 *	exit code 0
 *	hi
 *	artifacts below /artifacts/demo/3f0c...: plot.png (20114 bytes)
 *
 * One line says how it stands; then comes each command with its end and its
 * output as a terminal shows it (screen.h); then the files it left.  Long
 * output is a head and a tail with the exact number of bytes between them.
 * Nothing is said twice, and there is no JSON: structured content is for
 * programs.
 */
#ifndef TOOLS_TRANSCRIPT_H
#define TOOLS_TRANSCRIPT_H

#include <jansson.h>

#include "common/buf.h"

/*
 * transcript_write - commands, output and artifacts of a tool's result, below
 * the line that sums it up; nothing for a result that has none
 *
 *	room	bytes that all output together may take, about
 */
void transcript_write(struct buf *b, const json_t *result, size_t room);

#endif
