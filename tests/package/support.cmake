# run(<command>...): fails with the command's output where it fails; leaves the output in `output`.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "'${command}' failed (${status}):\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

# expect(<regular expression> <what it is about>): of the last output.
function(expect pattern where)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "${where}: expected '${pattern}' in:\n${output}")
  endif()
endfunction()

# configure_outside(<source> <build> [-D...]): a project that knows nothing of gpunn but where it was installed.
function(configure_outside source build)
  run(${CMAKE_COMMAND} -S ${source} -B ${build} -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${PREFIX}
      -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
      "-DCMAKE_CXX_FLAGS=${FLAGS} -Wall -Wextra -Wpedantic -Wshadow -Werror" ${ARGN})
endfunction()

# expect_stands_alone(<plugin file>): it needs no libgpunn and exports the one symbol that gpunn asks for.
function(expect_stands_alone plugin)
  run(readelf --dynamic ${plugin})
  if(output MATCHES "NEEDED[^\n]*libgpunn")
    message(FATAL_ERROR "${plugin} links libgpunn:\n${output}")
  endif()
  run(readelf --dyn-syms --wide ${plugin})
  string(REGEX MATCHALL "[^\n]* (GLOBAL|WEAK|UNIQUE) +DEFAULT +[0-9]+ [^\n]*" exported "${output}")
  if(NOT exported MATCHES "^[^;]* gpunn_plugin_query_v1$")
    message(FATAL_ERROR "${plugin} should export gpunn_plugin_query_v1 and nothing else:\n${exported}")
  endif()
endfunction()

# expect_lenet_trains(<program> <overlay> <base>): GPUNN_PLUGIN_PATH leads to the overlay, which has the matrix product. On
# MNIST where it is to be had, else on digits that the program draws.
function(expect_lenet_trains gpunn overlay base)
  set(experiment ${PREFIX}/share/gpunn/experiments/lenet_mnist.yaml)
  run(${gpunn} plan ${experiment} --backend ${overlay})
  expect("MATMUL +[a-z0-9_.]+ +${overlay}" "gpunn plan: the overlay's op")
  expect("CONV2D[A-Z_]* +[a-z0-9_.]+ +${base}" "gpunn plan: the base's op")
  run(${gpunn} run ${experiment} --backend ${overlay} --epochs 1 --set data.train_limit=6400
      --set data.test_limit=1000 --set data.batch_size=64 --set schedule.warmup_epochs=0.1 --runs ${WORK}/runs --json)
  string(REGEX MATCH "{\"event\":\"result\"[^\n]*" result "${output}")
  string(JSON accuracy GET "${result}" final_test accuracy)
  if(accuracy LESS 0.85)
    message(FATAL_ERROR "expected a test accuracy of 85 % after an epoch of 6400 images, got ${accuracy}:\n${output}")
  endif()
endfunction()
