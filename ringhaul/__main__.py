"""`python -m ringhaul`, which is the command `ringhaul`."""

from producer.__main__ import main

if __name__ == "__main__":
    main()
