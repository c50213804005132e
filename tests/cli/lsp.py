#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lsp.py FAY: a client of `fay lsp` that says what it does not believe."""
import json
import os
import resource
import subprocess
import sys
import tempfile

fay = sys.argv[1]
work = tempfile.TemporaryDirectory()


def fail(why):
    sys.exit(f"FAIL: {why}")


def equal(what, wanted, got):
    if wanted != got:
        fail(f"{what}: wanted {wanted!r}, got {got!r}")
    print(f"ok: {what}")


class Client:
    def __init__(self, *options, begin=True):
        self.process = subprocess.Popen(
            [fay, "lsp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, cwd=work.name)
        self.number = 0
        self.told = []
        if begin:
            answer = self.ask("initialize", {"capabilities": {}})
            self.capabilities = answer["result"]["capabilities"]
            self.tell("initialized", {})

    def send(self, body):
        self.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self):
        size = None
        while (line := self.process.stdout.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name == b"Content-Length":
                size = int(value)
        return json.loads(self.process.stdout.read(size)) if size is not None else None

    def tell(self, method, params):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.send(json.dumps(message).encode())

    def ask(self, method, params=None):
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.send(json.dumps(message).encode())
        return self.answer(self.number)

    def answer(self, number):
        while (message := self.read()) is not None:
            if message.get("id", -1) == number and "method" not in message:
                return message
            self.told.append(message)
        fail(f"no answer to {number}: {self.process.stderr.read()!r}")

    def code(self, method, params=None):
        return self.ask(method, params)["error"]["code"]

    def diagnostics(self, uri):
        while True:
            for at, message in enumerate(self.told):
                if message["method"] == "textDocument/publishDiagnostics" and \
                        message["params"]["uri"] == uri:
                    return self.told.pop(at)["params"]["diagnostics"]
            self.told.append(self.read() or fail("no diagnostics"))

    def open(self, text, uri="file:///a.linq"):
        self.tell("textDocument/didOpen", {"textDocument": {
            "uri": uri, "languageId": "faylinq", "version": 1, "text": text}})
        return self.diagnostics(uri)

    def change(self, text, uri="file:///a.linq"):
        self.tell("textDocument/didChange", {
            "textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": text}]})
        return self.diagnostics(uri)

    def at(self, method, line, character, uri="file:///a.linq"):
        return self.ask(f"textDocument/{method}", {
            "textDocument": {"uri": uri}, "position": {"line": line, "character": character}})

    def complete(self, text):
        """The names that may stand at the `|` in a query file."""
        self.change(text)
        lines = text.split("|")[0].split("\n")
        self.change(text.replace("|", ""))
        return self.at("completion", len(lines) - 1, len(lines[-1]))["result"]

    def end(self):
        self.ask("shutdown")
        self.tell("exit", None)
        return self.finish()

    def finish(self):
        self.process.stdin.close()
        code = self.process.wait(60)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


def span(diagnostic):
    start, end = diagnostic["range"]["start"], diagnostic["range"]["end"]
    return start["line"], start["character"], end["line"], end["character"]


def mistakes():
    client = Client()
    equal("whole texts are sent", 1, client.capabilities["textDocumentSync"]["change"])
    good = 'from s in cluster.Syscall("*")\nwhere s.comm == "a"\nselect s.pid\n'
    equal("nothing is wrong", [], client.open(good))
    [wrong] = client.change(good.replace("comm", "comn"))
    equal("a field's place", (1, 8, 1, 12), span(wrong))
    equal("what was meant", "unknown field `comn` of event `s`; did you mean `comm`?",
          wrong["message"])
    equal("it is an error", (1, "fay"), (wrong["severity"], wrong["source"]))
    equal("mended", [], client.change(good))
    # behind a parameter whose value is longer than its name, and characters of two UTF-16 units
    [wrong] = client.change('param c = "a long name" // \U0001f600\n'
                            'from s in cluster.Syscall("*") /* \U0001f600é */ '
                            'where s.comm == "$c" && s.piq == 1 select s.pid')
    equal("behind a parameter", (1, 67, 1, 70), span(wrong))
    [wrong] = client.change('param c = "a"\nparam c = "b"\ncluster.Syscall("$c").Count()')
    equal("a declaration", (1, 0, 1, 13), span(wrong))
    [wrong] = client.change('cluster.Syscall("$nothing").Count()')
    equal("no such parameter", (0, 0, 0, 35), span(wrong))
    [wrong] = client.change("from s in cluster.Syscall(\"*\")\ngrup s by s.pid into g select g.Key")
    equal("a clause", (1, 0, 1, 4), span(wrong))
    if "did you mean `group`?" not in wrong["message"]:
        fail(wrong["message"])
    [wrong] = client.change("")
    equal("an empty file", (0, 0, 0, 0), span(wrong))
    equal("a zero byte is one mistake", 1, len(client.change("a\0b")))
    extend = 'extend "nothing.c";\ncluster.Syscall("*").Count()'
    equal("C is not compiled", 2, client.change(extend)[0]["severity"])
    client.tell("textDocument/didClose", {"textDocument": {"uri": "file:///a.linq"}})
    equal("closed", [], client.diagnostics("file:///a.linq"))
    equal("no file of that name", -32602, client.at("hover", 0, 0)["error"]["code"])
    equal("ends well", 0, client.end())


def names():
    client = Client()
    client.open("")
    labels = lambda text: {i["label"]: i for i in client.complete(text)["items"]}
    query = '// what\nparam c = "*"\nfrom s in cluster.Syscall("$c")\n'
    equal("the begin", ["from"], list(labels("// what\nfr|")))
    equal("a source", {"Syscall"}, set(labels("cluster.Sys|")))
    equal("clauses", {"where"}, set(labels(query + "wh|")))
    found = labels(query + "where s.Dur| select s.pid")
    equal("a field", ["Duration"], list(found))
    item = found["Duration"]
    equal("its edit", {"range": {"start": {"line": 3, "character": 8},
                                 "end": {"line": 3, "character": 11}}, "newText": "Duration"},
          item["textEdit"])
    if "nanoseconds since the call began" not in item["documentation"]["value"]:
        fail(item)
    found = labels(query + "group s by s.comm into g select new { n = g.|")
    for name in "Key", "Count", "Quantile", "Histogram":
        name in found or fail(f"no {name} of a group: {list(found)}")
    equal("a method", 2, found["Quantile"]["kind"])
    found = labels('cluster.Syscall("pread|')
    equal("system calls", {"pread64", "preadv", "preadv2"}, set(found))
    equal("in a comment", {}, labels("// clus|"))
    client.change(query + "where s.Duration > 5ms select s.comm")
    hover = lambda line, column: client.at("hover", line, column)["result"]
    text = hover(3, 10)["contents"]["value"]
    text.startswith("This is an integer.") and "since the call began" in text or fail(text)
    equal("the word", (3, 8, 3, 16), span(hover(3, 10)))
    for place, what in ((1, 2), None), ((0, 2), None):
        equal(f"nothing at {place}", what, hover(*place))
    for place, what in (((3, 2), "several are one with"), ((3, 33), "This is a string"),
                        ((2, 20), "system calls"), ((2, 1), "BPF")):
        text = hover(*place)["contents"]["value"]
        what in text or fail(f"no '{what}' at {place}: {text}")
    equal("ends well", 0, client.end())


def places():
    """Where names come from: parameters, variables, C files, functions in these."""
    uri = f"file://{work.name}/q%20x.linq"
    with open(f"{work.name}/my sizes.c", "w") as file:
        file.write('/* kib(x) */\nlong kib(long x);\nlong other(long kib)\n{ return kib; }\n'
                   'long kib(long x)\n{\n\treturn x / 1024;\n}\n')
    os.mkfifo(f"{work.name}/pipe.c")
    text = ('param call = "read"\nextend "my sizes.c"\nextend "pipe.c"\n'
            'from s in cluster.Syscall("$call")\nlet size = kib(s.count)\n'
            'group size by s.comm into g\nselect new { g.Key, n = g.Count(s => s > 1), nil = x }\n')
    client = Client()
    client.open(text, uri)

    def at(line, word, more=0):
        column = text.split("\n")[line].index(word) + more
        found = client.at("definition", line, column, uri)["result"]
        return found and (found["uri"].removeprefix(f"file://{work.name}/"), span(found))

    own = "q%20x.linq"
    equal("a parameter's", (own, (0, 6, 0, 10)), at(3, "$call", 1))
    equal("a variable's", (own, (3, 5, 3, 6)), at(4, "s.count"))
    equal("of let", (own, (4, 4, 4, 8)), at(5, "size"))
    equal("of into", (own, (5, 26, 5, 27)), at(6, "g.Count"))
    equal("of a lambda", (own, (6, 32, 6, 33)), at(6, "s > 1"))
    equal("no field's", None, at(6, "Key", 1))
    equal("none of what is nowhere", None, at(6, "x }"))
    equal("a file's", ("my%20sizes.c", (0, 0, 0, 0)), at(1, "sizes", 2))
    equal("a C function's", ("my%20sizes.c", (4, 5, 4, 8)), at(4, "kib", 1))
    equal("ends well", 0, client.end())


def order():
    client = Client(begin=False)
    equal("before initialize", -32002, client.code("textDocument/hover", {}))
    client.tell("textDocument/didOpen", {})
    equal("no method before initialize", -32002, client.code("nothing"))
    client.ask("initialize", {})
    equal("a second initialize", -32600, client.code("initialize", {}))
    equal("no such method", -32601, client.code("workspace/nothing"))
    equal("an exit with a number", -32600, client.code("textDocument/didOpen"))
    client.tell("$/cancelRequest", {"id": 1})
    client.tell("textDocument/didOpen", {"textDocument": {"uri": 5, "text": []}})
    client.tell("textDocument/didChange", {"textDocument": {"uri": "file:///none"}})
    equal("parameters that are none", -32602, client.code("textDocument/completion", [1]))
    client.open("cluster")
    equal("no position", -32602, client.at("hover", -1, 0)["error"]["code"])
    equal("a position of no integer", -32602, client.at("hover", 1e300, 0)["error"]["code"])
    equal("a position behind the end", None, client.at("hover", 2**31 - 1, 2**31 - 1)["result"])
    client.tell("textDocument/didChange", {
        "textDocument": {"uri": "file:///a.linq"}, "contentChanges": [
            {"range": {"start": {"line": 0, "character": 0},
                       "end": {"line": 0, "character": 1}}, "text": "x"}]})
    for body, code in ((b"{", -32700), (b"", -32700), (b"[" * 100000, -32700), (b"[]", -32600),
                       (b"[" + b"0," * 400000 + b"0]", -32700), (b"null", -32600),
                       (b'{"jsonrpc":"2.0","id":{},"method":"a"}', -32600),
                       (b'{"jsonrpc":"1.0","id":1,"method":"a"}', -32600),
                       (b'{"jsonrpc":"2.0","id":1,"method":"\\ud8"}', -32700),
                       (b'{"jsonrpc":"2.0","id":01,"method":"a"}', -32700),
                       (b'{"jsonrpc":"2.0","id":"' + b"a" * 300 + b'","method":"a"}', -32600)):
        client.send(body)
        answer = client.answer(None)
        equal(f"{body[:40]!r}", code, answer["error"]["code"])
    client.send(b'{"jsonrpc":"2.0","id":"\\u0041\\"","method":"a"}')
    equal("a text as number", -32601, client.answer('A"')["error"]["code"])
    client.send(b'{"method":"textDocument\\/hover","\\u0069d":"b","jsonrpc":"2.0"}')
    equal("escapes that need not be", -32602, client.answer("b")["error"]["code"])
    client.ask("shutdown")
    equal("after shutdown", -32600, client.code("textDocument/hover", {}))
    client.tell("exit", None)
    equal("shut down", 0, client.finish())
    client = Client()
    client.tell("exit", None)
    equal("an exit without shutdown", 1, client.finish())
    equal("an end without exit", 1, Client().finish())


def frames():
    for data, why in ((b"Content-Length: 99999999999999999\r\n\r\n", "32 MiB"),
                      (b"Content-Length: 9999999999999999999999999\r\n\r\n", "Content-Length"),
                      (b"Content-Length: -1\r\n\r\n", "Content-Length"),
                      (b"Content-Length: \r\n\r\n", "Content-Length"),
                      (b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "Content-Length"),
                      (b"Content-Type: a\r\n\r\n{}", "Content-Length"),
                      (b"\0" * 70000, "4096"), (b"a: " + b"b" * 5000 + b"\r\n\r\n", "4096"),
                      (b"Content-Length: 5\r\n\r\n{}", "end of the input"),
                      (b"Content-Le", "end of the input")):
        run = subprocess.run([fay, "lsp"], input=data, capture_output=True, timeout=60)
        equal(f"{data[:40]!r} ends it", 2, run.returncode)
        b'"code":-32700' in run.stdout and why.encode() in run.stderr or fail(run)


def sizes():
    client = Client()
    for text in "x" * 10_000_000, "\n" * 10_000_000, '"' * 10_000_000, "é" * 40_000:
        [wrong] = client.open(text, f"file:///{text[0]}")
        equal("a text of 10 MB", "a query has at most 65536 bytes", wrong["message"])
        equal("no completion", [], client.at("completion", 1, 1, f"file:///{text[0]}")
              ["result"]["items"])
    equal("as long as it may be", 1, len(client.open("(" * 65536)))
    for number in range(260):
        client.tell("textDocument/didOpen", {"textDocument": {
            "uri": f"file:///{number}", "text": "cluster"}})
    equal("256 files are open", 1, len(client.diagnostics("file:///250")))
    equal("not more", -32602, client.at("hover", 0, 0, "file:///259")["error"]["code"])
    if not any("more than 256 files" in str(message) for message in client.told):
        fail("nothing is said of a file that is not checked")
    equal("ends well", 0, client.end())
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    most < 500_000 or "asan" in fay or fail(f"{most} KiB")


mistakes()
names()
places()
order()
frames()
sizes()
