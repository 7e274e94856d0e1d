"""`python -m codespace`: the command line."""

from codespace.cli.app import main

main()
