"""Malformed requests with their expected replies: the tables of tests/bad_input.py."""

from .wire import array

TLS_CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(32)) * 6
PROXY_2 = bytes.fromhex("0d0a0d0a000d0a515549540a") + b"\x21\x11\x00\x0c\x7f\x00\x00\x01\x7f\x00\x00\x01\x00\x50\x1a\x5b"


def stays_open(user):
    """(name, bytes, beginning of the reply); the connection stays open. None: no reply."""
    consume = b"CONSUME " + user.encode()
    rows = [
        ("an empty line", b"\n", None),
        ("an empty line of a terminal", b"\r\n", None),
        ("spaces only", b"   \n", None),
        ("a tab only", b"\t\r\n", None),
        ("an empty array", b"*0\r\n", None),
        ("a CR in the middle", b"PING\rPING\n", b"-BADARG "),
        ("CR CR LF", b"PING\r\r\n", b"-BADARG "),
        ("exactly the limit", b"ECHO " + b"x" * 1_019 + b"\n", b"+xxxx"),
        ("exactly the limit and CRLF", b"ECHO " + b"x" * 1_019 + b"\r\n", b"+xxxx"),
        ("exactly the limit in an array", array("ECHO", "x" * 1_019), b"$1019\r\nxxxx"),
        ("16 tokens", b"COMMAND" + b" DOCS" + b" x" * 14 + b"\n", b"*0"),
        ("tabs and many spaces between tokens", b"\t ECHO \t  a \t\n", b"+a\r\n"),
        ("an unknown verb", b"FROBNICATE x\n", b"-ERR unknown command"),
        ("an empty verb in an array", array("", "x"), b"-ERR unknown command"),
        ("a verb with a letter more", b"PINGX\n", b"-ERR unknown command"),
        ("HTTP after the first request", b"GET / HTTP/1.1\r\n", b"-ERR unknown command"),
        ("a byte order mark", b"\xef\xbb\xbfPING\n", b"-ERR unknown command"),
        ("a line separator in a text", b"ECHO a\xe2\x80\xa8b\n", b"+a\xe2\x80\xa8b\r\n"),
        ("missing arguments", b"CONSUME\n", b"-BADARG "),
        ("an argument too many", consume + b" 1 1\n", b"-BADARG "),
        ("a missing plan", b"SETPLAN " + user.encode() + b"\n", b"-BADARG "),
        ("a line end within a token", array("HELP", "a\nCONSUME " + user), b"-BADARG "),
        ("a space within a token", array("CONSUME", user + " 1"), b"-BADARG "),
        ("an empty token", array("CONSUME", ""), b"-BADARG "),
        ("NUL within an array", array("CONSUME", user + "\0"), b"-BADARG "),
        ("an option that does not exist", consume + b" limit=5\n", b"-BADARG "),
        ("an option given twice", b"SETPLAN " + user.encode() + b" paid anchor=1 anchor=2\n", b"-BADARG "),
        ("an argument after an option", b"SETPLAN " + user.encode() + b" anchor=1 paid\n", b"-BADARG "),
        ("an option without a name", consume + b" =5\n", b"-BADARG "),
        ("SQL as a user", b"CONSUME ';DROP\tTABLE\n", b"-BADARG "),
        ("SQL as a user in an array", array("CONSUME", "'; DROP TABLE message_usage; --"), b"-BADARG "),
        ("a parameter's name", b"CONSUME $1\n", b"-BADARG "),
        ("a format", b"CONSUME %s\n", b"-BADARG "),
        ("a format as a plan", b"SETPLAN " + user.encode() + b" %s\n", b"-BADARG "),
        ("a month 13", b"USAGE " + user.encode() + b" 2026-13\n", b"-BADARG "),
        ("a month in another script", f"USAGE {user} ٢٠٢٦-01\n".encode(), b"-BADARG "),
        ("a period that looks like an option", b"USAGE " + user.encode() + b" a=b\n", b"-BADARG "),
        ("an anchor day 32", b"SETPLAN " + user.encode() + b" paid anchor=32\n", b"-BADARG "),
        ("a state that does not exist", b"SETPLAN " + user.encode() + b" paid state=vip\n", b"-BADARG "),
        ("months 0", b"HISTORY " + user.encode() + b" 0\n", b"-BADARG "),
        ("months 1201", b"HISTORY " + user.encode() + b" 1201\n", b"-BADARG "),
        ("another database", b"SELECT 1\n", b"-BADARG "),
        ("a channel without a user", b"SUBSCRIBE usage:\n", b"-BADARG "),
        ("a channel of another kind", b"SUBSCRIBE news:" + user.encode() + b"\n", b"-BADARG "),
        ("a channel among good ones", b"SUBSCRIBE usage:" + user.encode() + b" x\n", b"-BADARG "),
        ("a period without end", b"USAGE " + user.encode() + b" -infinity\n", b"-BADARG "),
        ("top of none", b"TOP 0\n", b"-BADARG "),
        ("top of too many", b"TOP 2026-11 1001\n", b"-BADARG "),
        ("a key of 128 bytes", b"RELEASE " + user.encode() + b" key=" + b"k" * 128 + b"\n", b"-NOTFOUND "),
        ("a key of 129 bytes", b"RELEASE " + user.encode() + b" key=" + b"k" * 129 + b"\n", b"-BADARG "),
        ("a key of 129 bytes in 128 letters", f"RELEASE {user} key=é{'k' * 127}\n".encode(), b"-BADARG "),
        ("an empty key", consume + b" key=\n", b"-BADARG "),
        ("a key given twice", consume + b" key=a KEY=a\n", b"-BADARG "),
        ("no key where there must be one", b"RESERVE " + user.encode() + b"\n", b"-BADARG "),
        ("SQL as a key", array("RELEASE", user, "key='; DROP TABLE message_usage; --"), b"-NOTFOUND "),
        ("a hold of no time", b"RESERVE " + user.encode() + b" key=a ttl=0\n", b"-BADARG "),
        ("a hold of a day and a second", b"RESERVE " + user.encode() + b" key=a ttl=86401\n", b"-BADARG "),
        ("an empty reason", b"GRANT " + user.encode() + b" 5 key=a reason=\n", b"-BADARG "),
        ("a proto of HELLO that does not exist", b"HELLO 99999999999999999999\n", b"-BADARG "),
    ]
    for instant in ("infinity", "now", "2026-02-30", "2026-03-15T25:00:00Z", "1", "", "0000-00-00", "2026-03-15 00:00"):
        request = array("SETPLAN", user, "paid", "expires=" + instant)
        rows.append((f"the instant {instant!r}", request, b"-BADARG "))
    for control in [*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F]:
        rows.append((f"the byte {control:#04x}", b"ECHO a" + bytes([control]) + b"b\n", b"-BADARG "))
    for name, data in [
        ("an escape sequence", b"\x1b[31mred"), ("an overlong form", b"\xc0\xaf"), ("a lone continuation", b"\x80"),
        ("a surrogate", b"\xed\xa0\x80"), ("beyond the last code point", b"\xf4\x90\x80\x80"), ("a cut sequence", b"\xe2\x82"),
        ("a C1 control", b"\xc2\x9b31m"), ("0xFF", b"\xff"),
    ]:  # fmt: skip
        rows.append((name, b"ECHO a" + data + b"\n", b"-BADARG "))
        rows.append((name + " in an array", array("HELP", b"a" + data), b"-BADARG "))
    for number in [
        "0", "-1", "+1", "01", "00", "1e3", "0x1", "1.0", "1,000", "1_000", "1000001", str(2**31), str(2**32 + 1),
        str(2**63 - 1), str(2**63), str(2**64 + 1), "9" * 40, "١", "１", "²", "NaN", "one", "--1", "1;",
    ]:  # fmt: skip
        rows.append((f"n {number}", consume + b" " + number.encode() + b"\n", b"-BADARG "))
    rows.append(("an empty n", array("CONSUME", user, ""), b"-BADARG "))
    for wrong in [
        user[:-1], user + "0", user.replace("-", ""), "{" + user + "}", "urn:uuid:" + user, user[:-1] + "g", user.replace("-", "_"),
        "-" * 36, "null", "1", "me", "７" + user[1:], user[:-3] + "７", user[:8] + "-" + user[8:-1],
    ]:  # fmt: skip
        rows.append((f"the user {wrong}", f"CONSUME {wrong}\n".encode(), b"-BADARG "))
    return rows


def closes(user):
    """(name, bytes, beginning of the reply), also after other requests; then the connection is closed."""
    return [
        ("one byte over the limit", b"ECHO " + b"x" * 1_020 + b"\n", b"-TOOLONG "),
        ("one byte over the limit without its end", b"ECHO " + b"x" * 1_020 + b"x", b"-TOOLONG "),
        ("64 KiB without an end", b"x" * 65_536, b"-TOOLONG "),
        ("64 KiB of spaces without an end", b" " * 65_536, b"-TOOLONG "),
        ("17 tokens", b"CLIENT" + b" x" * 16 + b"\n", b"-TOOLONG "),
        ("an array over the limit", array("ECHO", "x" * 1_020), b"-TOOLONG "),
        ("an array of 17 tokens", array("CLIENT", *["x"] * 16), b"-TOOLONG "),
        ("an array announced to be large", b"*1048576\r\n", b"-TOOLONG "),
        ("an element announced to be large", b"*1\r\n$1048576\r\n", b"-TOOLONG "),
        ("a negative count", b"*-1\r\n", b"-PROTOCOL "),
        ("a huge count", b"*99999999999999999999\r\n", b"-PROTOCOL "),
        ("no count", b"*\r\n", b"-PROTOCOL "),
        ("a count that is no number", b"*x\r\n", b"-PROTOCOL "),
        ("a count with a sign", b"*+1\r\n", b"-PROTOCOL "),
        ("a count with a leading zero", b"*01\r\n", b"-PROTOCOL "),
        ("a count with a space", b"* 1\r\n", b"-PROTOCOL "),
        ("a count ended by LF alone", b"*1\n$4\nPING\n", b"-PROTOCOL "),
        ("a negative length", b"*1\r\n$-1\r\n", b"-PROTOCOL "),
        ("a huge length", b"*1\r\n$99999999999999999999\r\n", b"-PROTOCOL "),
        ("no length", b"*1\r\n$\r\n", b"-PROTOCOL "),
        ("a length that is no number", b"*1\r\n$x\r\n", b"-PROTOCOL "),
        ("an integer element", b"*1\r\n:1\r\n", b"-PROTOCOL "),
        ("a nested array", b"*1\r\n*1\r\n$4\r\nPING\r\n", b"-PROTOCOL "),
        ("an element without its kind", b"*1\r\nPING\r\n", b"-PROTOCOL "),
        ("a length too short", b"*1\r\n$3\r\nPING\r\n", b"-PROTOCOL "),
        ("a length too long", b"*2\r\n$8\r\nCONSUME\r\n$36\r\n" + user.encode() + b"\r\n", b"-PROTOCOL "),
        ("a bulk ended by CR and something else", b"*1\r\n$4\r\nPING\rx", b"-PROTOCOL "),
        ("a length with a leading zero", b"*1\r\n$04\r\nPING\r\n", b"-PROTOCOL "),
        ("a null as an element", b"*1\r\n$-1\r\n$4\r\nPING\r\n", b"-PROTOCOL "),
        ("an array as the second element", b"*2\r\n$4\r\nECHO\r\n*0\r\n", b"-PROTOCOL "),
        ("a count in another script", "*٣\r\n".encode(), b"-PROTOCOL "),
        ("a bulk ended by LF alone", b"*1\r\n$4\r\nPING\n\n", b"-PROTOCOL "),
    ]


OPENINGS = [
    ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ("HTTP's POST", b"POST /rpc HTTP/1.1\r\nContent-Length: 4\r\n\r\nPING"),
    ("TLS", TLS_CLIENT_HELLO),
    ("a PROXY header", b"PROXY TCP4 127.0.0.1 127.0.0.1 80 6747\r\nPING\r\n"),
    ("a binary PROXY header", PROXY_2 + b"PING\r\n"),
]
