"""Runs a program under a seccomp filter that refuses perf_event_open with EPERM, as those of containers do.

usage: seccomp.py PROGRAM [ARGUMENT ...]
"""

import ctypes
import os
import platform
import struct
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
ALLOW, EPERM = 0x7FFF0000, 0x00050000 | 1
NUMBERS = {"x86_64": 298, "aarch64": 241}
# struct sock_filter: code, jump if true, jump if false, operand. The first field of seccomp_data is the number.
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


rows = [(LOAD, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, NUMBERS[platform.machine()]), (RETURN, 0, 0, EPERM), (RETURN, 0, 0, ALLOW)]
program = Program(len(rows), b"".join(struct.pack("=HBBI", *row) for row in rows))
prctl = ctypes.CDLL(None, use_errno=True).prctl
for arguments in ((PR_SET_NO_NEW_PRIVS, 1, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program))):
    if prctl(*arguments, 0, 0) != 0:
        sys.exit(f"seccomp.py: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[1], sys.argv[1:])
