# The page as C strings: page_NAME is what stands before @NAME@, and page_end what is behind the last.
function quoted(text) { gsub(/\\/, "\\\\", text); gsub(/"/, "\\\"", text); return "\"" text "\"" }
function flush_as(name) { printf "static const char page_%s[] =\n%s;\n", name, parts; parts = "" }
{
	line = $0
	while ((at = match(line, /@[A-Z]+@/))) {
		parts = parts quoted(substr(line, 1, at - 1))
		name = tolower(substr(line, at + 1, RLENGTH - 2))
		line = substr(line, at + RLENGTH)
		flush_as(name)
	}
	parts = parts quoted(line) "\"\\n\"\n"
}
END { flush_as("end") }
