"""Compiled programs on disk, so that the next process does not compile them again.

The command line keeps them in the user's cache folder; the library does so only if it is asked to, since the setting
belongs to the whole process. A folder that the user has chosen with JAX_COMPILATION_CACHE_DIR is used as it is.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

from . import checks
from .errors import FestinaError

CHOSEN = "JAX_COMPILATION_CACHE_DIR"  # JAX's own variable


def cache_folder() -> Path:
    """Where the command line keeps compiled programs: what the user chose, else the cache folder of the system."""
    if chosen := os.environ.get(CHOSEN):
        return Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "festina" / "jax"


def cache_size(folder: Path) -> tuple[int, int]:
    """How many files a folder holds, and their size in bytes."""
    sizes = [path.stat().st_size for path in folder.glob("*") if path.is_file()] if folder.is_dir() else []
    return len(sizes), sum(sizes)


def keep_compiled_programs(folder: str | Path | None = None) -> Path:
    """Have JAX write every program that it compiles to a folder, and look for it there first; returns the folder.

    Call it at the top of a script or notebook, and its second run begins to compute at once. None takes the folder of
    the command line, which `festina doctor` shows. The setting belongs to the whole process: programs of your own are
    kept, too. A folder that cannot be made is a warning, and nothing is kept.
    """
    import jax

    folder = cache_folder() if folder is None else checks.path(folder, "folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # such as a home that cannot be written
        warning = FestinaError(
            f"the folder {folder} for compiled programs cannot be made: {error.strerror or error}",
            "a folder that can be written; without one every process compiles its programs anew",
            f"give keep_compiled_programs another folder, or set {CHOSEN}",
        )
        warnings.warn(str(warning), stacklevel=2)
        return folder
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # A program that another process is still writing cannot be read yet; it is compiled here, too.
    warnings.filterwarnings("ignore", "Error reading persistent compilation cache entry", UserWarning)
    # Most programs of festina take a tenth of a second each; there are thousands of them.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return folder
