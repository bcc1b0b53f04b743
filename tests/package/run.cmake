# cmake -DBUILD=<build tree> -DPREFIX=<install> -DWORK=<scratch folder> -DCOMPILER=<c++> ... -P run.cmake
#
# Builds consumer/ and plain_c/ against what was installed and nothing else, and asks the installed program what it makes
# of their plugins.
include(${CMAKE_CURRENT_LIST_DIR}/support.cmake)

file(REMOVE_RECURSE ${WORK})
configure_outside(${CMAKE_CURRENT_LIST_DIR}/consumer ${WORK}/build -DCMAKE_BUILD_TYPE=Debug
                  -DCMAKE_INSTALL_PREFIX=${WORK}/elsewhere)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_COMMAND} --install ${WORK}/build)
file(GLOB_RECURSE plugin ${WORK}/elsewhere/libgpunn_backend_consumer.so)
if(NOT plugin MATCHES "/gpunn/libgpunn_backend_consumer\\.so$")
  message(FATAL_ERROR "the consumer's plugin was not installed into a folder gpunn/: '${plugin}'")
endif()
expect_stands_alone(${plugin})

# The build tree is out of reach: what is found was installed.
unset(ENV{LD_LIBRARY_PATH})
set(ENV{GPUNN_PLUGIN_PATH} ${plugin})
set(gpunn ${PREFIX}/bin/gpunn)
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
run(${gpunn} plan ${PREFIX}/share/gpunn/experiments/perceptron_points.yaml --backend consumer)
expect("MATMUL +[a-z_.]+ +consumer" "gpunn plan: the overlay's op")
expect("SGD_UPDATE +[a-z_.]+ +cpu" "gpunn plan: the base's op")

# A plugin in C alone.
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/plain_c -B ${WORK}/plain_c -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${PREFIX}
    "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Wshadow -Werror")
run(${CMAKE_COMMAND} --build ${WORK}/plain_c)
set(plugin ${WORK}/plain_c/libgpunn_backend_plain_c.so)
expect_stands_alone(${plugin})
run(${gpunn} check ${plugin} --suite abi --suite ops)
expect("plain_c[^:]*: [1-9][0-9]* passed, 0 failed" "gpunn check of the plugin in C")
run(${gpunn} plan ${PREFIX}/share/gpunn/experiments/lenet_digits.yaml --backend ${plugin})
expect("RELU +[a-z0-9_.]+ +plain_c" "gpunn plan: the op of the plugin in C")

# For .cu files the project has to enable CUDA; without it, it is told so.
file(WRITE ${WORK}/no_cuda/CMakeLists.txt
     "cmake_minimum_required(VERSION 3.25)\nproject(no_cuda LANGUAGES CXX)\nfind_package(gpunn REQUIRED)\n"
     "gpunn_add_backend(no_cuda kernel.cu)\n")
file(WRITE ${WORK}/no_cuda/kernel.cu "")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK}/no_cuda -B ${WORK}/no_cuda/build -G ${GENERATOR}
                        -DCMAKE_PREFIX_PATH=${PREFIX} -DCMAKE_CXX_COMPILER=${COMPILER}
                RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(status EQUAL 0)
  message(FATAL_ERROR "a .cu file was taken without CUDA")
endif()
expect("LANGUAGES[ \n]+CXX[ \n]+CUDA" "gpunn_add_backend of a .cu file without CUDA")
