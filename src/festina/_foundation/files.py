"""Atomic file access: files are written all or none, one process at a time, and only plain files are read."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import secrets
import shutil
import stat
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from . import checks
from .errors import BadInput

try:
    import fcntl
except ImportError:  # a system without POSIX locks
    fcntl = None

# Of this machine, so that a process elsewhere on a shared disk is never taken for one that has ended.
LEFTOVER = f".festina-{zlib.crc32(platform.node().encode()):08x}-"


def write_whole(folder: str | Path, contents: Mapping[str, bytes]) -> None:
    """Write the named files of a folder, all or none; the last is the sign that the others belong together.

    All are on disk under other names before the first is moved to its place, so that a full disk, a crash or Ctrl-C
    leaves what was there.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise BadInput(f"no folder {folder}", "an existing folder to write into", f"create {folder} first")
    clear_leftovers(folder)
    *_, sign = contents
    staged: dict[str, Path] = {}
    places = {name: _place(folder / name) for name in contents}
    try:
        for name, data in contents.items():
            path = places[name]
            staged[name] = path.parent / f"{LEFTOVER}{os.getpid()}-{secrets.token_hex(4)}"
            try:
                _write_to_disk(staged[name], data)
            except OSError as error:
                staged[name].unlink(missing_ok=True)  # so that the room that is free is that without it
                raise _not_written(path, len(data), error) from None
        if len(staged) > 1:
            places[sign].unlink(missing_ok=True)  # an old sign must not vouch for new files
        for name, temporary in staged.items():
            temporary.replace(places[name])
        _sync(folder)
    finally:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)


def _place(path: Path) -> Path:
    """Where a file of this name goes: a link is followed, and nothing but a file is ever replaced."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except OSError as error:  # a name that is too long, links in a circle
        raise BadInput(f"{path} ({error.strerror})", "the name of a file", "choose another name") from None
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a device, a pipe or a socket"
        raise BadInput(f"{path} is {kind}", "the name of a file", "choose another name")
    return path.resolve() if path.is_symlink() else path


def _write_to_disk(path: Path, data: bytes) -> None:
    # Without mkstemp, whose files are private: results are as readable as any other file.
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # some disks say that they are full only now


def _sync(folder: Path) -> None:
    """Write the folder's new entries to disk, too, on systems that can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _not_written(path: Path, size: int, error: OSError) -> BadInput:
    disk = next(p for p in (path.parent.absolute(), *path.parent.absolute().parents) if p.is_mount() or p == p.parent)
    reasons = {
        errno.ENOSPC: f"the disk at {disk} is full, with {shutil.disk_usage(disk).free:,} bytes free",
        errno.EDQUOT: f"your quota on the disk at {disk} is used up",
        errno.EFBIG: "it is larger than this process may write (ulimit -f)",
    }
    reason = reasons.get(error.errno or 0, error.strerror or str(error))
    needed = f"room for {size:,} bytes" if error.errno in reasons else "a file that can be written"
    return BadInput(
        f"{path} was not written: {reason}", needed, "make room or choose another folder; what was there is kept"
    )


def clear_leftovers(folder: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote."""
    if os.name != "posix":  # elsewhere signal 0 is not harmless
        return
    for path in folder.glob(f"{LEFTOVER}*"):
        process = path.name.removeprefix(LEFTOVER).partition("-")[0]
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            path.unlink(missing_ok=True)
        except (OSError, ValueError, OverflowError):  # another user's process, or another's file
            continue


@contextlib.contextmanager
def alone_in(folder: str | Path, tell: Callable[[str], None] = warnings.warn) -> Iterator[Path]:
    """Create a folder and lock it for this run; another run that asks for it waits. It is removed if it stays empty.

    The folder itself is locked, so that nothing is left when a process is killed.
    """
    folder = Path(folder)
    reason = "it vanishes again and again"
    for _ in range(100):  # other runs may remove it, or a parent, in between
        made = [path for path in (folder, *folder.parents) if not path.exists()]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder, os.O_RDONLY) if fcntl else None
        except FileNotFoundError as error:
            reason = error.strerror
            continue
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            break
        try:
            if _locked(handle, folder, tell):
                clear_leftovers(folder)
                yield folder
                return
        finally:
            with contextlib.suppress(OSError):  # not empty
                for path in made:
                    path.rmdir()
            if handle is not None:
                os.close(handle)
    raise BadInput(f"the folder {folder} cannot be made ({reason})", "a folder to write into", "choose another")


def _locked(handle: int | None, folder: Path, tell: Callable[[str], None]) -> bool:
    """Wait for the lock of a folder; False if it is no longer the folder of that name."""
    if handle is None or fcntl is None:
        return True
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"another run writes into {folder}; this one waits for it to end")
            fcntl.flock(handle, fcntl.LOCK_EX)
        return os.path.samestat(os.fstat(handle), os.stat(folder))
    except FileNotFoundError:
        return False
    except OSError:  # a disk without locks
        return True


def read_plain(path: str | Path, kind: str) -> bytes:
    """The bytes of a plain file; folders, pipes and devices are refused, whose reading may never end."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe or a device"
            raise BadInput(f"{path} is {what}", kind, "check the path")
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise BadInput(f"no file {path}", kind, "check the path") from None
    except MemoryError:
        raise BadInput(f"{path} is larger than the memory", kind, "read it on a larger machine") from None
    except (OSError, ValueError) as error:  # no permission, a loop of links, a name that no disk has
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"{path} cannot be read ({reason})", kind, "check the path and its permissions") from None


def writable_folder(value: object, argument: str) -> Path:
    """The path of a folder that exists or can be created, so that a bad path fails before hours of work, not after."""
    folder = checks.path(value, argument)
    try:
        above = next(part for part in (folder, *folder.parents) if part.exists())
    except OSError as error:  # a name that is too long
        raise BadInput(f"{argument} = {str(folder)!r} ({error.strerror})", "a folder", "give another name") from None
    if not above.is_dir():
        raise BadInput(f"{argument} = {str(folder)!r}, and {above} is a file", "a folder", "give another name")
    return folder
