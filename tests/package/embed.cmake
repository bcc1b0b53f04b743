# cmake -DPREFIX=<install> -DWORK=<scratch folder> -DEXAMPLE=<examples/embed> -DCOMPILER=<c++> ... -P embed.cmake
#
# Copies the example of an embedded model away from the project, builds it there against what was installed, and has it
# say of images what the installed program says of them: in C++ and in C.
include(${CMAKE_CURRENT_LIST_DIR}/support.cmake)

file(REMOVE_RECURSE ${WORK})
file(COPY ${EXAMPLE}/ DESTINATION ${WORK}/project)
configure_outside(${WORK}/project ${WORK}/build "-DCMAKE_C_FLAGS=${FLAGS} -Wall -Wextra -Wpedantic -Wshadow -Werror")
run(${CMAKE_COMMAND} --build ${WORK}/build)

unset(ENV{LD_LIBRARY_PATH})
set(gpunn ${PREFIX}/bin/gpunn)
run(${gpunn} run ${PREFIX}/share/gpunn/experiments/lenet_digits.yaml --backend cpu --epochs 1
    --set data.synthetic_train=512 --set data.synthetic_test=64 --runs ${WORK}/runs --json)
string(REGEX MATCH "{\"event\":\"result\"[^\n]*" result "${output}")
string(JSON run GET "${result}" run)

set(images "")
set(expected "")
foreach(letter 0 A z)
  string(REPEAT "${letter}" 784 pixels)
  set(image ${WORK}/${letter}.pgm)
  file(WRITE ${image} "P5 28 28 255\n${pixels}")
  run(${gpunn} predict ${run} ${image} --top 1 --json)
  string(JSON name GET "${output}" 0 top 0 name)
  list(APPEND images ${image})
  string(APPEND expected "${image}: ${name}, [0-9.]+ %\n")
endforeach()
foreach(program classify classify_c)
  run(${WORK}/build/${program} ${run} ${images})
  expect("^${expected}$" "${program}: what the installed program predicts")
  execute_process(COMMAND ${WORK}/build/${program} ${run} ${WORK}/none.png RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(status EQUAL 0)
    message(FATAL_ERROR "${program} of a file that is not there should fail:\n${output}")
  endif()
  expect("none\\.png" "${program}: the file that is missing")
endforeach()
