/* run_tell.h - what the worker of a run is told */
#ifndef CORE_RUN_TELL_H
#define CORE_RUN_TELL_H

#include "common/base.h"
#include "supervisor/store/store.h"

struct conf;
struct ipc_chan;
struct secrets;

/* run_tell_start - RUN_START, of a row that has its spec; what it refers to
 * is filled in on the way.  ERR_SYS: out of descriptors */
int run_tell_start(struct ipc_chan *chan, const struct store_run *row,
    const struct store_log *log, const struct conf *conf,
    struct secrets *secrets) MUSTCHECK;
/* chan NULL: the worker is away, nothing is said. */
void run_tell_cancel(struct ipc_chan *chan, const struct store_run *row,
    enum runlog_reason reason);
void run_tell_forget(struct ipc_chan *chan, const struct store_run *row);

#endif
