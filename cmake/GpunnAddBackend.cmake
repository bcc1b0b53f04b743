# CMake before 3.26 does not know nvcc's flag for C++20, which is set together with the C++ compiler's.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()

# gpunn_add_backend(<name> <source>...)
#
# The plugin libgpunn_backend_<name>.so, as target gpunn_backend_<name>: api/'s headers, no symbol exported but the one
# that gpunn asks for, installed where gpunn looks for plugins. Sources are C, C++ or, where the project has enabled the
# language, CUDA. The project's own backends and, through find_package(gpunn), backends elsewhere are made by this
# function.
set(GPUNN_PLUGIN_SYMBOLS ${CMAKE_CURRENT_LIST_DIR}/plugin_symbols.map)

function(gpunn_add_backend name)
  if(NOT name MATCHES "^[a-z0-9_]+$")
    message(FATAL_ERROR "gpunn_add_backend: '${name}' is no backend's name: use lower-case letters, digits and _")
  endif()
  if(NOT ARGN)
    message(FATAL_ERROR "gpunn_add_backend(${name}): name at least one source file")
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("${ARGN}" MATCHES "\\.cu(;|$)" AND NOT "CUDA" IN_LIST languages)
    message(FATAL_ERROR "gpunn_add_backend(${name}): for .cu sources write project(... LANGUAGES CXX CUDA)")
  endif()
  # Without a build type the compiler does not optimise, and a kernel is several times slower.
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    message(STATUS "gpunn_add_backend(${name}): no build type is set, Release is taken; "
                   "for a debugger say -DCMAKE_BUILD_TYPE=Debug")
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  endif()
  include(GNUInstallDirs)
  set(target gpunn_backend_${name})
  add_library(${target} MODULE ${ARGN})
  set_target_properties(
    ${target}
    PROPERTIES PREFIX lib
               CUDA_STANDARD 20
               CUDA_STANDARD_REQUIRED ON
               C_VISIBILITY_PRESET hidden
               CXX_VISIBILITY_PRESET hidden
               CUDA_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               # A library that the plugin found outside the system's folders must be found after the installation, too.
               INSTALL_RPATH_USE_LINK_PATH ON
               LINK_DEPENDS ${GPUNN_PLUGIN_SYMBOLS})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE gpunn::api)
  # Symbols of static libraries and of the C++ library's templates stay inside the plugin, so that two plugins never
  # share a symbol by accident, whatever compilers built them.
  target_link_options(${target} PRIVATE LINKER:--version-script=${GPUNN_PLUGIN_SYMBOLS})
  set_property(GLOBAL APPEND PROPERTY GPUNN_BACKENDS ${target})
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/gpunn)
endfunction()
