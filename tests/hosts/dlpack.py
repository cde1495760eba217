#!/usr/bin/env python3
"""Exchanges tensors with NumPy, PyTorch and JAX by DLPack, both ways, without a copy.

usage: dlpack.py LIBTESSERA_CORE
"""
import ctypes
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "invariants"))
import jax  # noqa: E402
import numpy  # noqa: E402
import tap  # noqa: E402
import torch  # noqa: E402

int64, pointer = ctypes.c_int64, ctypes.c_void_p
jax.config.update("jax_enable_x64", True)


class Device(ctypes.Structure):
    """tsr_device"""
    _fields_ = [("driver", pointer), ("index", ctypes.c_int)]


class Tensor(ctypes.Structure):
    """tsr_tensor"""
    _fields_ = [("data", pointer), ("dtype", ctypes.c_int), ("device", Device), ("ndim", ctypes.c_int), ("shape", int64 * 8), ("strides", int64 * 8)]


class View(ctypes.Structure):
    """tsr_dlpack_view"""
    _fields_ = [("tensor", Tensor), ("read_only", ctypes.c_int), ("copied", ctypes.c_int)]


library = ctypes.CDLL(sys.argv[1])
library.tsr_status_message.restype = ctypes.c_char_p
library.tsr_dlpack_release.argtypes = library.tsr_dlpack_release_versioned.argtypes = [pointer]
library.tsr_dtype_name.restype = ctypes.c_char_p
python = ctypes.pythonapi
python.PyCapsule_GetPointer.restype, python.PyCapsule_GetPointer.argtypes = pointer, [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_New.restype, python.PyCapsule_New.argtypes = ctypes.py_object, [pointer, ctypes.c_char_p, pointer]
NAMES = {False: b"dltensor", True: b"dltensor_versioned"}
# Names are kept by capsules as pointers.
USED = {False: ctypes.c_char_p(b"used_dltensor"), True: ctypes.c_char_p(b"used_dltensor_versioned")}
KEPT = {False: ctypes.c_char_p(NAMES[False]), True: ctypes.c_char_p(NAMES[True])}


def check(status):
    if status != 0:
        raise ValueError(library.tsr_status_message().decode())


def take(capsule):
    """(view, function that gives the memory back) of a capsule."""
    versioned = bool(python.PyCapsule_IsValid(capsule, NAMES[True]))
    managed = python.PyCapsule_GetPointer(capsule, NAMES[versioned])
    view, suffix = View(), "_versioned" if versioned else ""
    check(getattr(library, "tsr_tensor_from_dlpack" + suffix)(pointer(managed), None, ctypes.byref(view)))
    python.PyCapsule_SetName(capsule, USED[versioned])
    return view, lambda: getattr(library, "tsr_dlpack_release" + suffix)(managed)


class Lent:
    """A tensor of this library as frameworks import it."""

    def __init__(self, tensor, versioned):
        self.tensor, self.versioned = tensor, versioned

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        managed = pointer()
        if self.versioned and options.get("max_version") is not None:
            check(library.tsr_tensor_to_dlpack_versioned(None, ctypes.byref(self.tensor), 0, None, None, ctypes.byref(managed)))
            return python.PyCapsule_New(managed, KEPT[True], None)
        check(library.tsr_tensor_to_dlpack(None, ctypes.byref(self.tensor), None, None, ctypes.byref(managed)))
        return python.PyCapsule_New(managed, KEPT[False], None)


def expect(what, found, wanted):
    if found != wanted:
        raise ValueError(f"{what} is {found}, not {wanted}")


def imported(array, data, dtype, **options):
    """A framework's array is seen here: its memory, dtype, shape and strides."""
    view, release = take(array.__dlpack__(**options))
    tensor = view.tensor
    expect("memory", tensor.data, data)
    expect("dtype", library.tsr_dtype_name(tensor.dtype).decode(), dtype)
    expect("shape", tuple(tensor.shape[:tensor.ndim]), tuple(array.shape))
    release()
    return view


def numpy_lends():
    for name, dtype in (("float64", "f64"), ("float32", "f32"), ("float16", "f16"), ("int8", "i8"), ("uint64", "u64"), ("bool", "bool"), ("complex64", "c64")):
        array = numpy.zeros((3, 4), name)
        for options in ({}, {"max_version": (1, 0)}):
            view = imported(array, array.ctypes.data, dtype, **options)
            expect("strides", tuple(view.tensor.strides[:2]), (4, 1))
    turned = numpy.zeros((3, 4), "float32").T[1:]
    view = imported(turned, turned.ctypes.data, "f32")
    expect("strides", tuple(view.tensor.strides[:2]), (1, 4))
    fixed = numpy.zeros(3)
    fixed.flags.writeable = False
    expect("read only", imported(fixed, fixed.ctypes.data, "f64", max_version=(1, 0)).read_only, 1)


def torch_lends():
    for name, dtype in (("bfloat16", "bf16"), ("float8_e4m3fn", "f8e4m3"), ("float8_e5m2", "f8e5m2"), ("int64", "i64"), ("bool", "bool"), ("complex128", "c128")):
        tensor = torch.zeros((2, 5), dtype=getattr(torch, name))
        for options in ({}, {"max_version": (1, 3)}):
            imported(tensor, tensor.data_ptr(), dtype, **options)


def torch_exchanges():
    capsule = torch.Tensor.__dlpack_c_exchange_api__
    table = python.PyCapsule_GetPointer(capsule, b"dlpack_exchange_api")
    tensor, view = torch.zeros((2, 5)), Tensor()
    check(library.tsr_tensor_from_exchange(pointer(table), ctypes.py_object(tensor), None, ctypes.byref(view)))
    expect("memory", view.data, tensor.data_ptr())
    expect("shape", tuple(view.shape[:2]), (2, 5))


def jax_lends():
    array = jax.numpy.arange(6, dtype="bfloat16").reshape(2, 3)
    imported(array, array.unsafe_buffer_pointer(), "bf16")


def frameworks_borrow():
    memory = numpy.arange(12, dtype="float32").reshape(3, 4)
    ours, release = take(memory.__dlpack__())
    for versioned in (False, True):
        lent = Lent(ours.tensor, versioned)
        for name, borrow, address in (("NumPy", numpy.from_dlpack, lambda a: a.ctypes.data), ("PyTorch", torch.from_dlpack, lambda a: a.data_ptr()),
                                      ("JAX", jax.dlpack.from_dlpack, None)):
            theirs = borrow(lent)
            expect(f"{name}'s values", numpy.asarray(theirs).tolist(), memory.tolist())
            if address:
                expect(f"{name}'s memory", address(theirs), memory.ctypes.data)
    torch.from_dlpack(Lent(ours.tensor, True))[0, 0] = 77
    expect("what PyTorch wrote", memory[0, 0], 77)
    release()


tap.run_cases(numpy_lends, torch_lends, torch_exchanges, jax_lends, frameworks_borrow)
