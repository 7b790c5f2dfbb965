# SPDX-License-Identifier: Apache-2.0
"""Talks to redis in its own protocol: python redis_client.py PORT."""
import socket
import sys


def ask(file, *words):
    file.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
    file.flush()
    return read(file)


def read(file):
    line = file.readline()
    kind, rest = line[:1], line[1:].strip()
    if kind == b"$":
        return file.read(int(rest) + 2)[:-2] if int(rest) >= 0 else None
    if kind == b"*":
        return [read(file) for _ in range(int(rest))]
    return rest


with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 30) as connection, connection.makefile("rwb") as file:
    for n in range(2000):
        ask(file, b"RPUSH", b"list", b"%d" % (n * 7919 % 2003))
        ask(file, b"SET", b"key%d" % n, b"x" * (n % 97))
    print(ask(file, b"SORT", b"list", b"LIMIT", b"0", b"5"), ask(file, b"DBSIZE"), ask(file, b"STRLEN", b"key96"))
    print(ask(file, b"EVAL", b"local n = 0 for i = 1, 200000 do n = n + i % 7 end return n", b"0"))
