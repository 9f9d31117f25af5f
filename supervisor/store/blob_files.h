/* blob_files.h - what struct store_log knows of artifacts on their way in. */
#ifndef STORE_BLOB_FILES_H
#define STORE_BLOB_FILES_H

#include "supervisor/store/log_files.h"

/* blob_files_settle - the run's end is on disk: rows count its blobs now */
void blob_files_settle(struct store_log *l, const struct store_run *row);
/* blob_files_drop - at the last close: files that were begun go, and blobs
 * that no row counts */
void blob_files_drop(struct store_log *l);

#endif
