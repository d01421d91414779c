"""What the kernel knows of connections."""

from .waiting import WaitTimeout, wait_until


class ConnectionGone(Exception):
    """There is no such connection any more."""


def queues(local, remote):
    """Bytes that the kernel holds for one end of a connection of 127.0.0.1: sent and not taken by the other end's kernel,
    and come but not read."""
    with open("/proc/net/tcp") as table:
        for row in table:
            fields = row.split()
            if fields[1].endswith(f":{local:04X}") and fields[2].endswith(f":{remote:04X}"):
                unsent, unread = (int(number, 16) for number in fields[4].split(":"))
                return unsent, unread
    raise ConnectionGone(f"{local} to {remote}")


def fill(connection, port):
    """Asks, without reading, until answers have to wait within the service; returns how many bytes of lines are due."""
    own = connection.socket.getsockname()[1]

    def with_the_kernel():
        (unsent, unread), (_, come) = queues(port, own), queues(own, port)
        return 0 if unread else unsent + come

    due, held = 0, with_the_kernel()
    while True:
        connection.send(("ECHO " + "x" * 900 + "\n") * 200)
        due += 200 * 903
        try:
            # Nothing tells that they stay within the service. Where the machine was just slow, they are taken for it a little
            # early, and what is due is right all the same.
            wait_until(lambda: with_the_kernel() >= held + 200 * 903, "the answers are with the kernel", seconds=1)
        except WaitTimeout:
            return due
        held = with_the_kernel()
