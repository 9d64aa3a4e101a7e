import sys

from headrace._cli import main

if __name__ == "__main__":
    sys.exit(main())
