#include "supervisor/core/sandbox_tell.h"

void
sandbox_tell_open(struct ipc_chan *chan, const struct store_sandbox *row,
    const struct principal *owner, const struct tenant *n, uint32_t cpu_shares,
    enum msg_open_mode mode)
{
	msg_send_sandbox_open(chan,
	    &(struct msg_sandbox_open){
		.id = row->id,
		.tenant = owner->tenant.n,
		.mode = mode,
		.uuid = row->uuid,
		.tenant_name = owner->tenant_name,
		.identifier = row->identifier,
		.generation = row->generation,
		.name = row->name,
		.image = row->image,
		.container_id = row->container_id,
		.memory_bytes = row->memory_bytes,
		.nano_cpus = row->nano_cpus,
		.pids = row->pids,
		.cpu_shares = cpu_shares,
		.runtime = n == NULL ? "" : n->row.runtime,
		.read_only_root = n != NULL && n->row.read_only_root,
		.ttl_s = row->ttl_s,
	    });
}

void
sandbox_tell_settled(
    struct ipc_chan *chan, uint64_t sandbox, const struct principal *owner)
{
	msg_send_sandbox_settled(chan,
	    &(struct msg_sandbox_settled){
		.id = sandbox, .tenant = owner->tenant.n});
}

void
sandbox_tell_ttl(struct ipc_chan *chan, uint64_t sandbox,
    const struct principal *owner, uint32_t ttl_s)
{
	msg_send_sandbox_ttl(chan,
	    &(struct msg_sandbox_ttl){
		.id = sandbox, .tenant = owner->tenant.n, .ttl_s = ttl_s});
}

void
sandbox_tell_shares(struct ipc_chan *chan, const struct store_sandbox *row,
    const struct share *share)
{
	msg_send_sandbox_shares(chan,
	    &(struct msg_sandbox_shares){.id = row->id,
		.tenant = row->tenant,
		.cpu_shares = share->cpu_shares,
		.nano_cpus = share->nano_cpus,
		.first_cpu = share->first_cpu,
		.cpus = share->cpus,
		.output_bytes_s = share->output_bytes_s});
}

void
sandbox_tell_remove(struct ipc_chan *chan, const struct store_sandbox *row,
    const struct principal *owner)
{
	msg_send_sandbox_remove(chan,
	    &(struct msg_sandbox_remove){.id = row->id,
		.uuid = row->uuid,
		.tenant_name = owner->tenant_name,
		.name = row->name});
}
