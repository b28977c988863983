"""Systems with answers, one file each."""
