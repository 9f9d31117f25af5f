/*
 * share.h - what a sandbox may have of the host beside others
 *
 * Its part of the processors while all want them is its tenant's weight by the
 * number of its sandboxes.  While other tenants are at work, those sandboxes of
 * a tenant that are busy have together no more than CROWDED_CPU_PERCENT of the
 * processors, so many of them that are its own as far as they last, and print
 * no faster than CROWDED_OUTPUT_MB_S: what the scheduler and the disk take from
 * others for a flood is not given back by shares (decision 64).
 *
 * A sandbox is busy when commands run in it for most of the time: one that
 * answers short calls now and then is left alone.
 */
#ifndef CORE_SHARE_H
#define CORE_SHARE_H

#include "common/base.h"

#define SHARES_PER_TICK 4 /* told, of all sandboxes: an engine's work each */

struct conf;
struct quota_use;

struct share {
	uint32_t cpu_shares;
	uint64_t nano_cpus;      /* at any time; 0: the sandbox's own limit */
	unsigned int first_cpu;  /* of the processors, counted from 0, */
	unsigned int cpus;       /* so many; 0: all */
	uint64_t output_bytes_s; /* 0: as configured */
};

struct share_held {        /* part of a sandbox; share.c's */
	struct share told; /* to its worker */
	bool is_known;     /* told is what it has */
	bool is_busy;
	unsigned int work; /* ticks at work, less those at rest */
};

/* share_begin - it is opened with these shares and no bound; 0: what it has is
 * not known */
void share_begin(struct share_held *h, uint32_t cpu_shares);
/* share_tick - a fifth of a second has passed, with commands at work in it or
 * not.  Counted with its tenant's if it is busy (quota_use_add_busy). */
void share_tick(struct share_held *h, struct quota_use *u, bool is_at_work);
/* share_is_due - *out is what its worker is to be told now, and h takes it as
 * told.  own_nano_cpus: its own limit. */
bool share_is_due(struct share_held *h, const struct quota_use *u,
    const struct conf *conf, uint64_t own_nano_cpus, struct share *out);

#endif
