#include "supervisor/core/run_tell.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/conf.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/msg/msg_gen.h"
#include "supervisor/core/secrets.h"

/* A descriptor; values are nowhere else when it returns. */
static int
filled_spec(struct secrets *secrets, const struct store_run *row,
    const struct span *spec)
{
	struct buf b;
	struct err e;
	int fd = ERR_INVAL;

	if (secrets_fill(
		secrets, (struct tenant_id){row->tenant}, spec, &b, &e) == 0)
		fd = fd_memfd_sealed("runspec", buf_data(&b), buf_len(&b), &e);
	if (fd < 0)
		log_error("run %llu: its spec: %s", (unsigned long long)row->id,
		    e.msg);
	if (buf_len(&b) > 0)
		explicit_bzero(buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return fd;
}

int
run_tell_start(struct ipc_chan *chan, const struct store_run *row,
    const struct store_log *log, const struct conf *conf,
    struct secrets *secrets)
{
	const struct span spec = {row->spec, row->spec_len};
	struct msg_run_start m = {.id = row->id,
	    .tenant = row->tenant,
	    .sandbox = row->sandbox,
	    .uuid = row->uuid,
	    .spool_limit = (uint64_t)conf_int(conf, CONF_RUN_OUTPUT_MAX_BYTES),
	    .request = row->request_id,
	    .spool = fcntl(store_log_fd(log), F_DUPFD_CLOEXEC, 3),
	    .spec_file = -1};

	if (m.spool < 0)
		return ERR_SYS;
	if (secrets != NULL && secrets_are_in(&spec))
		m.spec_file = filled_spec(secrets, row, &spec);
	else if (spec.n > MSG_RUN_START_SPEC_MAX)
		m.spec_file = fd_memfd_sealed("runspec", spec.p, spec.n, NULL);
	else
		m.spec = spec;
	if (m.spec.n == 0 && m.spec_file < 0) {
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
