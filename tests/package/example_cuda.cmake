# cmake -DPREFIX=<install> -DWORK=<scratch folder> -DEXAMPLE=<its folder> -DPLUGIN=<its name> -DNVCC=<nvcc>
#       -DARCHITECTURE=<of the GPU> ... -P example_cuda.cmake
#
# The same for an overlay on a CUDA backend. Without a GPU the plugin must load, and say why it can't serve.
include(${CMAKE_CURRENT_LIST_DIR}/support.cmake)

file(REMOVE_RECURSE ${WORK})
file(COPY ${EXAMPLE}/ DESTINATION ${WORK}/project)
configure_outside(${WORK}/project ${WORK}/build -DCMAKE_CUDA_COMPILER=${NVCC} -DCMAKE_CUDA_ARCHITECTURES=${ARCHITECTURE}
                  -DCMAKE_CUDA_COMPILER_LAUNCHER=${LAUNCHER}
                  "-DCMAKE_CUDA_FLAGS=-Xcompiler=-Wall,-Wextra --Werror=all-warnings")
run(${CMAKE_COMMAND} --build ${WORK}/build)
set(plugin ${WORK}/build/libgpunn_backend_${PLUGIN}.so)
expect_stands_alone(${plugin})

unset(ENV{LD_LIBRARY_PATH})
set(ENV{GPUNN_PLUGIN_PATH} ${WORK}/build)
set(gpunn ${PREFIX}/bin/gpunn)
run(${gpunn} plugins)
expect("${PLUGIN} +(OK|NO_DEVICE) +[0-9.]+ +1\\.[0-9]+ +cuda_naive" "gpunn plugins")
if(output MATCHES "${PLUGIN} +OK")
  run(${gpunn} check ${plugin})
  expect("${PLUGIN}[^:]*: [1-9][0-9]* passed, 0 failed" "gpunn check")
  expect_lenet_trains(${gpunn} ${PLUGIN} cuda_naive)
else()
  expect("libgpunn_backend_${PLUGIN}\\.so: NO_DEVICE\n +[a-zA-Z]" "gpunn plugins: the reason")
  run(${gpunn} check ${plugin})
  expect("[0-9]+ passed, 0 failed, 1 skipped" "gpunn check without a device")
  execute_process(COMMAND ${gpunn} check ${plugin} --required RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(NOT status EQUAL 1)
    message(FATAL_ERROR "gpunn check --required without a device: expected exit code 1, got ${status}")
  endif()
endif()
