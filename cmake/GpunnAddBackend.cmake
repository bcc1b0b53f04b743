# CMake before 3.26 does not know how nvcc is told of C++20, which is asked of it together with the C++ compiler.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

# gpunn_add_backend(<name> <source>...)
#
# The plugin libgpunn_backend_<name>.so, as target gpunn_backend_<name>: api/'s headers, hidden symbols, installed where
# gpunn looks for plugins. The project's own backends and anybody else's, through find_package(gpunn), are made by this
# one function.
function(gpunn_add_backend name)
  if(NOT name MATCHES "^[a-z0-9_]+$")
    message(FATAL_ERROR "gpunn_add_backend: '${name}' is no backend's name: use lower-case letters, digits and _")
  endif()
  if(NOT ARGN)
    message(FATAL_ERROR "gpunn_add_backend(${name}): name at least one source file")
  endif()
  include(GNUInstallDirs)
  set(target gpunn_backend_${name})
  add_library(${target} MODULE ${ARGN})
  set_target_properties(
    ${target}
    PROPERTIES PREFIX lib
               C_VISIBILITY_PRESET hidden
               CXX_VISIBILITY_PRESET hidden
               CUDA_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE gpunn::api)
  # The symbols of static libraries that a plugin is linked with stay its own.
  target_link_options(${target} PRIVATE LINKER:--exclude-libs,ALL)
  set_property(GLOBAL APPEND PROPERTY GPUNN_BACKENDS ${target})
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/gpunn)
endfunction()
