# gpunn_unite_cuda(<variable> <count> <source>...): puts in the place of CUDA sources <count> sources that include them. The
# headers are two thirds of what nvcc does for a kernel. Neighbours in the list, which use alike names, come into different
# units. Sources of other languages stay as they are, and so do all where GPUNN_UNITE_CUDA is off.
#
# For builds that look for mistakes: a unit has one alignment for all its kernels' shared memory of the same name.
option(GPUNN_UNITE_CUDA "Compile several CUDA sources at once" OFF)

function(gpunn_unite_cuda variable count)
  set(left ${ARGN})
  if(GPUNN_UNITE_CUDA)
    set(united ${ARGN})
    list(FILTER united INCLUDE REGEX "\\.cu$")
    list(REMOVE_ITEM left ${united})
    set(unit 0)
    foreach(source ${united})
      string(APPEND lines_${unit} "#include \"${source}\"\n")
      math(EXPR unit "(${unit} + 1) % ${count}")
    endforeach()
    math(EXPR last "${count} - 1")
    foreach(unit RANGE ${last})
      if(DEFINED lines_${unit})
        set(file ${CMAKE_CURRENT_BINARY_DIR}/united/${variable}_${unit}.cu)
        file(CONFIGURE OUTPUT ${file} CONTENT "${lines_${unit}}")
        list(APPEND left ${file})
      endif()
    endforeach()
  endif()
  set(${variable} ${left} PARENT_SCOPE)
endfunction()
