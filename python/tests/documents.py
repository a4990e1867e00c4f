"""Runs the Python programs in Markdown files: python documents.py FILE..."""

import pathlib
import re
import subprocess
import sys
import tempfile


def main() -> None:
    count = 0
    for name in sys.argv[1:]:
        for program in re.findall(r"^```python\n(.*?)^```$", pathlib.Path(name).read_text(), re.DOTALL | re.MULTILINE):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "program.py")
                path.write_text(program)
                result = subprocess.run(
                    [sys.executable, "-W", "error", str(path)], timeout=60, cwd=folder, text=True, capture_output=True
                )
            first = program.strip().splitlines()[0]
            print(f"{name}: {len(program.splitlines())} lines from {first!r}: {result.stdout.strip()}")
            if result.returncode or result.stderr or not result.stdout:
                sys.exit(f"{name}: the program failed:\n{program}\n{result.stderr}")
            count += 1
    if count == 0:
        sys.exit("no program found in the documents")


if __name__ == "__main__":
    main()
