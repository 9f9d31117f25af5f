/* run_files.h - what a worker says of the files that a run left */
#ifndef CORE_RUN_FILES_H
#define CORE_RUN_FILES_H

#include "common/base.h"
#include "common/msg/msg_gen.h"

struct run;

void run_on_artifact_open(struct run *r, const struct msg_artifact_open *m);
void run_on_artifact_done(struct run *r, const struct msg_artifact_done *m);
void run_on_artifact_failed(struct run *r, const struct msg_artifact_failed *m);

#endif
