"""Says which permission a mirror's user lacks at its source, and how to give it."""

from typing import Final

from twinlog.config.client_security import ClientSecurity
from twinlog.model.errors import ErrorCode

READ: Final = "Read"
DESCRIBE: Final = "Describe"
DESCRIBE_CONFIGS: Final = "DescribeConfigs"
"""As Kafka's own tool for ACLs calls them."""

_FLAGS: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "--topic {}",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "--group {}",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "--cluster",
}


def lacking(security: ClientSecurity, code: int, operation: str, name: str = "") -> str:
    """Say what to grant when ``code`` says that ``operation`` on ``name`` is not allowed.

    Nothing for other codes.
    """
    flag = next((text for known, text in _FLAGS.items() if known == code), None)
    if flag is None:
        return ""
    kind = flag.split()[0].removeprefix("--")
    told = (
        f"{security.who} needs {operation} on {f'{kind} {name}' if name else f'the {kind}'} there"
    )
    if not security.who.startswith("User:"):
        return told
    return (
        f"{told}: kafka-acls.sh --add --allow-principal {security.who} "
        f"--operation {operation} {flag.format(name)}"
    )


def with_lacking(why: str, security: ClientSecurity, code: int, operation: str, name: str) -> str:
    """Add to ``why`` what to grant, if that is the matter."""
    told = lacking(security, code, operation, name)
    return f"{why}; {told}" if told else why
