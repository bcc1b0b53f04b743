# cmake -DPREFIX=<install> -DWORK=<scratch folder> -DEXAMPLE=<its folder> -DPLUGIN=<its name> -DCOMPILER=<c++> ...
#       -P example_cpu.cmake
#
# Copies an example of an overlay on "cpu" away from the project, builds it there against what was installed, checks it
# and trains with it: what docs/writing-a-backend.md has a stranger do.
include(${CMAKE_CURRENT_LIST_DIR}/support.cmake)

file(REMOVE_RECURSE ${WORK})
file(COPY ${EXAMPLE}/ DESTINATION ${WORK}/project)
configure_outside(${WORK}/project ${WORK}/build "-DCMAKE_MODULE_LINKER_FLAGS=${LINK_FLAGS}")
run(${CMAKE_COMMAND} --build ${WORK}/build)
set(plugin ${WORK}/build/libgpunn_backend_${PLUGIN}.so)
expect_stands_alone(${plugin})
if(LINK_FLAGS MATCHES "-static-libstdc")
  run(readelf --dynamic ${plugin})
  if(output MATCHES "libstdc")
    message(FATAL_ERROR "${plugin} was to have a C++ library of its own:\n${output}")
  endif()
endif()

unset(ENV{LD_LIBRARY_PATH})
set(gpunn ${PREFIX}/bin/gpunn)
# Ops other than its own are those of "cpu": once, and one large case for each kernel, is enough.
if(OWN_KERNEL)
  run(${gpunn} check ${plugin} --quick)
else()
  run(${gpunn} check ${plugin} --op MATMUL)
endif()
expect("${PLUGIN}[^:]*: [1-9][0-9]* passed, 0 failed" "gpunn check")

set(ENV{GPUNN_PLUGIN_PATH} ${WORK}/build)
run(${gpunn} plugins)
expect("${PLUGIN} +OK" "gpunn plugins")

expect_lenet_trains(${gpunn} ${PLUGIN} cpu)

if(NOT OWN_KERNEL)
  return()
endif()
# As the page shows it: a mistake is found, and your own kernel takes the place of the library's.
file(READ ${EXAMPLE}/openblas.cpp original)
string(REPLACE "0.0F, args.out<float>(0), size(p.n))" "1.0F, args.out<float>(0), size(p.n))" wrong "${original}")
file(READ ${OWN_KERNEL} kernel)
string(FIND "${original}" "    const auto size = " begin)
string(FIND "${original}" "  });\n}" end)
if(wrong STREQUAL original OR begin EQUAL -1 OR end LESS begin)
  message(FATAL_ERROR "the call of cblas_sgemm was not found in openblas.cpp")
endif()
string(SUBSTRING "${original}" 0 ${begin} before)
string(SUBSTRING "${original}" ${end} -1 behind)

file(WRITE ${WORK}/project/openblas.cpp "${wrong}")
run(${CMAKE_COMMAND} --build ${WORK}/build)
execute_process(COMMAND ${gpunn} check ${plugin} --op MATMUL RESULT_VARIABLE status OUTPUT_VARIABLE output
                ERROR_VARIABLE output)
if(NOT status EQUAL 1)
  message(FATAL_ERROR "gpunn check of a wrong kernel: expected exit code 1, got ${status}:\n${output}")
endif()
expect("failed +ops MATMUL[^\n]*found NaN" "gpunn check of a kernel that adds to its output")

file(WRITE ${WORK}/project/openblas.cpp "${before}${kernel}${behind}")
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${gpunn} check ${plugin} --op MATMUL)
expect("${PLUGIN}[^:]*: [1-9][0-9]* passed, 0 failed" "gpunn check of your own kernel")
