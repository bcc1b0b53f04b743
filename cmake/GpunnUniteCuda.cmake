# gpunn_unite_cuda(<variable> <count> <source>...): puts in the place of CUDA sources <count> sources that include them. The
# headers are two thirds of what nvcc does for a kernel. A source's name decides where it comes, so that a new one moves no
# other: if it shares a name of an unnamed namespace with its unit, rename that. Sources of other languages stay as they
# are, and so do all where GPUNN_UNITE_CUDA is off.
#
# For builds that look for mistakes: a unit has one alignment for all its kernels' shared memory of the same name.
option(GPUNN_UNITE_CUDA "Compile several CUDA sources at once" OFF)

function(gpunn_unite_cuda variable count)
  set(left ${ARGN})
  if(GPUNN_UNITE_CUDA)
    set(united ${ARGN})
    list(FILTER united INCLUDE REGEX "\\.cu$")
    list(REMOVE_ITEM left ${united})
    foreach(source ${united})
      file(RELATIVE_PATH name ${CMAKE_CURRENT_SOURCE_DIR} ${source})
      string(MD5 digest ${name})
      string(SUBSTRING ${digest} 11 7 digits) # of all places the one that parts alike sources best
      math(EXPR unit "0x${digits} % ${count}")
      string(APPEND lines_${unit} "#include \"${source}\"\n")
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
