#include "worker/report.h"

#include "common/ipc.h"

void
report_state(
    struct ipc_chan *c, bool engine_up, const char *detail, bool runtime_ok)
{
	struct ipc_out o;

	if (c == NULL)
		return;
	ipc_out_init(&o, IPC_WORKER_STATE, 0);
	wire_put_u8(&o.b, engine_up);
	wire_put_str(&o.b, detail);
	wire_put_u8(&o.b, runtime_ok);
	ipc_send(c, &o);
}

void
report_ready(struct ipc_chan *c, uint64_t sandbox, const char *container_id,
    const struct report_times *t)
{
	struct ipc_out o;

	if (c == NULL)
		return;
	ipc_out_init(&o, IPC_SANDBOX_READY, sandbox);
	wire_put_str(&o.b, container_id);
	wire_put_u32(&o.b, t->create_us);
	wire_put_u32(&o.b, t->start_us);
	wire_put_u32(&o.b, t->hello_us);
	ipc_send(c, &o);
}

static void
code_and_text(struct ipc_chan *c, enum ipc_type type, uint64_t sandbox,
    int code, const char *text)
{
	struct ipc_out o;

	if (c == NULL)
		return;
	ipc_out_init(&o, type, sandbox);
	wire_put_i32(&o.b, code);
	wire_put_str(&o.b, text);
	ipc_send(c, &o);
}

void
report_failed(struct ipc_chan *c, uint64_t sandbox, int code, const char *text)
{
	code_and_text(c, IPC_SANDBOX_FAILED, sandbox, code, text);
}

void
report_removed(struct ipc_chan *c, uint64_t sandbox, int code, const char *text)
{
	code_and_text(c, IPC_SANDBOX_REMOVED, sandbox, code, text);
}

void
report_lost(struct ipc_chan *c, uint64_t sandbox, const char *why)
{
	struct ipc_out o;

	if (c == NULL)
		return;
	ipc_out_init(&o, IPC_SANDBOX_LOST, sandbox);
	wire_put_str(&o.b, why);
	ipc_send(c, &o);
}

void
report_bytes(struct ipc_chan *c, uint64_t run, uint64_t length)
{
	struct ipc_out o;

	if (c == NULL)
		return;
	ipc_out_init(&o, IPC_RUN_BYTES, run);
	wire_put_u64(&o.b, length);
	ipc_send(c, &o);
}

void
report_record(struct ipc_chan *c, uint64_t run, const void *record, size_t n)
{
	struct ipc_out o;

	if (c == NULL)
		return;
	ipc_out_init(&o, IPC_RUN_RECORD, run);
	wire_put_bytes(&o.b, record, n);
	ipc_send(c, &o);
}

void
report_ended(struct ipc_chan *c, uint64_t run, const struct report_end *end)
{
	struct ipc_out o;

	if (c == NULL)
		return;
	ipc_out_init(&o, IPC_RUN_ENDED, run);
	wire_put_u8(&o.b, (uint8_t)end->reason);
	wire_put_u64(&o.b, end->length);
	wire_put_str(&o.b, end->text);
	wire_put_u32(&o.b, end->files);
	wire_put_str(&o.b, end->artifacts_error);
	ipc_send(c, &o);
}

void
report_file(struct ipc_chan *c, uint64_t run, const struct report_file *f)
{
	struct ipc_out o;

	if (c == NULL)
		return;
	ipc_out_init(&o, IPC_ARTIFACT_OPEN, run);
	wire_put_u32(&o.b, f->file);
	wire_put_u64(&o.b, f->size);
	wire_put_u32(&o.b, f->mode);
	wire_put_i64(&o.b, f->mtime_ns);
	wire_put_bytes(&o.b, f->path, f->path_len);
	ipc_send(c, &o);
}

void
report_file_done(struct ipc_chan *c, uint64_t run, uint32_t file, int code,
    uint64_t size, const uint8_t sha256[32])
{
	struct ipc_out o;

	if (c == NULL)
		return;
	ipc_out_init(&o, IPC_ARTIFACT_DONE, run);
	wire_put_u32(&o.b, file);
	wire_put_i32(&o.b, code);
	wire_put_u64(&o.b, size);
	wire_put_bytes(&o.b, sha256, code == 0 ? 32 : 0);
	ipc_send(c, &o);
}

void
report_swept(struct ipc_chan *c, uint32_t found, uint32_t removed)
{
	struct ipc_out o;

	if (c == NULL)
		return;
	ipc_out_init(&o, IPC_SWEPT, 0);
	wire_put_u32(&o.b, found);
	wire_put_u32(&o.b, removed);
	ipc_send(c, &o);
}
