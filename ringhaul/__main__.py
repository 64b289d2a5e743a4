"""The command `ringhaul`, and `python -m ringhaul`."""

from ringhaul.own_packages import find_own_packages

# At the top: a child process that Python spawns imports this module, and calls nothing.
find_own_packages()

from producer.__main__ import main  # noqa: E402 - only now it is ours

if __name__ == "__main__":
    main()
