# The corpus (corpus/, run_corpus.c).
add_executable(run_corpus run_corpus.c)
target_link_libraries(run_corpus PRIVATE fay_verifier)
foreach(group decoding vectors memory values flow helpers stack state liveness image relations
  remainders ranges rounds tables precision pointers inference mixed policy)
  add_test(NAME verifier_reject_${group} COMMAND run_corpus ${corpus}/prologue.s
    ${corpus}/reject/${group}.s.txt)
  set_tests_properties(verifier_reject_${group} PROPERTIES LABELS reject TIMEOUT 300)
endforeach()
add_test(NAME verifier_accept COMMAND run_corpus ${corpus}/prologue.s ${corpus}/accept/accept.s.txt
  ${corpus}/accept/vectors.s.txt ${corpus}/accept/relations.s.txt ${corpus}/accept/remainders.s.txt
  ${corpus}/accept/ranges.s.txt
         ${corpus}/accept/rounds.s.txt
         ${corpus}/accept/tables.s.txt ${corpus}/accept/helpers.s.txt
         ${corpus}/accept/precision.s.txt ${corpus}/accept/mixed.s.txt)
set_tests_properties(verifier_accept PROPERTIES LABELS unit TIMEOUT 300)
add_test(NAME verifier_remainders_exact COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/remainders_exact
  $<TARGET_FILE:run_corpus> ${corpus}/prologue.s)
set_tests_properties(verifier_remainders_exact PROPERTIES LABELS reject TIMEOUT 300)
