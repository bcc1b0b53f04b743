# oneDNN, where it is installed (Debian: libdnnl-dev). Sets GPUNN_WITH_ONEDNN and makes gpunn_onednn_library.
option(GPUNN_ONEDNN "Build the backend onednn where oneDNN is found" ON)

set(GPUNN_WITH_ONEDNN OFF)
# Not with a sanitizer: oneDNN is not compiled with it, so ThreadSanitizer does not see its threads, and LeakSanitizer
# of GCC 12 fails on them.
if(GPUNN_ONEDNN AND NOT GPUNN_SANITIZE)
  # Not by its CMake package, which requires OpenCL, too.
  find_path(ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
  find_library(ONEDNN_LIBRARY dnnl)
  mark_as_advanced(ONEDNN_INCLUDE_DIR ONEDNN_LIBRARY)
  if(ONEDNN_INCLUDE_DIR AND ONEDNN_LIBRARY)
    set(GPUNN_WITH_ONEDNN ON)
    add_library(gpunn_onednn_library INTERFACE)
    target_include_directories(gpunn_onednn_library SYSTEM INTERFACE ${ONEDNN_INCLUDE_DIR})
    target_link_libraries(gpunn_onednn_library INTERFACE ${ONEDNN_LIBRARY})
  else()
    message(STATUS "gpunn: no oneDNN (Debian: libdnnl-dev): built without the backend onednn; "
                   "-DONEDNN_INCLUDE_DIR= and -DONEDNN_LIBRARY= say where it is")
  endif()
endif()
