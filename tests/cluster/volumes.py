"""Volumes of Pods, which are volumes of the engine.

An emptyDir is made with its Pod and goes with it; a claim is made and goes by
itself.  All may write to either, as with the kubelet and the usual
provisioners: the engine would make it root's.
"""
import asyncio
import io
import tarfile

from . import quantity
from .engine import EngineError

MODE, MODE_OF_GROUP = 0o777, 0o2777
HELD = "/held"  # where a Pod's holder has its volumes
AGAIN_S = 0.1
MEMORY_BYTES = 1 << 30  # of a tmpfs that says no size


def name_of(run, owner_uid, name=""):
    return f"{run.prefix}-{owner_uid}{'-' if name else ''}{name}"


def claim_of(volume):
    """The name of the claim, or None."""
    return (volume.get("persistentVolumeClaim") or {}).get("claimName")


def is_memory(volume):
    return (volume.get("emptyDir") or {}).get("medium") == "Memory"


def engine_name(run, pod, volume, claims):
    """None for a kind of volume that is not served."""
    if "emptyDir" in volume:
        return name_of(run, pod["metadata"]["uid"], volume["name"])
    if "persistentVolumeClaim" in volume:
        claim = claims[volume["persistentVolumeClaim"]["claimName"]]
        return name_of(run, claim["metadata"]["uid"])
    return None


def options(pod, volume):
    """Of the engine's driver."""
    if not is_memory(volume):
        return {}
    size = volume["emptyDir"].get("sizeLimit")
    size = quantity.whole(size) if size else MEMORY_BYTES
    group = fs_group(pod)
    words = f"size={size},mode={MODE if group is None else MODE_OF_GROUP:o}"
    if group is not None:
        words += f",gid={group}"
    return {"type": "tmpfs", "device": "tmpfs", "o": words}


def fs_group(pod):
    return (pod["spec"].get("securityContext") or {}).get("fsGroup")


async def make(engine, run, name, driver_options=None):
    await engine.ask("POST", "/volumes/create", {
        "Name": name, "Labels": run.labels,
        "DriverOpts": driver_options or {}})


def mount(name, volume_mount):
    return {"Type": "volume", "Source": name,
            "Target": volume_mount["mountPath"],
            "ReadOnly": volume_mount.get("readOnly", False),
            "VolumeOptions": {"NoCopy": True}}


async def open_to_all(engine, container, names, group):
    """Those of these volumes, each mounted at HELD/NAME of a container."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            info.type = tarfile.DIRTYPE
            info.mode = MODE if group is None else MODE_OF_GROUP
            info.gid = group or 0
            tar.addfile(info)
    await engine.ask("PUT", f"/containers/{container}/archive", out.getvalue(),
                     {"Content-Type": "application/x-tar"}, path=HELD)


async def remove(engine, name):
    try:
        await engine.ask("DELETE", f"/volumes/{name}", force=1)
    except EngineError as e:
        if e.status != 404:
            raise


async def remove_unused(engine, name):
    """When its last container is gone, which may be after its Pod."""
    while True:
        try:
            return await remove(engine, name)
        except EngineError as e:
            if e.status != 409:
                raise
        await asyncio.sleep(AGAIN_S)
