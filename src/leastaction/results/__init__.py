"""The results of a run, and pictures and files of them.

path, paths, stored_path   one trajectory, many, one on disk; `assembly` makes them from a run's sink
dense, between             states inside steps
files                      what is written and read
plots, viewer, looks       pictures, pages that play; how systems look; `colours`
sections, impulses         crossings of a plane; work and impulses of forces
citations                  the papers behind a run
"""
