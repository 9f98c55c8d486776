"""netCDF files with a seal: a checksum of every byte, which is verified before the HDF5 library sees the file.

On a damaged file, the HDF5 library may raise any error, loop for ever, or return wrong numbers. The seal is appended
to the HDF5 file, where other programs do not look: magic bytes, length and SHA-256 of everything before it. An
attribute inside the file states that there is a seal, so that a file that has lost it is not taken for an old one.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from . import checks
from .errors import BadInput
from .files import read_plain, write_whole

if TYPE_CHECKING:
    import xarray

MAGIC = b"festina seal 1\r\n"
SEAL = len(MAGIC) + 8 + 32
SEALED = "festina_seal"  # the attribute
HDF5 = b"\x89HDF\r\n\x1a\n"
MOST = 10  # an unsealed file that declares more bytes than this many times its own is not read
KIND = "a netCDF file written by festina"


def netcdf_bytes(data: xarray.Dataset) -> bytes:
    """A Dataset as a sealed netCDF file, made in memory: on a full disk the HDF5 library can end the process."""
    import h5netcdf
    from xarray.backends import H5NetCDFStore

    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        marked = data.assign_attrs({SEALED: "SHA-256 behind the end of the HDF5 file"})
        marked.dump_to_store(H5NetCDFStore(file))
    body = buffer.getvalue()
    return body + MAGIC + len(body).to_bytes(8, "little") + hashlib.sha256(body).digest()


def save_netcdf(data: xarray.Dataset, path: str | Path) -> None:
    """Write a Dataset as netCDF; the file appears whole or not at all."""
    path = checks.path(path, "path")
    if not path.parent.is_dir():
        seen = f"path = {str(path)!r}: no folder {path.parent}"
        raise BadInput(seen, "an existing folder to write into", f"create {path.parent} first")
    if path.is_dir():
        raise BadInput(f"path = {str(path)!r} is a folder", "the path of a file", "add the name of a file")
    write_whole(path.parent, {path.name: netcdf_bytes(data)})


def load_netcdf(path: str | Path, form: str | None = None) -> xarray.Dataset:
    """Read a netCDF file whole, without pickle; `form` is what its attribute `format` has to be."""
    import xarray

    content = read_plain(path, KIND)
    sealed = content[-SEAL:].startswith(MAGIC)
    body = content[:-SEAL] if sealed else content
    _check_bytes(path, content, body, sealed)
    try:
        if not sealed:
            _check_sizes(body)
        with xarray.open_dataset(io.BytesIO(body), engine="h5netcdf") as lazy:
            data = lazy.load()
    except Exception as error:  # of any kind, from several libraries
        raise _unreadable(path, next(iter(str(error).splitlines()), type(error).__name__)) from None
    data.attrs.pop(SEALED, None)
    if form is not None and data.attrs.get("format") != form:
        raise BadInput(
            f"{path} is netCDF, but not a {form.rpartition(' ')[0]}",
            f"a file written by festina ({form})",
            "open other netCDF files with xarray.open_dataset",
        )
    if not sealed:
        warnings.warn(f"{path} has no checksum, so damage may pass unseen; save it again to add one", stacklevel=3)
    return data


def _check_bytes(path: str | Path, content: bytes, body: bytes, sealed: bool) -> None:
    """Refuse every file that is not as it was written, as far as can be said without reading it as HDF5."""
    if sealed:
        size = int.from_bytes(content[len(body) + len(MAGIC) :][:8], "little")
        if size != len(body) or hashlib.sha256(body).digest() != content[-32:]:
            raise _unreadable(path, "its checksum differs: the file was damaged after it was saved")
        return
    if SEALED.encode() in content:
        raise _unreadable(path, "its checksum is missing: the file was damaged, or rewritten by another program")
    if not content.startswith(HDF5) or len(content) < 48 or content[8] > 3:
        raise _unreadable(path, "it does not begin as HDF5 does")
    # Where the superblock says that the file ends.
    end = int.from_bytes(content[40:48] if content[8] < 2 else content[28:36], "little")
    if end != len(content):
        raise _unreadable(path, f"it has {len(content):,} bytes where {end:,} were written")


def _check_sizes(body: bytes) -> None:
    """Refuse a file that declares far more numbers than it can hold, before memory is made for them."""
    import h5py

    declared = 0

    def count(_: str, member: object) -> None:
        nonlocal declared
        declared += member.nbytes if isinstance(member, h5py.Dataset) and member.shape is not None else 0

    with h5py.File(io.BytesIO(body), "r") as file:
        file.visititems(count)
    if declared > MOST * len(body):
        raise ValueError(f"it declares {declared:,} bytes of numbers and has {len(body):,}")


def _unreadable(path: str | Path, reason: str) -> BadInput:
    return BadInput(
        f"{path} cannot be read as netCDF ({reason})", KIND, "check that the file is whole and of the right kind"
    )
