"""The base of the package: three-part errors, frozen dataclasses, argument checks, precision, devices, files, progress.

A module belongs here if a library for another field could use it unchanged. Nothing here imports another room of
festina, and every other room may import from here.
"""
