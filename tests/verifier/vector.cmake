# Vector instructions: every form of the table.
add_executable(test_vector test_vector.c vector_forms.c)
target_link_libraries(test_vector PRIVATE fay_verifier PkgConfig::CMOCKA)
add_test(NAME verifier_vector COMMAND test_vector)
set_tests_properties(verifier_vector PROPERTIES LABELS unit TIMEOUT 300)

# The table against the CPU: 10,000 cases a form.
add_executable(test_vector_cpu test_vector_cpu.c vector_cpu.S vector_forms.c)
target_compile_options(test_vector_cpu PRIVATE -O2)
target_link_libraries(test_vector_cpu PRIVATE fay_verifier)
add_test(NAME verifier_vector_cpu COMMAND test_vector_cpu 10000)
set_tests_properties(verifier_vector_cpu PROPERTIES LABELS long TIMEOUT 900 SKIP_RETURN_CODE 77)

# docs/vectors.md is the table.
add_executable(print_vectors print_vectors.c)
target_link_libraries(print_vectors PRIVATE fay_verifier)
add_test(NAME verifier_vector_docs COMMAND sh -c "\"$1\" | diff - \"$2\" && echo same" sh $<TARGET_FILE:print_vectors> ${CMAKE_SOURCE_DIR}/docs/vectors.md)
set_tests_properties(verifier_vector_docs PROPERTIES LABELS unit)
