"""Who is at the other end of a connection to us."""

from dataclasses import dataclass, field
from typing import Any, Final

ANONYMOUS: Final = "ANONYMOUS"


@dataclass(slots=True, eq=False)
class Peer:
    """A client of ours, for as long as its connection lasts.

    Dispatch fills in what the client says of itself (KIP-511). ``state`` holds what a family of
    requests must remember of the connection; it is dropped with it.
    """

    host: str
    port: int
    listener: str
    principal: str = ANONYMOUS
    software_name: str = "unknown"
    software_version: str = "unknown"
    state: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Give the address, as log lines name it."""
        return f"{self.host}:{self.port}"
