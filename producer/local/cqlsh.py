"""cqlsh, as `producer.local.cql` starts it: `python -P cqlsh.py ARGUMENTS`."""

import sys

from cqlshlib import cqlshmain


def main() -> None:
    """Run cqlsh, without its warning about a server that is newer by a patch, which would be the
    first line of every output."""
    cqlshmain.Shell.check_build_versions = lambda shell: None
    cqlshmain.main(sys.argv[1:], "")


if __name__ == "__main__":
    main()
