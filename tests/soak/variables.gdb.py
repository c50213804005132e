# gdb -batch -x variables.gdb.py: at each address that $PLACES lists (JSON, by line: function,
# address), the values of the numbers and pointers that are seen from there, at its first $HITS
# stops; with $ENTRIES, where gdb says optimised out and the debug information names what a register
# held when the call began, what a breakpoint there saw in it. Writes a JSON object for each line
# and variable: line, name, values ("" where gdb says optimised out, or that it is a pointer that
# does not exist; a text of a char pointer's), place (what the debug information says of where it
# is).
import gdb, json, os, re

hits = int(os.environ["HITS"])
begun = {} # with ENTRIES set: registers at functions' beginnings, by where the frame is
seen, left, places = {}, {}, {}
codes = [gdb.TYPE_CODE_INT, gdb.TYPE_CODE_ENUM, gdb.TYPE_CODE_BOOL, gdb.TYPE_CODE_CHAR,
         gdb.TYPE_CODE_PTR]


def variables(frame):
    block, found = frame.block(), {}
    while block:
        for symbol in block:
            if (symbol.is_variable or symbol.is_argument) and \
                    symbol.addr_class != gdb.SYMBOL_LOC_LABEL and \
                    symbol.type.strip_typedefs().code in codes:
                found.setdefault(symbol.name, symbol)
        if block.function:
            break
        block = block.superblock
    return found


def text_at(address):
    """What fay shows of a char pointer: up to the first 0; nothing where nothing can be read."""
    text = b""
    while b"\0" not in text and len(text) < 256:
        try:
            text += gdb.selected_inferior().read_memory(address + len(text), 1).tobytes()
        except gdb.error:
            break
    text = text.split(b"\0")[0]
    try:
        return text.decode()
    except UnicodeDecodeError: # fay shows the bytes
        return text.decode("latin-1")


class Entry(gdb.Breakpoint):
    def stop(self):
        frame = gdb.newest_frame()
        begun[int(frame.read_register("rsp")) + 8] = {
            name: int(frame.read_register(name)) for name in
            ("rdi", "rsi", "rdx", "rcx", "r8", "r9")}
        return False


def value_at_entry(symbol, frame):
    """Of a variable that is a register's value at the call's beginning, and nothing else."""
    bare = re.search(r"DW_OP_(?:GNU_)?entry_value\s+2: DW_OP_reg\d+ \[\$(\w+)\]"
                     r"\s+3: DW_OP_stack_value\s*\.?\s*$", place_of(symbol.name, frame))
    while frame.type() == gdb.INLINE_FRAME:
        frame = frame.older()
    registers = begun.get(int(frame.older().read_register("rsp"))) if frame.older() else None
    if not bare or not registers or bare[1] not in registers:
        return symbol.value(frame)
    bits = 8 * symbol.type.sizeof
    return gdb.Value(registers[bare[1]] % 2 ** bits).cast(symbol.type)


def value_of(symbol, frame):
    try:
        value = symbol.value(frame)
        if value.is_optimized_out and begun:
            value = value_at_entry(symbol, frame)
        if value.is_optimized_out or "<synthetic pointer>" in value.format_string():
            return ""
        kind = value.type.strip_typedefs()
        if kind.code == gdb.TYPE_CODE_ENUM:
            return {"text": str(value)}
        if kind.code == gdb.TYPE_CODE_PTR:
            target = kind.target().strip_typedefs()
            if target.code == gdb.TYPE_CODE_INT and target.sizeof == 1:
                return {"text": text_at(int(value))}
        return str(int(value))
    except gdb.error:
        return ""


def names_of(frame):
    function = frame.function()
    return [function.name, function.linkage_name] if function else []


def place_of(name, frame):
    """What the debug information says of where the variable is at this address."""
    try:
        frame.select()
        said = gdb.execute("info address " + name, to_string=True)
    except gdb.error:
        return ""
    for part in re.split(r"(?=Range 0x)", said):
        found = re.match(r"Range (0x\w+)-(0x\w+)", part)
        if found and int(found[1], 16) <= frame.pc() < int(found[2], 16):
            return part
    return said


class Place(gdb.Breakpoint):
    def stop(self):
        frame, values = gdb.newest_frame(), seen.setdefault(self.line, {})
        while frame.type() == gdb.INLINE_FRAME and self.function not in names_of(frame):
            frame = frame.older() # a function begins there that the line calls
        for name, symbol in variables(frame).items():
            got = values.setdefault(name, [])
            if len(got) < hits:
                got.append(value_of(symbol, frame))
            if (self.line, name) not in places:
                places[self.line, name] = place_of(name, frame)
        left[self.line] -= 1
        if not left[self.line]:
            self.enabled = False
        return False


gdb.execute("set pagination off")
gdb.execute("set backtrace past-main on")
gdb.execute("set disable-randomization on")
# the same stack as without gdb
for name in "LINES", "COLUMNS", "PLACES", "HITS", "PROGRAM", "ENTRIES":
    gdb.execute("unset environment " + name)
gdb.execute("file " + os.environ["PROGRAM"])
gdb.execute("set startup-with-shell off") # it reads what gdb does
gdb.execute("starti") # where it lies is known then
base = int(gdb.execute("info proc mappings", to_string=True).split("0x")[1].split()[0], 16)
entries = set()
for line, (function, address) in json.load(open(os.environ["PLACES"])).items():
    block = gdb.block_for_pc(base + address) if "ENTRIES" in os.environ else None
    while block and not (block.function and block.superblock and block.superblock.is_static):
        block = block.superblock
    entry = int(block.function.value().address) if block else 0
    if entry and entry not in entries:
        entries.add(entry)
        Entry("*" + hex(entry))
    place = Place("*" + hex(base + address))
    place.line, place.function = line, function
    left[line] = hits
gdb.execute("continue")
for line, values in seen.items():
    for name, got in values.items():
        print("VALUES " + json.dumps({"line": line, "name": name, "values": got,
                                       "place": places[line, name]}))
