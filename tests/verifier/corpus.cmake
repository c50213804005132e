# The corpus (corpus/, run_corpus.c) and the check that each rule is documented and tested.
add_executable(run_corpus run_corpus.c)
target_link_libraries(run_corpus PRIVATE fay_verifier)
set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus)
foreach(group decoding vectors memory values flow helpers stack state liveness image relations remainders ranges rounds tables precision pointers inference mixed policy)
  add_test(NAME verifier_reject_${group} COMMAND run_corpus ${corpus}/prologue.s ${corpus}/reject/${group}.s.txt)
  set_tests_properties(verifier_reject_${group} PROPERTIES LABELS reject TIMEOUT 300)
endforeach()
add_test(NAME verifier_accept COMMAND run_corpus ${corpus}/prologue.s ${corpus}/accept/accept.s.txt ${corpus}/accept/vectors.s.txt ${corpus}/accept/relations.s.txt ${corpus}/accept/remainders.s.txt ${corpus}/accept/ranges.s.txt
         ${corpus}/accept/rounds.s.txt
         ${corpus}/accept/tables.s.txt ${corpus}/accept/helpers.s.txt ${corpus}/accept/precision.s.txt ${corpus}/accept/mixed.s.txt)
set_tests_properties(verifier_accept PROPERTIES LABELS unit TIMEOUT 300)
add_test(NAME verifier_remainders_exact COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/remainders_exact $<TARGET_FILE:run_corpus> ${corpus}/prologue.s)
set_tests_properties(verifier_remainders_exact PROPERTIES LABELS reject TIMEOUT 300)
add_test(NAME rules_complete COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/rules_complete ${CMAKE_SOURCE_DIR})
set_tests_properties(rules_complete PROPERTIES LABELS unit)
add_test(NAME classes_complete COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/classes_complete ${CMAKE_SOURCE_DIR})
set_tests_properties(classes_complete PROPERTIES LABELS unit)

add_test(NAME rules_examples COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/rules_examples ${CMAKE_SOURCE_DIR})
set_tests_properties(rules_examples PROPERTIES LABELS unit)

# A few checks that must be noticed when they go, by their text; scripts/mutate does all.
add_test(NAME verifier_mutants COMMAND ${CMAKE_SOURCE_DIR}/scripts/mutate --least 5
  ":guard:.*(write && .access->region|count66 > 1 |e_type != ET_DYN|fay_state_depth.an->current. & 15|mark == CFG_INTERIOR|v->kind != KIND_POINTER|status != SLOT_OK)")
set_tests_properties(verifier_mutants PROPERTIES LABELS long TIMEOUT 1800)
add_test(NAME verifier_mutants_all COMMAND ${CMAKE_SOURCE_DIR}/scripts/mutate)
set_tests_properties(verifier_mutants_all PROPERTIES LABELS long TIMEOUT 86400)
fay_tier(soak verifier_mutants_all)

# Accepted images are executed: random probes here, libFuzzer's below (FAY_FUZZ).
set(template ${CMAKE_CURRENT_BINARY_DIR}/template.fay)
add_custom_command(OUTPUT ${template}
  COMMAND as -I ${corpus} --defsym LOCAL=256 --defsym GLOBAL=64 -o template.o ${CMAKE_CURRENT_SOURCE_DIR}/template.S
  COMMAND ld -shared -nostdlib -z now -z noexecstack --build-id=none -o template.fay template.o
  DEPENDS template.S ${corpus}/prologue.s WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} VERBATIM)
add_custom_target(verifier_template ALL DEPENDS ${template})
add_library(verifier_soundness STATIC soundness.c native.c soundness_vector.c vector_forms.c vector_cpu.S)
target_include_directories(verifier_soundness PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(verifier_soundness PUBLIC fay_verifier)
add_executable(fuzz_accept fuzz_accept.c near_code.c near_idioms.c near_numbers.c near_probe.c)
target_link_libraries(fuzz_accept PRIVATE verifier_soundness)
add_dependencies(fuzz_accept verifier_template)
add_dependencies(fay_fuzzers fuzz_accept)
# Damaged images that are still accepted, on the CPU: the corpus's legal neighbours and the worked example.
add_executable(fuzz_native fuzz_native.c)
target_link_libraries(fuzz_native PRIVATE verifier_soundness)
add_dependencies(fay_fuzzers fuzz_native run_corpus verifier_example_image)
add_test(NAME verifier_native COMMAND sh -c "rm -rf native.images && mkdir native.images && \"$1\" --cache native.images \"$2/prologue.s\" \"$2\"/accept/*.s.txt && exec \"$3\" 20 1 native.images/*.fay count.fay"
  sh $<TARGET_FILE:run_corpus> ${corpus} $<TARGET_FILE:fuzz_native>)
set_tests_properties(verifier_native PROPERTIES LABELS fuzz-short TIMEOUT 600 WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

# The same for what compilers make: fay cc, gcc, clang, queries.
if(TARGET fay-cc AND TARGET fay_query)
  add_test(NAME verifier_native_compiled COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/native_compiled ${CMAKE_SOURCE_DIR} $<TARGET_FILE:fay-cc>
    $<TARGET_FILE:test_query_images> $<TARGET_FILE:fuzz_native> 10)
  set_tests_properties(verifier_native_compiled PROPERTIES LABELS integration TIMEOUT 900)
endif()

# The probes of a first seed that never changes; without one (by hand) each run has its own.
add_test(NAME verifier_accepted_is_sound COMMAND fuzz_accept ${template} 20 1)
set_tests_properties(verifier_accepted_is_sound PROPERTIES LABELS fuzz-short TIMEOUT 300)

if(COMMAND fay_add_fuzzer)
  fay_add_fuzzer(fuzz_code fuzz_code.c verifier_soundness)
  if(TARGET fuzz_code)
    target_compile_definitions(fuzz_code PRIVATE FAY_FUZZ_TEMPLATE="${template}")
    add_dependencies(fuzz_code verifier_template)
    target_link_options(fuzz_code PRIVATE -Wl,--wrap=fay_smt_ask,--wrap=fay_sha256)
  endif()
endif()

# Informational: how many ordinary C probes pass as each toolchain compiles them (a minute and a half).
add_test(NAME verifier_c_accept_rate COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/c_accept_rate ${CMAKE_SOURCE_DIR} $<TARGET_FILE:fay-verify>)
set_tests_properties(verifier_c_accept_rate PROPERTIES LABELS integration TIMEOUT 900)
