"""Runs one measurement, or all of them:  python -m bench [NAME [OPTIONS]]."""

import sys
from importlib import import_module
from pathlib import Path

# What starts real brokers is shared with the tests.
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

MEASUREMENTS = {
    "mirror_catchup": "copying a source's backlog, beside MirrorMaker 2 and Kafka's own follower",
    "mirror_scale": "memory, idle CPU, catch-up and restart of thousands of mirrored partitions",
    "mirror_stop": "stopping a thousand mirrored partitions, with the source alive and dead",
    "mirror_freshness": "how soon a record can be read at the destination, beside MirrorMaker 2",
    "produce_consume": "big batches in and out, beside Kafka",
    "small_requests": "one record a request, beside Kafka",
    "start": "from launch to the first answer, and idle memory, beside Kafka",
}


def main(arguments: list[str]) -> int:
    """Run what is named, or everything in turn."""
    if arguments and arguments[0] in ("-h", "--help"):
        print(__doc__)
        print("\n".join(f"  {name:<16} {what}" for name, what in MEASUREMENTS.items()))
        return 0
    if arguments and arguments[0] not in MEASUREMENTS:
        print(f"no measurement {arguments[0]}; there are: {', '.join(MEASUREMENTS)}")
        return 2
    for name in arguments[:1] or MEASUREMENTS:
        import_module(f"bench.{name}").main(arguments[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
