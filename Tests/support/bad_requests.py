"""Malformed requests with their expected replies: the tables of tests/bad_input.py. They have some of each kind; the decoder's tests,
BadInputTests, have all."""

from .wire import array

TLS_CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(32)) * 6
PROXY_2 = bytes.fromhex("0d0a0d0a000d0a515549540a") + b"\x21\x11\x00\x0c\x7f\x00\x00\x01\x7f\x00\x00\x01\x00\x50\x1a\x5b"


def stays_open(user):
    """(name, bytes, beginning of the reply); the connection stays open. None: no reply."""
    consume, release = f"CONSUME {user} ".encode(), f"RELEASE {user} ".encode()
    return [
        ("an empty line of a terminal", b"\r\n", None),
        ("spaces only", b"   \n", None),
        ("an empty array", b"*0\r\n", None),
        ("a CR in the middle", b"PING\rPING\n", b"-BADARG "),
        ("exactly the limit", b"ECHO " + b"x" * 1_019 + b"\n", b"+xxxx"),
        ("exactly the limit and CRLF", b"ECHO " + b"x" * 1_019 + b"\r\n", b"+xxxx"),
        ("exactly the limit in an array", array("ECHO", "x" * 1_019), b"$1019\r\nxxxx"),
        ("16 tokens", b"COMMAND" + b" DOCS" + b" x" * 14 + b"\n", b"*0"),
        ("tabs and many spaces between tokens", b"\t ECHO \t  a \t\n", b"+a\r\n"),
        ("a line separator in a text", b"ECHO a\xe2\x80\xa8b\n", b"+a\xe2\x80\xa8b\r\n"),
        ("an unknown verb", b"FROBNICATE x\n", b"-ERR unknown command"),
        ("HTTP after the first request", b"GET / HTTP/1.1\r\n", b"-ERR unknown command"),
        ("missing arguments", b"CONSUME\n", b"-BADARG "),
        ("an argument too many", consume + b"1 1\n", b"-BADARG "),
        ("a line end within a token", array("HELP", "a\nCONSUME " + user), b"-BADARG "),
        ("a space within a token", array("CONSUME", user + " 1"), b"-BADARG "),
        ("NUL within an array", array("CONSUME", user + "\0"), b"-BADARG "),
        ("an escape sequence", b"ECHO a\x1b[31mredb\n", b"-BADARG "),
        ("a cut sequence of UTF-8", b"ECHO a\xe2\x82b\n", b"-BADARG "),
        ("a surrogate in an array", array("HELP", b"a\xed\xa0\x80"), b"-BADARG "),
        ("an option given twice", consume + b"key=a KEY=a\n", b"-BADARG "),
        ("SQL as a user", b"CONSUME ';DROP\tTABLE\n", b"-BADARG "),
        ("SQL as a user in an array", array("CONSUME", "'; DROP TABLE message_usage; --"), b"-BADARG "),
        ("SQL as a key", array("RELEASE", user, "key='; DROP TABLE message_usage; --"), b"-NOTFOUND "),
        ("a parameter's name", b"CONSUME $1\n", b"-BADARG "),
        ("a format", b"CONSUME %s\n", b"-BADARG "),
        ("a user without hyphens", f"CONSUME {user.replace('-', '')}\n".encode(), b"-BADARG "),
        ("a user with a wide digit", f"CONSUME ７{user[1:]}\n".encode(), b"-BADARG "),
        ("no messages", consume + b"0\n", b"-BADARG "),
        ("more messages than an integer has", consume + str(2**64 + 1).encode() + b"\n", b"-BADARG "),
        ("messages in another script", consume + "１\n".encode(), b"-BADARG "),
        ("a month 13", f"USAGE {user} 2026-13\n".encode(), b"-BADARG "),
        ("an instant without end", array("SETPLAN", user, "paid", "expires=infinity"), b"-BADARG "),
        ("a state that does not exist", f"SETPLAN {user} paid state=vip\n".encode(), b"-BADARG "),
        ("a channel among good ones", f"SUBSCRIBE usage:{user} x\n".encode(), b"-BADARG "),
        ("a key of 128 bytes", release + b"key=" + b"k" * 128 + b"\n", b"-NOTFOUND "),
        ("a key of 129 bytes", release + b"key=" + b"k" * 129 + b"\n", b"-BADARG "),
    ]


def closes(user):
    """(name, bytes, beginning of the reply), also after other requests; then the connection is closed."""
    return [
        ("one byte over the limit", b"ECHO " + b"x" * 1_020 + b"\n", b"-TOOLONG "),
        ("one byte over the limit without its end", b"ECHO " + b"x" * 1_020 + b"x", b"-TOOLONG "),
        ("64 KiB without an end", b"x" * 65_536, b"-TOOLONG "),
        ("17 tokens", b"CLIENT" + b" x" * 16 + b"\n", b"-TOOLONG "),
        ("an array over the limit", array("ECHO", "x" * 1_020), b"-TOOLONG "),
        ("an array of 17 tokens", array("CLIENT", *["x"] * 16), b"-TOOLONG "),
        ("an element announced to be large", b"*1\r\n$1048576\r\n", b"-TOOLONG "),
        ("a negative count", b"*-1\r\n", b"-PROTOCOL "),
        ("a huge count", b"*99999999999999999999\r\n", b"-PROTOCOL "),
        ("a count ended by LF alone", b"*1\n$4\nPING\n", b"-PROTOCOL "),
        ("a null as an element", b"*1\r\n$-1\r\n$4\r\nPING\r\n", b"-PROTOCOL "),
        ("an integer element", b"*1\r\n:1\r\n", b"-PROTOCOL "),
        ("a nested array", b"*1\r\n*1\r\n$4\r\nPING\r\n", b"-PROTOCOL "),
        ("a length too short", b"*1\r\n$3\r\nPING\r\n", b"-PROTOCOL "),
        ("a length too long", b"*2\r\n$8\r\nCONSUME\r\n$36\r\n" + user.encode() + b"\r\n", b"-PROTOCOL "),
    ]


OPENINGS = [
    ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("HTTP's POST", b"POST /rpc HTTP/1.1\r\nContent-Length: 4\r\n\r\nPING"),
    ("TLS", TLS_CLIENT_HELLO),
    ("a PROXY header", b"PROXY TCP4 127.0.0.1 127.0.0.1 80 6747\r\nPING\r\n"),
    ("a binary PROXY header", PROXY_2 + b"PING\r\n"),
]
