#include "supervisor/core/run_tell.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/msg/msg_gen.h"

int
run_tell_start(struct ipc_chan *chan, const struct store_run *row,
    const struct store_log *log, uint64_t spool_limit)
{
	struct msg_run_start m = {.id = row->id,
	    .tenant = row->tenant,
	    .sandbox = row->sandbox,
	    .uuid = row->uuid,
	    .spool_limit = spool_limit,
	    .spool = fcntl(store_log_fd(log), F_DUPFD_CLOEXEC, 3),
	    .spec_file = -1};
	bool is_large = row->spec_len > MSG_RUN_START_SPEC_MAX;

	if (m.spool < 0)
		return ERR_SYS;
	if (is_large)
		m.spec_file =
		    fd_memfd_sealed("runspec", row->spec, row->spec_len, NULL);
	else
		m.spec = (struct span){row->spec, row->spec_len};
	if (is_large && m.spec_file < 0) {
		(void)close(m.spool);
		return ERR_SYS;
	}
	msg_send_run_start(chan, &m);
	return 0;
}

void
run_tell_cancel(struct ipc_chan *chan, const struct store_run *row,
    enum runlog_reason reason)
{
	if (chan != NULL)
		msg_send_run_cancel(chan,
		    &(struct msg_run_cancel){.id = row->id,
			.tenant = row->tenant,
			.reason = (uint8_t)reason});
}

void
run_tell_forget(struct ipc_chan *chan, const struct store_run *row)
{
	if (chan == NULL)
		return;
	/* The run's answer goes first, and the next one's start. */
	ipc_chan_late(chan, true);
	msg_send_run_forget(chan,
	    &(struct msg_run_forget){.id = row->id, .tenant = row->tenant});
	ipc_chan_late(chan, false);
}
