"""`python -m kernelrl` is `kernelrl`."""

from kernelrl.cli import main

if __name__ == "__main__":
    main()
