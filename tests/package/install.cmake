# cmake -DBUILD=<build tree> -DPREFIX=<where to> -P install.cmake
include(${CMAKE_CURRENT_LIST_DIR}/support.cmake)
file(REMOVE_RECURSE ${PREFIX})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX})

# What people look for beside the program: a page of the manual for every verb, completions, pages, examples.
run(${PREFIX}/bin/gpunn complete --)
string(REGEX MATCHALL "(^|\n)[a-z]+" verbs "${output}")
list(TRANSFORM verbs STRIP)
list(LENGTH verbs count)
if(count LESS 20)
  message(FATAL_ERROR "the program was to name its verbs, and named ${count}:\n${output}")
endif()
list(TRANSFORM verbs REPLACE "(.+)" "man/man1/gpunn-\\1.1" OUTPUT_VARIABLE pages)
foreach(file ${pages} man/man1/gpunn.1 man/man1/gpunn-data-get.1 bash-completion/completions/gpunn
             zsh/site-functions/_gpunn fish/vendor_completions.d/gpunn.fish doc/gpunn/LICENSE doc/gpunn/CHANGELOG.md
             gpunn/models/lenet5.yaml gpunn/experiments/lenet_mnist.yaml gpunn/examples/openblas_matmul/CMakeLists.txt)
  if(NOT EXISTS ${PREFIX}/share/${file})
    message(FATAL_ERROR "`cmake --install` was to lay down share/${file}")
  endif()
endforeach()
