"""Files spoiled as disks and crashes spoil them."""

HOW = ["changed", "cut", "removed"]


def spoil(file, how):
    data = bytearray(file.read_bytes())
    if how == "changed":
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    elif how == "cut":
        file.write_bytes(data[: len(data) // 2])
    else:
        file.unlink()
