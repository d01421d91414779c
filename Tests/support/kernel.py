"""The kernel's buffers of connections."""

from .waiting import WaitTimeout, wait_until


class ConnectionGone(Exception):
    """The connection is closed."""


def queues(local, remote):
    """Bytes that the kernel buffers for one end of a connection of 127.0.0.1: sent but not acknowledged, and received but not
    read."""
    with open("/proc/net/tcp") as table:
        for row in table:
            fields = row.split()
            if fields[1].endswith(f":{local:04X}") and fields[2].endswith(f":{remote:04X}"):
                unsent, unread = (int(number, 16) for number in fields[4].split(":"))
                return unsent, unread
    raise ConnectionGone(f"{local} to {remote}")


def fill(connection, port):
    """Sends requests without reading until answers wait within the service; returns the bytes of all answers."""
    own = connection.socket.getsockname()[1]

    def with_the_kernel():
        (unsent, unread), (_, received) = queues(port, own), queues(own, port)
        return 0 if unread else unsent + received

    due, held = 0, with_the_kernel()
    while True:
        connection.send(("ECHO " + "x" * 900 + "\n") * 200)
        due += 200 * 903
        try:
            # After a second without progress the answers wait within the service. On a slow machine this may be too early,
            # which does not change the expected bytes.
            wait_until(lambda: with_the_kernel() >= held + 200 * 903, "the answers are with the kernel", seconds=1)
        except WaitTimeout:
            return due
        held = with_the_kernel()
