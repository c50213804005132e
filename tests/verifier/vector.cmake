# Vector instructions: every form of the table.
add_executable(test_vector test_vector.c vector_forms.c)
target_include_directories(test_vector PRIVATE ${CMAKE_SOURCE_DIR}/verifier)
target_link_libraries(test_vector PRIVATE fay_verifier PkgConfig::CMOCKA)
add_test(NAME verifier_vector COMMAND test_vector)
set_tests_properties(verifier_vector PROPERTIES LABELS unit TIMEOUT 300)
