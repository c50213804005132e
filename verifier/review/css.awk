# A style sheet as lines of a C string.
{ gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); print "\"" $0 "\\n\"" }
