# The CUDA toolkit, where there is one. Sets GPUNN_WITH_CUDA and GPUNN_WITH_CUDNN, and enables the language.
#
# Architectures: what the user says with CMAKE_CUDA_ARCHITECTURES; else those of the GPUs of this machine; else sm_75, sm_80
# (which 8.6 to 8.9 run too: a third less to compile than with an image for each), sm_90a, and PTX for later ones.
set(GPUNN_CUDA AUTO CACHE STRING "Build the CUDA backends: ON, OFF or AUTO (where the toolkit is found)")
set_property(CACHE GPUNN_CUDA PROPERTY STRINGS AUTO ON OFF)
set(GPUNN_CUDA_BACKENDS cuda_naive cuda_tiled cudnn CACHE STRING "Which CUDA backends to build")
option(GPUNN_QUICK_CUDA "Compile CUDA code quickly, which makes it slow: for builds that only look for mistakes" OFF)
set(GPUNN_WITH_CUDA OFF)
set(GPUNN_WITH_CUDNN OFF)

# "90a;86" for an H200 beside an RTX A6000; empty where there is no GPU. "a" stands for what only this generation has
# (wgmma on 9.0).
function(gpunn_architectures_of_this_machine out)
  set(found "")
  find_program(GPUNN_NVIDIA_SMI nvidia-smi)
  mark_as_advanced(GPUNN_NVIDIA_SMI)
  if(GPUNN_NVIDIA_SMI)
    execute_process(
      COMMAND ${GPUNN_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE capabilities
      ERROR_QUIET
      RESULT_VARIABLE failed
      OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failed)
      string(REGEX MATCHALL "[0-9]+\\.[0-9]+" capabilities "${capabilities}")
      foreach(capability ${capabilities})
        string(REPLACE "." "" architecture ${capability})
        if(architecture GREATER_EQUAL 90)
          string(APPEND architecture "a")
        endif()
        list(APPEND found ${architecture}-real)
      endforeach()
      list(REMOVE_DUPLICATES found)
    endif()
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

if(NOT GPUNN_CUDA STREQUAL "OFF")
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(GPUNN_NVCC nvcc PATHS /usr/local/cuda/bin)
    mark_as_advanced(GPUNN_NVCC)
    if(GPUNN_NVCC)
      set(CMAKE_CUDA_COMPILER ${GPUNN_NVCC} CACHE FILEPATH "CUDA compiler")
    endif()
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    gpunn_architectures_of_this_machine(architectures)
    if(NOT architectures)
      set(architectures 75-real 80-real 90a-real 90-virtual)
    endif()
    set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "Architectures of the CUDA backends")
  endif()
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(GPUNN_WITH_CUDA ON)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    if(GPUNN_CCACHE AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${GPUNN_CCACHE})
    endif()
    if(GPUNN_QUICK_CUDA)
      include(CheckCompilerFlag)
      check_compiler_flag(CUDA --Ofast-compile=max GPUNN_NVCC_IS_QUICK)
      add_compile_options($<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${GPUNN_NVCC_IS_QUICK}>>:--Ofast-compile=max>)
    endif()
    # NVTX is headers alone.
    if(NOT TARGET CUDA::nvtx3)
      add_library(CUDA::nvtx3 INTERFACE IMPORTED)
      set_target_properties(CUDA::nvtx3 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${CUDAToolkit_INCLUDE_DIRS}"
                                                   INTERFACE_LINK_LIBRARIES "${CMAKE_DL_LIBS}")
    endif()

    find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_DIR}/../lib
                                           ${CUDAToolkit_LIBRARY_ROOT}/lib ${CUDAToolkit_LIBRARY_ROOT}/lib64)
    mark_as_advanced(CUDNN_INCLUDE_DIR CUDNN_LIBRARY)
    if(CUDNN_INCLUDE_DIR AND CUDNN_LIBRARY AND TARGET CUDA::cublasLt)
      set(GPUNN_WITH_CUDNN ON)
      add_library(gpunn_cudnn_library INTERFACE)
      target_include_directories(gpunn_cudnn_library SYSTEM INTERFACE ${CUDNN_INCLUDE_DIR})
      target_link_libraries(gpunn_cudnn_library INTERFACE ${CUDNN_LIBRARY})
    endif()
  elseif(GPUNN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "GPUNN_CUDA is ON, but there is no CUDA compiler: put nvcc on PATH or name it with "
                        "-DCMAKE_CUDA_COMPILER=, or configure with -DGPUNN_CUDA=AUTO")
  endif()
endif()

if(NOT GPUNN_WITH_CUDA)
  message(STATUS "gpunn: no CUDA toolkit: built without the backends cuda_naive, cuda_tiled and cudnn")
elseif(NOT GPUNN_WITH_CUDNN)
  message(STATUS "gpunn: no cuDNN 9: built without the backend cudnn; "
                 "-DCUDNN_INCLUDE_DIR= and -DCUDNN_LIBRARY= say where it is")
endif()
