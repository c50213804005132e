#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""serve.py DATABASE LIBRARY PORT   a database for clients on this machine

LIBRARY is fay_sqlite.so. A client sends statements, one a line; the answer to each is a line of
JSON: {"rows": [...]} or {"error": "..."}.
"""
import json
import socketserver
import sqlite3
import sys

DATABASE, LIBRARY, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
LINE = 1 << 18  # bytes of a statement


def permitted(action, *_):
    """Statements read and write this database, and no other file."""
    refused = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA)
    return sqlite3.SQLITE_DENY if action in refused else sqlite3.SQLITE_OK


class Client(socketserver.StreamRequestHandler):
    """Has a connection to the database of its own, and so its own extensions."""

    def handle(self):
        database = sqlite3.connect(DATABASE, isolation_level=None)
        database.enable_load_extension(True)
        database.load_extension(LIBRARY)
        database.enable_load_extension(False)
        database.set_authorizer(permitted)
        while line := self.rfile.readline(LINE):
            try:
                answer = {'rows': database.execute(line.decode()).fetchall()}
            except (sqlite3.Error, UnicodeDecodeError) as error:
                answer = {'error': str(error)}
            self.wfile.write(json.dumps(answer, default=bytes.hex).encode() + b'\n')
        database.close()


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


with Server(('127.0.0.1', PORT), Client) as server:
    server.serve_forever()
