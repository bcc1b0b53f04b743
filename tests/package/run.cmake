# cmake -DBUILD=<build tree> -DWORK=<scratch folder> -DCOMPILER=<c++> -P run.cmake
#
# Installs the build tree, builds consumer/ against what was installed and nothing else, and asks the installed program
# what it makes of the consumer's plugin.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "'${command}' failed (${status}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect pattern where)
  if(NOT output MATCHES "${pattern}")
    message(FATAL_ERROR "${where}: expected '${pattern}' in:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
set(prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Debug
    -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} "-DCMAKE_CXX_FLAGS=${FLAGS} -Wall -Wextra -Wpedantic -Werror"
    -DCMAKE_INSTALL_PREFIX=${WORK}/elsewhere)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_COMMAND} --install ${WORK}/build)
file(GLOB_RECURSE plugin ${WORK}/elsewhere/libgpunn_backend_consumer.so)
if(NOT plugin MATCHES "/gpunn/libgpunn_backend_consumer\\.so$")
  message(FATAL_ERROR "the consumer's plugin was not installed into a folder gpunn/: '${plugin}'")
endif()

# The build tree is out of reach: what is found was installed.
unset(ENV{LD_LIBRARY_PATH})
set(ENV{GPUNN_PLUGIN_PATH} ${plugin})
set(gpunn ${prefix}/bin/gpunn)
run(${gpunn} plugins)
expect("cpu[^\n]*OK|OK[^\n]*cpu" "gpunn plugins: the installed backend")
expect("consumer[^\n]*OK|OK[^\n]*consumer" "gpunn plugins: the consumer's plugin")
string(FIND "${output}" "${BUILD}/lib" in_build_tree)
if(NOT in_build_tree EQUAL -1)
  message(FATAL_ERROR "the installed program looks into the build tree:\n${output}")
endif()

run(${WORK}/build/consumer_program ${plugin})
expect("consumer OK" "libgpunn's list_plugins")

# The consumer's kernel is right, and an installed experiment runs it among the base's.
run(${gpunn} check consumer --op MATMUL)
expect("[1-9][0-9]* passed, 0 failed" "gpunn check consumer")
run(${gpunn} plan ${prefix}/share/gpunn/experiments/perceptron_points.yaml --backend consumer)
expect("MATMUL +[a-z_.]+ +consumer" "gpunn plan: the overlay's op")
expect("SGD_UPDATE +[a-z_.]+ +cpu" "gpunn plan: the base's op")
