"""`python -m docs.generate`: write what is stale and say which files that were."""

from docs.generate import write

if __name__ == "__main__":
    for name in write():
        print(name)
