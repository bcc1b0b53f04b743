# cmake -DPREFIX=<install> -DWORK=<scratch folder> -DEXAMPLE=<examples/plain_backend> -DCOMPILER=<c++> ... -P plain.cmake
#
# Copies the example of a backend from nothing away from the project, builds it there against what was installed and
# checks its ops. Trainings with it are in tests/training/composed_test.cpp.
include(${CMAKE_CURRENT_LIST_DIR}/support.cmake)

file(REMOVE_RECURSE ${WORK})
file(COPY ${EXAMPLE}/ DESTINATION ${WORK}/project)
configure_outside(${WORK}/project ${WORK}/build)
run(${CMAKE_COMMAND} --build ${WORK}/build)
set(plugin ${WORK}/build/libgpunn_backend_plain.so)
expect_stands_alone(${plugin})

unset(ENV{LD_LIBRARY_PATH})
set(gpunn ${PREFIX}/bin/gpunn)
run(${gpunn} check ${plugin} --profile core --suite abi --suite nodevice --suite grad --suite stream --suite ops)
expect("plain[^:]*: [1-9][0-9][0-9][0-9] passed, 0 failed" "gpunn check --profile core")
run(${gpunn} plan ${PREFIX}/share/gpunn/experiments/lenet_digits.yaml --backend ${plugin})
expect("MAXIMUM[^\n]*plain" "gpunn plan: what ReLU is composed of")
run(${gpunn} check ${plugin} --profile train-cnn --suite ops --op BIAS_BACKWARD)
expect("0 failed, [1-9][0-9]* skipped" "gpunn check of an op that is composed of one other")
