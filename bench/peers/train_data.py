"""Writes random tokens to train on, which each vocabulary has: bytes, and numbers in a .npy.

usage: train_data.py DIRECTORY
"""
import pathlib
import sys

import numpy

TOKENS = 1 << 18


def main(directory):
    drawn = numpy.random.default_rng(0).integers(0, 256, TOKENS, numpy.int32)
    numpy.save(directory / "tokens.npy", drawn)
    (directory / "tokens.txt").write_bytes(drawn.astype(numpy.uint8).tobytes())


main(pathlib.Path(sys.argv[1]))
