"""Host and port of a broker, and lists of them as settings have them."""

from dataclasses import dataclass
from typing import Final

from twinlog.model.errors import SettingsError

PORT_MAX: Final = 65_535


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """Where a broker listens. ``host`` is a name or an IPv4 or IPv6 address, without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        """Give it as settings have it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_addresses(text: str, *, key: str = "bootstrap.servers") -> tuple[Address, ...]:
    """Read ``host:port,host:port``, each address once, in order.

    Raises SettingsError, which names ``key`` and what is wrong.
    """
    found = [_parse(part.strip(), key) for part in text.split(",") if part.strip()]
    if not found:
        raise SettingsError(f"{key}: no address; give host:port,host:port")
    return tuple(dict.fromkeys(found))


def _parse(text: str, key: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        raise SettingsError(f'{key}: "{text}" has no port')
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= PORT_MAX):
        raise SettingsError(f'{key}: "{port}" in "{text}" is no port (1 to {PORT_MAX})')
    is_bracketed = host.startswith("[") and host.endswith("]")
    if ":" in host and not is_bracketed:
        raise SettingsError(f'{key}: write the IPv6 address in "{text}" in brackets: [::1]:9092')
    host = host[1:-1] if is_bracketed else host
    if not host or any(c.isspace() or c == "/" for c in host):
        raise SettingsError(f'{key}: "{text}" has no host')
    return Address(host, int(port))
