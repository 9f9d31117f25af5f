/*
 * oom.h - how many processes of this container the OOM killer has killed
 *
 * From memory.events (cgroup v2) or memory.oom_control (v1), whichever the
 * container has.
 */
#ifndef AGENT_OOM_H
#define AGENT_OOM_H

#include "common/base.h"

void oom_init(void);
/* oom_count - kills so far; 0 when there is no such file */
uint64_t oom_count(void);
/* oom_since - how many more than before, which was a count */
uint32_t oom_since(uint64_t before);
/* oom_take_news - how many kills oom_count has seen since the last call of
 * this; reads no file */
uint64_t oom_take_news(void);
/* oom_parse - the number behind "oom_kill " at a line's begin; 0 if none */
uint64_t oom_parse(const char *text);

#endif
