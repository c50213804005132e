# Symbols and modules; the fixtures are a PIE, a non-PIE and a library with a versioned name.
add_library(fay_symbols_library SHARED targets/symbols_library.c)
set_target_properties(fay_symbols_library PROPERTIES OUTPUT_NAME faysym-1.2 SUFFIX .so.3)
foreach(kind pie nopie)
  add_executable(symbols_target_${kind} targets/symbols_target.c)
  target_link_libraries(symbols_target_${kind} PRIVATE fay_symbols_library)
  # No sanitizer in the fixtures: their addresses and mappings are what is tested.
  target_compile_options(symbols_target_${kind} PRIVATE -fno-sanitize=all -O1)
  target_link_options(symbols_target_${kind} PRIVATE -fno-sanitize=all)
endforeach()
target_compile_options(fay_symbols_library PRIVATE -fno-sanitize=all)
target_link_options(fay_symbols_library PRIVATE -fno-sanitize=all)
target_compile_options(symbols_target_pie PRIVATE -fPIE)
target_link_options(symbols_target_pie PRIVATE -pie)
target_compile_options(symbols_target_nopie PRIVATE -fno-pie)
target_link_options(symbols_target_nopie PRIVATE -no-pie)

add_executable(test_symbols names/test_symbols.c)
target_link_libraries(test_symbols PRIVATE fay_suggest PkgConfig::CMOCKA)
add_test(NAME loader-symbols COMMAND test_symbols $<TARGET_FILE:symbols_target_pie>
  $<TARGET_FILE:symbols_target_nopie>
  $<TARGET_FILE:fay_symbols_library>)
set_tests_properties(loader-symbols PROPERTIES LABELS unit TIMEOUT 120)

fay_add_fuzzer(fuzz_elf ${CMAKE_CURRENT_LIST_DIR}/fuzz_elf.c fay_suggest)
