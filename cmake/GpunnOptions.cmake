# Options of the build, and the flags of every target.
option(GPUNN_BUILD_TESTS "Build the tests" ON)
option(GPUNN_BUILD_BENCHMARKS "Build the comparisons with other libraries in bench/" OFF)
option(GPUNN_PYTHON "Build the Python package, with nanobind" OFF)
option(GPUNN_DEBIAN "Prepare cpack to make Debian packages; the preset deb sets it" OFF)
option(GPUNN_PRECOMPILE "Parse common headers once for many targets, where there is no compiler cache" ON)
option(GPUNN_WARNINGS_AS_ERRORS "Treat warnings as errors" OFF)
option(GPUNN_FUZZ "Build the fuzz targets; needs Clang" OFF)
set(GPUNN_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=: address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# Several sources form one translation unit: the headers, which cost most, are parsed once for all of them. So names
# that are local to a file must differ from those of the other files of its target.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON CACHE BOOL "Compile several sources at once: four times faster from scratch")
endif()
# CMake's default of 8 sources in a unit spends a third more time on headers.
set(CMAKE_UNITY_BUILD_BATCH_SIZE 24)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# One bin and one lib folder, so that a program in the build tree finds its plugins beside libgpunn.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

find_program(GPUNN_CCACHE ccache)
if(GPUNN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${GPUNN_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${GPUNN_CCACHE})
endif()

set(shadow_warning -Wshadow)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(shadow_warning -Wshadow=local) # local names of a file do not shadow those of the next
endif()
add_library(gpunn_build_flags INTERFACE)
target_compile_options(
  gpunn_build_flags
  INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wall
            -Wextra
            -Wpedantic
            ${shadow_warning}
            $<$<BOOL:${GPUNN_WARNINGS_AS_ERRORS}>:-Werror>>
            $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
            # The compiler collects its garbage less often: this saves a tenth of the time for a third more memory.
            $<$<COMPILE_LANG_AND_ID:CXX,GNU>:SHELL:--param=ggc-min-heapsize=524288>
            # -Wpedantic and -Wshadow warn about code that nvcc generates.
            $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra
            $<$<BOOL:${GPUNN_WARNINGS_AS_ERRORS}>:--Werror=all-warnings>>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of overlaps in std::string's operator+ that do not exist (GCC bug 105651).
  target_compile_options(gpunn_build_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wno-restrict>)
endif()
target_link_options(gpunn_build_flags INTERFACE LINKER:--as-needed) # fewer libraries to load at start-up
if(GPUNN_SANITIZE)
  target_compile_options(
    gpunn_build_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${GPUNN_SANITIZE} -fno-omit-frame-pointer
                                -fno-sanitize-recover=all>)
  target_link_options(gpunn_build_flags INTERFACE -fsanitize=${GPUNN_SANITIZE})
endif()
# Targets link these after gpunn_build_flags, since the last flag wins. gpunn_checked_by_address leaves pointers to
# AddressSanitizer: vector kernels, which follow a pointer in each line, compile in a third of the time.
# gpunn_defined_behaviour leaves out all checks for undefined behaviour, gpunn_unchecked those for wrong addresses too.
# Sample plugins are unchecked: they are written to go wrong, and the guards of the tested code have to see it. Data races
# are looked for everywhere.
add_library(gpunn_unchecked INTERFACE)
add_library(gpunn_defined_behaviour INTERFACE)
add_library(gpunn_checked_by_address INTERFACE)
if(GPUNN_SANITIZE MATCHES "address")
  target_compile_options(gpunn_unchecked INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize=all>)
endif()
if(GPUNN_SANITIZE MATCHES "undefined")
  target_compile_options(gpunn_defined_behaviour INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize=undefined>)
  target_compile_options(
    gpunn_checked_by_address
    INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize=null,alignment,vptr,object-size,pointer-overflow>)
endif()
