"""`python -m supervisor` is `strongroom`."""

from supervisor.cli import main

if __name__ == "__main__":
    main()
