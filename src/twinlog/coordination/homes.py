"""Finds which partition of an internal topic a key lives in, as Kafka does."""


def java_hash(text: str) -> int:
    """Give Java's ``String.hashCode``: over UTF-16 code units, as a signed 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (value * 31 + (units[index] << 8 | units[index + 1])) & 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def home_of(key: str, partition_count: int) -> int:
    """Give the partition that holds ``key``; the lowest hash, without a positive twin, is 0."""
    value = java_hash(key)
    return (0 if value == -(1 << 31) else abs(value)) % partition_count
