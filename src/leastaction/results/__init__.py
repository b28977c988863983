"""What a run gives back, and what can be seen of it.

path, paths, stored_path   one trajectory, many, one on disk; `assembly` makes them from what a run has left
dense, between             states inside steps
files, csv                 what is written and read
plots, viewer, looks       pictures, pages that play; how systems look; `colours`
sections, impulses         crossings of a plane; what forces did
citations                  the papers behind a run
"""
