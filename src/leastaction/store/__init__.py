"""The files of a run: a Zarr archive, checkpoints, and arrays that are read when they are asked for."""
