# Writes OUTPUT, a C file that says of which commit this is built: COMMIT, or what git says of
# SOURCE, or nothing. Run by each build; the file is only written anew when it would change.
cmake_minimum_required(VERSION 3.25)
if(NOT COMMIT)
  execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE COMMIT
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "extern const char fay_commit[];
const char fay_commit[] = \"@COMMIT@\";
" @ONLY)
