"""Run every benchmark: ``python -m benchmarks``."""

from benchmarks import paired_bootstrap

if __name__ == "__main__":
    paired_bootstrap.main()
