/*
 * walk.h - one WALK: the entries below a directory, a slice at a time
 *
 * Directories are visited one after another, each opened anew below the root
 * without following links; "size" in the answer's FILE_END is the number of
 * entries sent.  The walk ends with E2BIG, after what it could say, at
 * max_entries, at WALK_SCAN_MAX entries looked at, or when the directories
 * still to visit fill WALK_PENDING_BYTES.  What cannot be read, or vanishes,
 * is left out.
 *
 * After its end it is kept to know what WALK_TAKEN speaks of.
 */
#ifndef AGENT_WALK_H
#define AGENT_WALK_H

#include <dirent.h>

#include "common/base.h"
#include "images/agent/taken.h"
#include "images/agent/uplink.h"

#define WALK_SCAN_MAX 200000u
#define WALK_PENDING_BYTES (1u << 20)
#define WALK_SLICE 64

struct walk_file {
	char *path;
	struct taken_mark mark;
};

struct walk {
	char *root;
	bool changed_only;
	uint32_t max;
	int root_fd;
	DIR *dir;
	char *dir_path; /* of dir below root, "" for root itself */
	char **pending;
	size_t npending;
	size_t pending_cap;
	size_t pending_bytes;
	uint32_t scanned;
	uint32_t sent;
	struct walk_file *files; /* regular files that were sent */
	size_t nfiles;
	size_t files_cap;
	size_t hint; /* where the next WALK_TAKEN will match */
};

/* walk_new - takes root; NULL with errno when it cannot be opened */
struct walk *walk_new(char *root, bool changed_only, uint32_t max);
void walk_free(struct walk *w);
/* walk_slice - sends up to WALK_SLICE entries; -1 while there is more, else
 * the errno to end with (0: complete) */
int walk_slice(struct walk *w, uint32_t request, struct uplink *u,
    const struct taken *taken);
/* walk_close - no more entries; keeps what walk_find needs */
void walk_close(struct walk *w);
const struct walk_file *walk_find(struct walk *w, const char *path);

#endif
