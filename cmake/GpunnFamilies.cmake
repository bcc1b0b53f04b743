# gpunn_families(<target> <list> <source>...): a list of the families that the sources define, to be included as
# "<list>" by the target's sources: GPUNN_FAMILY(name) for each <name>.cpp or <name>.cu that has no header of its own.
# What has one, such as reference.cpp with reference.hpp, is a tool of the families. A family's file is thus all that
# has to be added.
function(gpunn_families target list)
  set(lines "")
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME_WE)
    get_filename_component(folder ${source} DIRECTORY)
    if(NOT EXISTS ${folder}/${name}.hpp)
      string(APPEND lines "GPUNN_FAMILY(${name})\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/families/${list} CONTENT "${lines}")
  target_include_directories(${target} PUBLIC ${CMAKE_CURRENT_BINARY_DIR}/families)
endfunction()
