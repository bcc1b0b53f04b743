# gpunn_families(<target> <list> <source>...) writes a list of the families in the sources, which the target's sources
# include as "<list>": GPUNN_FAMILY(name) for each <name>.cpp or <name>.cu without a header of its own. A source with a
# header, such as reference.cpp with reference.hpp, is a tool of the families. So a new family is just a new file.
function(gpunn_families target list)
  set(names "")
  foreach(source ${ARGN})
    get_filename_component(name ${source} NAME_WE)
    get_filename_component(folder ${source} DIRECTORY)
    if(NOT EXISTS ${folder}/${name}.hpp)
      list(APPEND names ${name})
    endif()
  endforeach()
  list(SORT names) # whatever folders the families are in
  list(TRANSFORM names REPLACE "^(.+)$" "GPUNN_FAMILY(\\1)\n" OUTPUT_VARIABLE lines)
  list(JOIN lines "" lines)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/families/${list} CONTENT "${lines}")
  target_include_directories(${target} PUBLIC ${CMAKE_CURRENT_BINARY_DIR}/families)
endfunction()
