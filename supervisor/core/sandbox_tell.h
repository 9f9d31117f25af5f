/* sandbox_tell.h - what the worker of a sandbox is told; chan NULL: it is away,
 * nothing is said */
#ifndef CORE_SANDBOX_TELL_H
#define CORE_SANDBOX_TELL_H

#include "common/base.h"
#include "common/msg/msg_gen.h"
#include "common/principal.h"
#include "supervisor/core/share.h"
#include "supervisor/core/tenants.h"
#include "supervisor/store/store.h"

struct ipc_chan;

/* n NULL: of no rules. */

void sandbox_tell_open(struct ipc_chan *chan, const struct store_sandbox *row,
    const struct principal *owner, const struct tenant *n, uint32_t cpu_shares,
    enum msg_open_mode mode);
void sandbox_tell_settled(
    struct ipc_chan *chan, uint64_t sandbox, const struct principal *owner);
void sandbox_tell_ttl(struct ipc_chan *chan, uint64_t sandbox,
    const struct principal *owner, uint32_t ttl_s);
void sandbox_tell_shares(struct ipc_chan *chan, const struct store_sandbox *row,
    const struct share *share);
void sandbox_tell_remove(struct ipc_chan *chan, const struct store_sandbox *row,
    const struct principal *owner);

#endif
