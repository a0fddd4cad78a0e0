"""Machine code on disk: one file for each compiled function, signature and set of ingredients.

numba keeps an index and numbered data files; two processes that write at the same time can mix them up. Here an entry
is a single file, named by the digest of its key (`code_key`). It is written under a temporary name and then renamed,
so readers see the whole file or none. It begins with a digest of the key and of the content: a file that is truncated,
edited or misplaced is deleted, and its function is compiled again. Nothing is unpickled before that check.

NamedTuple classes of the signature are stored as their position in it. The caller already has these classes, so this
also works for classes defined in a script, in a notebook or inside a function.

numba prepares itself before it loads code: it imports all that it could need to compile, scipy's linear algebra
included. That takes half of the time from the start of a process to its first episode, and most code needs none of it.
An entry lists the outside functions that its code calls, and only if one of them is missing is numba prepared.
"""

import contextlib
import hashlib
import io
import itertools
import os
import pickle
import secrets
import sys
import tempfile
import time
from pathlib import Path

import numba
from llvmlite import binding as llvm

from kernelrl.jit.code_key import Ingredients, UnknownError, classes_of, is_importable
from kernelrl.jit.numba_private import (
    Cache,
    FunctionCache,
    NumbaPickler,
    final_module,
    kept_in,
    number_functions_from,
    put_cache,
    rebuilt,
    reduced,
    sigutils,
)

try:
    import fcntl
except ImportError:  # not on Windows; renaming alone keeps each entry whole
    fcntl = None

__all__ = ["CodeCache", "adopt", "cache_of", "keep_code"]

BEGINNING = b"kernelrl machine code 2\n"
SETTINGS = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "USING_SVML", "DEBUGINFO_DEFAULT")  # of numba


def number_functions():
    """Have numba number functions from a random start.

    numba names machine code after the function, its argument types and its number. If numbers began at 1 in every
    process, a function just compiled and a different one read from disk could have the same name.
    """
    number_functions_from(secrets.randbits(60))


number_functions()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=number_functions)

WAIT, POLL = 60.0, 0.05  # seconds
said = set()  # the messages that this process has printed


def say_once(folder, error):
    """Print why compiled code is not kept; once per process."""
    if "not kept" not in said:
        said.add("not kept")
        print(
            f"kernelrl: compiled code cannot be kept in {folder} ({error}), so every process compiles it again. Set "
            "XDG_CACHE_HOME to a writable folder.",
            file=sys.stderr,
            flush=True,
        )


@contextlib.contextmanager
def locked(folder):
    """Let only one process at a time change `folder`; no lock where the system has none."""
    with open(folder / "lock", "ab") as file:
        if fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def claim(path):
    """Claim the right to compile an entry: wait while another process compiles it, at most WAIT seconds.

    Returns a file that is locked until it is closed or this process ends; None where there are no locks. The entry may
    be there afterwards.
    """
    if fcntl is None:
        return None
    file = None
    with contextlib.suppress(OSError):  # a folder that cannot be written to, a file system without locks
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path.with_suffix(".busy"), "ab")
        until = time.monotonic() + WAIT
        while time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if path.exists():
                    break
                time.sleep(POLL)
    return file


def digest_of(key, payload):
    """The digest that an entry begins with."""
    return hashlib.sha256(key.encode() + payload).digest()


def read(path, key):
    """The payload of an entry; None if there is no entry, ValueError if the file is not what was written for `key`."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    beginning, digest, payload = data[: len(BEGINNING)], data[len(BEGINNING) :][:32], data[len(BEGINNING) + 32 :]
    if beginning != BEGINNING or digest != digest_of(key, payload):
        raise ValueError(f"{path} is damaged")
    return payload


def write(path, key, payload):
    """Write an entry: the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent):
        number, name = tempfile.mkstemp(prefix="unfinished-", dir=path.parent)
        try:
            with open(number, "wb") as file:
                file.write(BEGINNING + digest_of(key, payload) + payload)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def discard(path, key):
    """Delete a damaged entry, unless another process has just replaced it by a good one."""
    with contextlib.suppress(OSError), locked(path.parent):
        try:
            read(path, key)
        except ValueError:
            path.unlink(missing_ok=True)


def outside(library):
    """The names of the functions and variables that machine code uses and does not contain."""
    module = final_module(library)
    named = itertools.chain(module.functions, module.global_variables)
    return sorted(value.name for value in named if value.is_declaration and not value.name.startswith("llvm."))


class Pickler(NumbaPickler):
    """numba's pickler, with some classes replaced by their number."""

    def __init__(self, file, classes):
        super().__init__(file, protocol=4)
        self._numbers = {cls: number for number, cls in enumerate(classes)}

    def persistent_id(self, obj):
        """The number of a class, None for anything else."""
        return self._numbers.get(obj) if isinstance(obj, type) else None


class Unpickler(pickle.Unpickler):
    """The inverse of `Pickler`, with the caller's classes."""

    def __init__(self, file, classes):
        super().__init__(file)
        self._classes = classes

    def persistent_load(self, pid):
        """The class of that number."""
        return self._classes[pid]


class CodeCache(Cache):
    """The cache of one compiled function, in the form that numba's dispatchers use."""

    def __init__(self, function, options, folder):
        self._function, self._options, self._folder = function, options, Path(folder)
        self._keys = {}  # keys of signatures that were not found and are being compiled
        self._claim = None  # the file by which other processes see this

    @property
    def cache_path(self):
        """The folder."""
        return str(self._folder)

    def key(self, signature, codegen):
        """A digest of everything the machine code depends on; UnknownError if that cannot be determined."""
        made_of = self._ingredients(signature)
        made_of.write(codegen.magic_tuple(), [getattr(numba.config, name, None) for name in SETTINGS])
        return made_of.digest()

    def why_not_kept(self, signature):
        """Why the machine code for a signature cannot be kept on disk; empty if it can."""
        try:
            self._ingredients(signature)
        except UnknownError as error:
            return str(error)
        return ""

    def can_keep(self):
        """Whether the cache's folder is writable."""
        folder = self._folder
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        return os.access(folder, os.W_OK)

    def _ingredients(self, signature):
        arguments, result = sigutils.normalize_signature(signature)
        made_of = Ingredients()
        made_of.add(self._options)
        made_of.add_function(self._function)
        for kind in (*arguments, result):
            made_of.add_type(kind)
        adopt(made_of.dispatchers, self._folder)
        return made_of

    def path(self, key):
        """The file of an entry."""
        name = "".join(c for c in self._function.__qualname__ if c.isalnum() or c in "._")
        return self._folder / f"{name[-60:]}-{key[:32]}.code"

    def load_overload(self, sig, target_context):
        """What was compiled for this signature, or None; called by numba before it compiles."""
        try:
            key = self._keys[sig] = self.key(sig, target_context.codegen())
        except UnknownError:
            return None
        found = self._read(key, sig, target_context)
        if found is None:
            self._claim = claim(self.path(key))
            found = self._read(key, sig, target_context)  # another process may have compiled it while this one waited
        if found is not None:
            del self._keys[sig]
        return found

    def _read(self, key, sig, target_context):
        """The entry, or None if there is none or it is damaged."""
        path = self.path(key)
        try:
            payload = read(path, key)
            return None if payload is None else self._rebuild(payload, sig, target_context)
        except Exception:  # whatever is wrong with an entry, the code can be compiled again
            discard(path, key)
            return None

    def release(self):
        """Let other processes compile what this one has compiled, or failed to compile."""
        file, self._claim = self._claim, None
        if file is not None:
            with file, contextlib.suppress(OSError):
                os.unlink(file.name)

    def _rebuild(self, payload, signature, target_context):
        arguments, _ = sigutils.normalize_signature(signature)
        file = io.BytesIO(payload)
        if any(llvm.address_of_symbol(name) is None for name in pickle.load(file)):
            target_context.refresh()
        kept = Unpickler(file, classes_of(arguments)).load()
        if kept[3].args != tuple(arguments):
            raise ValueError("compiled for other types")
        return rebuilt(target_context, kept)

    def save_overload(self, sig, data):
        """Keep what numba has just compiled."""
        key = self._keys.pop(sig, None)
        if key is None or data.lifted or data.library.has_dynamic_globals:
            return
        if not all(map(is_importable, classes_of([data.signature.return_type]))):
            return  # its machine code would hold a copy of the class, not the class itself
        try:
            buffer = io.BytesIO()
            pickle.dump(outside(data.library), buffer, protocol=4)
            Pickler(buffer, classes_of(data.signature.args)).dump(reduced(data))
            write(self.path(key), key, buffer.getvalue())
        except Exception as error:  # a full disk or a read-only folder must not end a run
            say_once(self._folder, error)

    def enable(self):
        """Do nothing: the cache is always enabled."""

    def disable(self):
        """Do nothing: the cache is never disabled."""

    def flush(self):
        """Do nothing: entries are written at once."""


def cache_of(dispatcher):
    """The `CodeCache` of a compiled function, or None."""
    cache = kept_in(dispatcher)
    return cache if isinstance(cache, CodeCache) else None


def why_not_kept(dispatcher, signature):
    """Why a compiled function's machine code for a signature cannot be kept on disk; empty if it can."""
    cache = kept_in(dispatcher)
    return cache.why_not_kept(signature) if isinstance(cache, CodeCache) else "numba's own cache, or none"


def adopt(dispatchers, folder):
    """Move users' functions with `cache=True` to this cache: numba's own would miss changes in other files."""
    for dispatcher in dispatchers:
        if isinstance(kept_in(dispatcher), FunctionCache):
            keep_code(dispatcher, CodeCache(dispatcher.py_func, dispatcher.targetoptions, folder))


def keep_code(dispatcher, cache):
    """Give a compiled function a cache, which learns when compiling has ended, also by an error."""
    put_cache(dispatcher, cache)
    compile_it = dispatcher.compile

    def compile_and_release(signature):
        try:
            return compile_it(signature)
        finally:
            cache.release()

    dispatcher.compile = compile_and_release
