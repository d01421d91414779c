"""What the kernel knows of connections and processes."""

from .deadline import TooLate, wait_until


class Gone(Exception):
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
    raise Gone(f"{local} to {remote}")


def resident_bytes(pid, which="VmRSS"):
    """`VmHWM` is the most that it ever was."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) * 1_024 for line in status if line.startswith(f"{which}:"))


def fill(line, port):
    """Asks, without reading, until answers have to wait within the service; returns how many bytes of lines are due."""
    own = line.socket.getsockname()[1]

    def with_the_kernel():
        (unsent, unread), (_, come) = queues(port, own), queues(own, port)
        return 0 if unread else unsent + come

    due, held = 0, with_the_kernel()
    while True:
        line.send(("ECHO " + "x" * 900 + "\n") * 20)
        due += 20 * 903
        try:
            wait_until(lambda: with_the_kernel() >= held + 20 * 903, 0.3, "the answers are with the kernel")
        except TooLate:
            return due
        held = with_the_kernel()
