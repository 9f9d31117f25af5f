/*
 * tree.h - finding and killing all descendants of the calling process
 *
 * The rule: each process gets SIGSTOP the moment it is found, before its own
 * children are listed, until two looks in a row find the same set; a stopped
 * process cannot fork, so the set is then the whole tree.  Then all get
 * SIGKILL.  The caller is their subreaper, so nothing leaves the tree by a
 * double fork or setsid.  Children are read from
 * /proc/<pid>/task/<tid>/children, or where the kernel has none, by the
 * parent in /proc/<pid>/stat.
 */
#ifndef AGENT_TREE_H
#define AGENT_TREE_H

#include <sys/types.h>

#include "common/base.h"

/* More processes than any sandbox is allowed. */
#define TREE_MAX 65536

struct tree_set {
	size_t count;
	uint64_t mark; /* of the pids, whatever their order */
};

/* tree_skip - true for a direct child of root that is none of ours */
typedef bool (*tree_skip)(pid_t pid, void *arg);

/* tree_signal - sends sig (0: none) to all descendants of root, once each,
 * parents first; says which they were.  skip may be NULL. */
struct tree_set tree_signal(pid_t root, int sig, tree_skip skip, void *arg);
/* tree_list - all descendants of root, parents first; at most max of them are
 * put into out.  How many there are. */
size_t tree_list(pid_t root, pid_t *out, size_t max);
/* tree_kill - the rule above, until deadline_us of clock_mono_us at most.
 * Returns how many were found by the last look; does not wait for them. */
size_t tree_kill(pid_t root, tree_skip skip, void *arg, uint64_t deadline_us);
/* tree_parse_children - pids in the text of a children file; at most max */
size_t tree_parse_children(const char *list, size_t n, pid_t *out, size_t max);
/* tree_parse_ppid - the parent in the text of a stat file, whatever the
 * program's name in it looks like; -1 when it is none */
pid_t tree_parse_ppid(const char *stat_text);
/* tree_parent - of pid; 0: it has none in this PID namespace, -1: it is gone */
pid_t tree_parent(pid_t pid);

#endif
