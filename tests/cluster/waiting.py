"""Waiting for the first of several things, and for the end of a process."""
import asyncio
import os


async def first_of(*awaitables, timeout=None):
    """Which of them have come to an end: a list of booleans.  The others are
    given up; what a done one raised is raised."""
    tasks = [asyncio.ensure_future(a) for a in awaitables]
    try:
        await asyncio.wait(tasks, timeout=timeout,
                           return_when=asyncio.FIRST_COMPLETED)
        done = [t.done() for t in tasks]
        for task in tasks:
            if task.done():
                task.result()
        return done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def end_of(pid):
    """Returns when there is no such process, which needs not be a child; of
    one that is none of this host's, at once."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(fd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)
