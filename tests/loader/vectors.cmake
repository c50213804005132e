# Vector probes in a live process.
set(vector_images)
foreach(which RANGE 1 5)
  set(image ${CMAKE_CURRENT_BINARY_DIR}/vectors${which}.fay)
  add_custom_command(OUTPUT ${image}
    COMMAND as -I ${CMAKE_SOURCE_DIR}/tests/verifier/corpus --defsym LOCAL=64 --defsym GLOBAL=64
    --defsym WHICH=${which} -o vectors${which}.o
            ${CMAKE_CURRENT_SOURCE_DIR}/vectors/probes.S
    COMMAND ld -shared -nostdlib -z now -z noexecstack --build-id=none -o vectors${which}.fay
    vectors${which}.o
    DEPENDS vectors/probes.S ${CMAKE_SOURCE_DIR}/tests/verifier/corpus/prologue.s
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} VERBATIM)
  list(APPEND vector_images ${image})
endforeach()
add_custom_target(loader_vector_images ALL DEPENDS ${vector_images})

add_executable(vectors-target vectors/target.c)
target_compile_options(vectors-target PRIVATE -fno-sanitize=all -fcf-protection=none -O2)
target_link_options(vectors-target PRIVATE -fno-sanitize=all)
set_target_properties(vectors-target PROPERTIES RUNTIME_OUTPUT_DIRECTORY
  ${CMAKE_CURRENT_BINARY_DIR})

add_executable(test_vectors test_vectors.c harness.c probes.S)
target_include_directories(test_vectors PRIVATE ${CMAKE_SOURCE_DIR}/loader)
target_compile_definitions(test_vectors PRIVATE VECTOR_IMAGES="${CMAKE_CURRENT_BINARY_DIR}"
  VECTOR_TARGET="$<TARGET_FILE:vectors-target>"
  TARGET_PROGRAM="$<TARGET_FILE:vectors-target>" BARE_PROGRAM="$<TARGET_FILE:vectors-target>")
target_link_libraries(test_vectors PRIVATE fay_loader fay_verifier PkgConfig::CMOCKA)
add_dependencies(test_vectors vectors-target loader_vector_images)
add_test(NAME loader_vectors COMMAND ${alone} $<TARGET_FILE:test_vectors>)
set_tests_properties(loader_vectors PROPERTIES LABELS integration TIMEOUT 180 SKIP_RETURN_CODE 77)
