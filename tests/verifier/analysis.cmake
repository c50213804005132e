# The analysis: abstract numbers against concrete ones, accepted random programs against the interpreter, the solver's part.
foreach(name domain soundness analysis inclusion)
  add_executable(test_${name} test_${name}.c)
  target_link_libraries(test_${name} PRIVATE fay_verifier PkgConfig::CMOCKA)
endforeach()
target_sources(test_soundness PRIVATE soundness_programs.c soundness_quotients.c soundness_forms.c silicon_forms.c silicon_native.c)
add_test(NAME verifier_domain COMMAND test_domain)
add_test(NAME verifier_soundness COMMAND test_soundness 2000)
add_test(NAME verifier_analysis COMMAND test_analysis)
add_test(NAME verifier_inclusion COMMAND test_inclusion)
set_tests_properties(verifier_domain verifier_soundness verifier_analysis verifier_inclusion PROPERTIES LABELS unit TIMEOUT 600)
target_compile_definitions(test_analysis PRIVATE PROLOGUE="${CMAKE_CURRENT_SOURCE_DIR}/corpus/prologue.s")

# The second opinion: proofs written out as SMT-LIB 2, each obligation asked of cvc5 and of z3's program. The long one takes all images.
add_test(NAME verifier_smt2_proofs COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/smt2_proofs ${CMAKE_SOURCE_DIR} $<TARGET_FILE:fay-verify> $<TARGET_FILE:fay-cc> 8)
set_tests_properties(verifier_smt2_proofs PROPERTIES LABELS integration TIMEOUT 1200 SKIP_RETURN_CODE 77)

# Reports as people and programs read them: golden files and the JSON schema.
add_test(NAME verifier_reports COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/reports ${CMAKE_SOURCE_DIR} $<TARGET_FILE:fay-verify>)
set_tests_properties(verifier_reports PROPERTIES LABELS unit TIMEOUT 300 SKIP_RETURN_CODE 77)

add_test(NAME verifier_policy_keys COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/policy_keys ${CMAKE_SOURCE_DIR} $<TARGET_FILE:fay-verify>)
set_tests_properties(verifier_policy_keys PROPERTIES LABELS unit TIMEOUT 300)
